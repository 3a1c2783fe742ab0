"""`search.preset`: the rankings of other systems, in settings and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.registry import EVERY_PRESET, PRESETS_WITH_INDEX
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.config.loading import load_config
from tool_search.core.catalog.tool import Tool
from tool_search.errors import ConfigurationError
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.learned import with_votes

TOOLS = (
    Tool(name="send_mail", description="Send a mail to somebody.", server="post", kind="mcp"),
    Tool(name="read_mail", description="Read the mail.", server="post", kind="mcp"),
    Tool(name="get_weather", description="Weather of a city."),
    Tool(name="查询", description="查询 火车票"),
)


@pytest.fixture(params=PRESETS_WITH_INDEX)
def index(request: pytest.FixtureRequest) -> ToolSearchIndex:
    """The tools in every preset that has an index of its own."""
    return build_index(TOOLS, SearchSettings(preset=request.param))


def names(index: ToolSearchIndex, query: str | Sequence[str], **how: Any) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, **{"limit": 10, **how}).matches]


@pytest.mark.parametrize(
    ("given", "engine", "floor"),
    [
        ({"preset": "oh-my-pi"}, "bm25", 0.0),
        ({"preset": "oh-my-pi", "engine": "bm25", "min_relevance": 0.2}, "bm25", 0.2),
        ({"preset": "tooldiscovery"}, "bm25", 0.0),
        ({"preset": "tooldiscovery", "engine": "lexical"}, "lexical", 0.0),
        ({"preset": "astrbot"}, "rank_bm25", 0.0),
        ({"preset": None}, "bm25", 0.1),
    ],
)
def test_a_preset_fixes_what_is_not_said(given: dict[str, Any], engine: str, floor: float) -> None:
    chosen = SearchSettings(**given)
    assert (chosen.engine, chosen.min_relevance) == (engine, floor)
    assert SearchSettings(**chosen.model_dump()) == chosen


@pytest.mark.parametrize(
    ("preset", "engine"),
    [("oh-my-pi", "lexical"), ("tooldiscovery", "rank_bm25"), ("astrbot", "bm25")],
)
def test_a_preset_and_another_engine_are_an_error_that_names_both(
    tmp_path: Path, preset: str, engine: str
) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(
        f"tool_search:\n  search:\n    engine: {engine}\n    preset: {preset}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigurationError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "line 4: tool_search.search.preset" in message
    assert f"preset '{preset}' and engine '{engine}'" in message


def test_an_unknown_preset_is_an_error_that_says_which_there_are(tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text("tool_search: {search: {preset: google}}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="there are oh-my-pi, tooldiscovery, astrbot"):
        load_config(path)


@pytest.mark.parametrize("preset", EVERY_PRESET)
def test_every_preset_searches(preset: Any) -> None:
    chosen = SearchSettings(preset=preset)
    assert names(build_index(TOOLS, chosen), "city weather") == ["get_weather"]
    assert build_index([], chosen).search("weather", limit=5).total_tools == 0


def test_equal_tools_and_presets_have_one_index() -> None:
    first = build_index(TOOLS, SearchSettings(preset="oh-my-pi"))
    assert first is build_index(TOOLS[::-1], SearchSettings(preset="oh-my-pi"))
    assert first is not build_index(TOOLS, SearchSettings(preset="tooldiscovery"))
    assert isinstance(first, WeightedBm25Index)
    assert not isinstance(build_index(TOOLS, SearchSettings(preset="astrbot")), WeightedBm25Index)


def test_tooldiscovery_with_the_engine_lexical_searches_for_substrings() -> None:
    chosen = SearchSettings(preset="tooldiscovery", engine="lexical")
    assert names(build_index(TOOLS, chosen), "end_mai") == ["send_mail"]


def test_relevance_lies_between_zero_and_one_in_the_order_of_the_scores(
    index: WeightedBm25Index,
) -> None:
    query = "mail read the weather " * 60
    matches = index.search(query, limit=10).matches
    assert all(0 < match.score <= 1 for match in matches)
    assert [m.name for m in matches] == [tool.name for tool, _ in index.ranked(query)]


def test_a_floor_cuts_what_is_below_its_share() -> None:
    built = build_index(TOOLS, SearchSettings(preset="oh-my-pi"))
    lower = built.search("read mail", limit=2).matches[1].score
    floored = SearchSettings(preset="oh-my-pi", min_relevance=lower + 0.01)
    assert names(built, "read mail") == ["read_mail", "send_mail"]
    assert names(build_index(TOOLS, floored), "read mail") == ["read_mail"]


def test_no_operator_and_no_exact_name_changes_the_ranking(index: WeightedBm25Index) -> None:
    assert set(names(index, "mail -read")) == {"send_mail", "read_mail"}
    assert index.search("get_weather", limit=5).matches[0].score < 1


def test_what_was_learned_changes_no_ranking(index: WeightedBm25Index) -> None:
    def votes(query: str, may: object) -> dict[str, float]:
        return {"get_weather": 9.0}

    assert with_votes(index, votes) is index


def test_only_what_a_caller_may_call_is_found_and_counted(index: WeightedBm25Index) -> None:
    """Words of the other tools are unmatched."""
    result = index.search("weather mail", limit=5, allowed=lambda name: name != "get_weather")
    assert {match.name for match in result.matches} == {"send_mail", "read_mail"}
    assert (result.total_found, result.total_tools, result.unmatched) == (2, 3, ("weather",))
    assert len(index.ranked("mail", allowed=lambda name: name == "read_mail")) == 1


def test_the_limit_cuts_after_the_count(index: WeightedBm25Index) -> None:
    assert len(index.search("mail", limit=1).matches) == 1
    for limit in (1, 0, -1):
        result = index.search("mail", limit=limit)
        assert (len(result.matches), result.total_found) == (max(limit, 0), 2)


def test_several_queries_are_merged(index: WeightedBm25Index) -> None:
    result = index.search(["read mail", "weather"], limit=10)
    assert result.query == "read mail | weather"
    assert {match.name for match in result.matches} == {"read_mail", "send_mail", "get_weather"}


@settings(max_examples=60)
@given(query=st.text(st.characters(codec=None)), limit=st.integers(-1, 5))
@pytest.mark.parametrize("preset", PRESETS_WITH_INDEX)
def test_nothing_a_model_writes_raises(preset: Any, query: str, limit: int) -> None:
    result = build_index(TOOLS, SearchSettings(preset=preset)).search(query, limit=limit)
    result.to_json().encode()
    assert len(result.matches) <= max(limit, 0)


@pytest.mark.parametrize("preset", PRESETS_WITH_INDEX)
def test_a_hostile_definition_and_query_are_read_up_to_a_bound(preset: Any) -> None:
    """A description of a megabyte, thousands of arguments, a query of 100,000 characters."""
    many = {f"key{n}": {"type": "string"} for n in range(5_000)}
    tool = Tool(
        name="loud",
        summary="weather " * 130_000,
        parameters={"type": "object", "properties": many},
    )
    built = build_index([tool, *TOOLS], SearchSettings(preset=preset))
    assert len(built.search("weather ﷺ " * 10_000, limit=5).matches) == 2
