"""The contract of every engine of the table."""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.registry import EVERY_ENGINE, WITH_WORDS, WITHOUT_VECTORS
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchSettings, ToolSearchIndex, build_index

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
TOOLBOX = (
    Tool(name="get_weather", description="Weather forecast for a city."),
    Tool(name="send_email", description="Send an e-mail message to a person."),
    Tool(name="createGitHubIssue", description="Open a ticket in a repository."),
    Tool(name="query_train", description="查询两个城市之间的火车票和时刻表"),
    Tool(name="погода_сейчас", description="Показывает текущую погоду в городе."),
    Tool(name="convert_currency", description="Converts an amount from one currency to another."),
)
NOTHING = ("", "   ", "?!… ---", "👍🏽🎉", "\x00\x07\x1b", "\ud800\udfff", "\u202e\u200b")


@pytest.fixture(params=WITH_WORDS)
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine that ranks by words."""
    return str(request.param)


@pytest.fixture(params=EVERY_ENGINE)
def every_engine(request: pytest.FixtureRequest) -> str:
    """Every engine."""
    return str(request.param)


def built(engine: str, *tools: Tool, floor: float = 0.1) -> ToolSearchIndex:
    """An index over the tools."""
    chosen = SearchSettings(
        engine=engine,
        min_relevance=floor,
        embedder="tests.search.word_embedder:WordEmbedder",
        vector_cache=None,
    )
    return build_index(tools, chosen)


def names(index: ToolSearchIndex, query: str | list[str], limit: int = 10) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=limit).matches]


def ranking(index: ToolSearchIndex, query: str) -> list[tuple[str, float]]:
    """Names and scores that a search finds."""
    return [(match.name, match.score) for match in index.search(query, limit=1000).matches]


def test_search_one_tool_finds_it(every_engine: str) -> None:
    assert names(built(every_engine, TOOLBOX[0]), "weather") == ["get_weather"]


def test_search_one_tool_in_a_sentence_finds_it(engine: str) -> None:
    question = "What will the weather be like in Paris tomorrow afternoon?"
    assert names(built(engine, TOOLBOX[0]), question) == ["get_weather"]


def test_search_two_tools_finds_the_right_one(every_engine: str) -> None:
    assert names(built(every_engine, *TOOLBOX[:2]), "email") == ["send_email"]


def test_search_word_of_every_tool_finds_all_by_name(every_engine: str) -> None:
    tools = [Tool(name=f"note_{letter}", description="A note.") for letter in "cab"]
    assert names(built(every_engine, *tools), "note") == ["note_a", "note_b", "note_c"]


def test_search_empty_catalog_finds_nothing(every_engine: str) -> None:
    result = built(every_engine).search("weather", limit=5)
    assert (result.matches, result.total_found, result.total_tools) == ((), 0, 0)


@pytest.mark.parametrize("query", NOTHING)
def test_search_without_letters_finds_nothing(every_engine: str, query: str) -> None:
    result = built(every_engine, *TOOLBOX).search(query, limit=5)
    assert (result.matches, result.total_found, result.unmatched) == ((), 0, ())
    assert result.total_tools == len(TOOLBOX)


def test_search_tools_without_words_finds_nothing(every_engine: str) -> None:
    assert names(built(every_engine, Tool(name="!!"), Tool(name="??")), "weather") == []


@pytest.mark.parametrize(
    "query", ["weather " * 12_500, "wéather!" * 12_500, "天气预报" * 25_000, "a" * 100_000]
)
def test_search_huge_query_is_answered(every_engine: str, query: str) -> None:
    found = built(every_engine, *TOOLBOX).search(query, limit=5)
    assert len(found.matches) <= 5


@pytest.mark.parametrize("tool", TOOLBOX, ids=lambda tool: tool.name)
def test_search_exact_name_ranks_first(every_engine: str, tool: Tool) -> None:
    best = built(every_engine, *TOOLBOX).search(f" {tool.name} ", limit=1).matches[0]
    assert (best.name, best.score) == (tool.name, 1.0)


def test_search_exact_name_beats_a_repetitive_tool(every_engine: str) -> None:
    loud = Tool(name="user_get_user", description="get user " * 50, tags=["get_user"])
    assert names(built(every_engine, Tool(name="get_user"), loud), "get_user")[0] == "get_user"


def test_search_exact_name_in_other_case_ranks_first(every_engine: str) -> None:
    assert names(built(every_engine, *TOOLBOX), "ＣＲＥＡＴＥgithubissue")[0] == "createGitHubIssue"


def test_search_exact_name_of_signs_is_found(every_engine: str) -> None:
    assert names(built(every_engine, Tool(name="!!"), *TOOLBOX), "!!") == ["!!"]


def test_search_ranks_whatever_the_order_of_tools(engine: str) -> None:
    shuffled = random.Random(7).sample(TOOLBOX, len(TOOLBOX))
    engine_index = built(engine, *TOOLBOX)
    other = engine_index.updated(added=(), removed=[tool.name for tool in TOOLBOX])
    other = other.updated(added=shuffled, removed=())
    for query in ("weather in a city", "查询火车票", "погода", "open ticket"):
        assert ranking(engine_index, query) == ranking(other, query)


def test_search_allowed_filters_before_cut_and_counts(every_engine: str) -> None:
    tools = [Tool(name=f"note_{number}", description="A note.") for number in range(8)]
    result = built(every_engine, *tools).search(
        "note", limit=2, allowed=lambda name: name > "note_4"
    )
    assert [match.name for match in result.matches] == ["note_5", "note_6"]
    assert (result.total_found, result.total_tools) == (3, 3)


def test_search_allowed_hides_exact_names(every_engine: str) -> None:
    result = built(every_engine, *TOOLBOX).search(
        "get_weather", limit=5, allowed=lambda name: False
    )
    assert (result.matches, result.total_found, result.total_tools) == ((), 0, 0)


@pytest.mark.parametrize("engine_name", sorted({*WITH_WORDS, *WITHOUT_VECTORS}))
def test_search_allowed_reports_words_of_hidden_tools_as_unmatched(engine_name: str) -> None:
    result = built(engine_name, *TOOLBOX).search(
        "weather", limit=5, allowed=lambda n: n == "send_email"
    )
    assert result.unmatched == ("weather",)


def test_search_several_queries_are_merged(engine: str) -> None:
    index = built(engine, *TOOLBOX)
    result = index.search(["weather forecast", "send email", "weather"], limit=5)
    assert result.query == "weather forecast | send email | weather"
    assert {match.name for match in result.matches} == {"get_weather", "send_email"}
    best = {**dict(ranking(index, "weather")), **dict(ranking(index, "weather forecast"))}
    got = {match.name: match.score for match in result.matches}
    assert got["get_weather"] == max(
        dict(ranking(index, "weather"))["get_weather"], best["get_weather"]
    )


def test_search_no_queries_finds_nothing(every_engine: str) -> None:
    assert built(every_engine, *TOOLBOX).search([], limit=5).matches == ()


@pytest.mark.parametrize("limit", [0, -1])
def test_search_limit_of_nothing_still_counts(every_engine: str, limit: int) -> None:
    result = built(every_engine, *TOOLBOX).search("weather", limit=limit)
    assert (result.matches, result.total_found) == ((), 1)


def test_search_total_found_counts_before_the_cut(every_engine: str) -> None:
    tools = [Tool(name=f"note_{number}", description="A note.") for number in range(8)]
    result = built(every_engine, *tools).search("note", limit=3)
    assert (len(result.matches), result.total_found, result.total_tools) == (3, 8, 8)


def test_search_match_carries_description_and_server(every_engine: str) -> None:
    tool = Tool(name="find", description="Finds a file.", server="disk", kind="mcp")
    match = built(every_engine, tool).search("file", limit=1).matches[0]
    assert (match.description, match.server) == ("Finds a file.", "disk")


def test_search_unmatched_lists_unknown_words_in_order(engine: str) -> None:
    result = built(engine, *TOOLBOX).search("the Qwzx weather of Плюк, Qwzx?", limit=5)
    assert result.unmatched == ("Qwzx", "Плюк")


def test_search_unmatched_chinese_lists_unknown_stretches(engine: str) -> None:
    result = built(engine, *TOOLBOX).search("查询火车票，蝴蝶标本", limit=5)
    assert result.unmatched == ("蝴蝶标本",)


def test_search_unmatched_is_bounded(every_engine: str) -> None:
    query = " ".join(f"zq{number}x" for number in range(500))
    assert len(built(every_engine, *TOOLBOX).search(query, limit=5).unmatched) <= 12


def test_search_function_word_does_not_dump_the_catalog(every_engine: str) -> None:
    tools = [Tool(name=f"t{n}", description=f"The tool for you and x{n}.") for n in range(50)]
    assert names(built(every_engine, *tools), "the you and for dentist") == []


@pytest.mark.parametrize("engine_name", WITHOUT_VECTORS)
def test_search_incidental_common_word_does_not_dump_the_catalog(engine_name: str) -> None:
    tools = [Tool(name=f"t{n}", description=f"Data number {n}.") for n in range(200)]
    result = built(engine_name, *tools).search("book a dentist appointment with data", limit=5)
    assert result.total_found == 0


def test_search_floor_of_one_leaves_exact_names(every_engine: str) -> None:
    index = built(every_engine, *TOOLBOX, floor=1.0)
    assert names(index, "weather") == []
    assert names(index, "get_weather") == ["get_weather"]


def test_search_floor_of_zero_keeps_out_what_shares_no_word(every_engine: str) -> None:
    assert names(built(every_engine, *TOOLBOX, floor=0.0), "currency") == ["convert_currency"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("issues on github", "createGitHubIssue"),
        ("git hub", "createGitHubIssue"),
        ("emails", "send_email"),
        ("converting currencies", "convert_currency"),
        ("火车票", "query_train"),
        ("我想查一下火 车 票", "query_train"),
        ("какая погода в городах", "погода_сейчас"),
        ("ｗｅａｔｈｅｒ", "get_weather"),
    ],
)
def test_search_finds_by_meaningful_forms(engine: str, query: str, expected: str) -> None:
    assert names(built(engine, *TOOLBOX), query)[0] == expected


def test_search_finds_nested_parameters(engine: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "filter": {
                "type": "object",
                "properties": {
                    "zodiac": {"description": "A celestial house.", "enum": ["capricorn"]}
                },
            }
        },
    }
    index = built(engine, Tool(name="horoscope", parameters=schema), *TOOLBOX)
    for query in ("zodiac", "celestial house", "capricorn"):
        assert names(index, query)[:1] == ["horoscope"]


def test_search_self_referring_schema_is_read_once(engine: str) -> None:
    schema = {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "description": "A walrus.",
                "properties": {"child": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
            }
        },
    }
    assert names(built(engine, Tool(name="tree", parameters=schema)), "walrus") == ["tree"]


def test_build_hostile_definitions_are_found(engine: str) -> None:
    """A long description and a schema 300 deep; a test that takes too long is ended."""
    schema: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    for _ in range(150):
        schema = {"type": "object", "properties": {"deeper": schema}}
    tools = [
        Tool(name="long", description="word 天气 " * (125_000 if IS_LONG else 12_500)),
        Tool(name="d", parameters=schema),
    ]
    assert names(built(engine, *tools), "deeper") == ["d"]


def test_scores_stay_between_zero_and_one(every_engine: str) -> None:
    loud = Tool(name="weather", description="weather " * 500, aliases=["weather"] * 5)
    scores = [s for _, s in ranking(built(every_engine, loud, *TOOLBOX), "weather city forecast")]
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


_WORDS = st.sampled_from(
    ["get", "weather", "mail", "file", "天气", "邮件", "погода", "почта", "user_id", "createIssue"]
)
_TEXTS = st.lists(_WORDS, max_size=6).map(" ".join)
_TOOLS = st.lists(
    st.builds(Tool, name=st.sampled_from([f"tool_{n}" for n in range(12)]), description=_TEXTS),
    max_size=10,
    unique_by=lambda tool: tool.name,
)


@settings(max_examples=500 if IS_LONG else 20, deadline=None)
@given(first=_TOOLS, changes=st.lists(st.tuples(_TOOLS, st.sets(st.integers(0, 11))), max_size=4))
@pytest.mark.parametrize("engine_name", EVERY_ENGINE)
def test_updated_ranks_as_a_fresh_build(
    engine_name: str, first: list[Tool], changes: list[tuple[list[Tool], set[int]]]
) -> None:
    index, tools = built(engine_name, *first), {tool.name: tool for tool in first}
    for added, gone in changes:
        removed = [f"tool_{number}" for number in gone]
        index = index.updated(added=added, removed=removed)
        tools = {name: tool for name, tool in tools.items() if name not in removed}
        tools.update((tool.name, tool) for tool in added)
    fresh = built(engine_name, *tools.values())
    for query in ("get weather", "天气邮件", "почта user", "tool", "createIssue qqq"):
        assert index.search(query, limit=20) == fresh.search(query, limit=20)


def test_updated_leaves_the_old_index_as_it_was(every_engine: str) -> None:
    index = built(every_engine, *TOOLBOX)
    before = ranking(index, "weather")
    index.updated(added=[Tool(name="weather", description="weather")], removed=["get_weather"])
    assert ranking(index, "weather") == before


@cache
def _toolbox(engine_name: str) -> ToolSearchIndex:
    return built(engine_name, *TOOLBOX)


@settings(max_examples=500 if IS_LONG else 40, deadline=None)
@given(query=st.text(max_size=300), limit=st.integers(-1, 10))
@pytest.mark.parametrize("engine_name", EVERY_ENGINE)
def test_search_any_text_never_raises(engine_name: str, query: str, limit: int) -> None:
    result = _toolbox(engine_name).search(query, limit=limit)
    result.to_json().encode()
    assert len(result.matches) <= max(limit, 0)
