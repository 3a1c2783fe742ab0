"""Several queries in one call of the search tool: reading them, and merging what they find."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import Chat, tool, toolbox
from tool_search import SearchResult, Tool, ToolCatalog, ToolSearchTool, build_index
from tool_search.i18n import LANGUAGES
from tool_search.search.discovery.search_tool import MAX_QUERIES, read_queries

MAILS = [tool(f"mail_{n}", description=f"Send a mail {'to a list ' * n}.") for n in range(9)]
ROOMS = [tool(f"room_{n}", description=f"Book a room {'with a screen ' * n}.") for n in range(9)]
COINS = [tool("coin_price", description="Price of a coin.")]
TOOLS = [*MAILS, *ROOMS, *COINS]


def search_tool(tools: Sequence[Tool] = TOOLS, **settings: Any) -> ToolSearchTool:
    """A search tool over a catalog."""
    catalog = ToolCatalog(tools)
    return ToolSearchTool(build_index(catalog.deferred), catalog, **settings)


def search(*queries: str, how: dict[str, Any] | None = None, **arguments: Any) -> SearchResult:
    """The result of one call over the usual tools."""
    return search_tool().run({"queries": list(queries), **arguments}, **(how or {}))


def names(result: SearchResult) -> list[str]:
    """The names of the matches."""
    return [match.name for match in result.matches]


@pytest.mark.parametrize(
    ("arguments", "queries"),
    [
        ({"queries": ["send a mail", "book a room"]}, ["send a mail", "book a room"]),
        ({"queries": "send a mail"}, ["send a mail"]),
        ({"queries": '["send a mail", "book a room"]'}, ["send a mail", "book a room"]),
        ({"queries": "[a-z]+"}, ["[a-z]+"]),
        ({"queries": [{"query": "send a mail"}, {"other": 1}, None, 7]}, ["send a mail", "7"]),
        ({"query": "send a mail"}, ["send a mail"]),
        ({"query": ["send a mail", "book a room"]}, ["send a mail", "book a room"]),
        ({"queries": ["a"], "query": "b"}, ["a", "b"]),
        ({"queries": ["a"], "query": " A "}, ["a"]),
        ({"queries": [], "query": "b"}, ["b"]),
        ({"queries": ["", " "], "query": ""}, [""]),
        ({"queries": {}}, [""]),
        ({}, [""]),
        ({"queries": ["send a mail"] * 1000}, ["send a mail"]),
    ],
)
def test_queries_are_read_whatever_their_form(
    arguments: dict[str, Any], queries: list[str]
) -> None:
    assert list(read_queries(arguments)) == queries


def test_each_query_gives_its_best_tool_before_any_gives_its_second() -> None:
    first = names(search("send a mail"))
    second = names(search("book a room"))
    found = names(search("send a mail", "book a room"))
    assert found == [name for pair in zip(first, second, strict=True) for name in pair][:8]


def test_a_need_with_one_tool_is_not_crowded_out() -> None:
    assert names(search("send a mail", "book a room", "price of a coin"))[2] == "coin_price"


def test_a_tool_that_two_queries_find_takes_one_place() -> None:
    found = names(search("send a mail", "mail a list"))
    assert len(found) == len(set(found)) == 8


@pytest.mark.parametrize(
    ("queries", "limit", "count"),
    [(1, None, 8), (1, 5, 5), (2, None, 8), (2, 1, 2), (2, 3, 6), (2, 5, 8), (2, 99, 8), (3, 1, 3)],
)
def test_the_budget_grows_with_the_queries(queries: int, limit: int | None, count: int) -> None:
    asked = ["send a mail", "book a room", "price of a coin"][:queries]
    assert len(search(*asked, limit=limit).matches) == count


def test_a_lower_max_results_holds_for_one_query_in_a_list_too() -> None:
    few = search_tool(max_results=3)
    assert len(few.run({"queries": ["send a mail"]}).matches) == 3
    assert len(search_tool().run({"query": "send a mail"}).matches) == 5
    assert len(search_tool().run({"queries": ["send a mail"]}).matches) == 8


def test_each_query_has_a_place_even_above_the_budget() -> None:
    tools = [tool(f"t{n}", description=f"word{n} common") for n in range(30)]
    asked = [f"word{n}" for n in range(12)]
    assert names(search_tool(tools).run({"queries": asked})) == [f"t{n}" for n in range(12)]


def test_more_results_a_query_than_in_all_are_still_given_to_one_query() -> None:
    many = search_tool(toolbox(30), max_results=20, max_results_total=8)
    assert len(many.run({"queries": ["common"]}).matches) == 20


def test_a_hundred_queries_are_bounded_and_the_model_reads_how_many_were_searched() -> None:
    tools = [tool(f"t{n}", description=f"word{n} common") for n in range(100)]
    result = search_tool(tools).run({"queries": [f"word{n}" for n in range(100)]})
    assert names(result) == [f"t{n}" for n in range(MAX_QUERIES)]
    assert f"first {MAX_QUERIES} queries" in (result.hint or "")
    assert len(result.query) <= 1000


def test_empty_queries_among_others_are_passed_over() -> None:
    assert names(search("", "?!", "price of a coin")) == ["coin_price"]


def test_listed_tools_are_all_given_whatever_the_limit() -> None:
    listed = [each.name for each in (*ROOMS, *MAILS)]
    assert names(search(f"select:{','.join(listed)}", limit=1)) == listed


def test_listed_tools_take_no_places_of_other_queries() -> None:
    listed = [each.name for each in ROOMS]
    found = names(search("send a mail", f"select:{','.join(listed)}"))
    assert found[:9] == listed
    assert len(found[9:]) == 5
    assert set(found[9:]) <= {each.name for each in MAILS}


def test_a_list_of_tools_is_bounded() -> None:
    result = search_tool(toolbox(90)).run(
        {"queries": ["select:" + ",".join(f"tool_{n:03}" for n in range(90))]}
    )
    assert len(result.matches) == 50
    assert result.total_found == 90


def test_a_list_of_unknown_tools_is_answered() -> None:
    result = search("select:nothing_here,nor_this")
    assert not result.matches
    assert result.hint == "no tool matches: try other words, or do without"


def test_a_need_whose_tools_are_callable_says_so() -> None:
    callable_now = {"coin_price"}
    result = search(
        "send a mail", "price of a coin", how={"callable_now": callable_now, "discovered": 1}
    )
    assert len(result.matches) == 5
    assert result.loaded == ("coin_price",)
    assert result.hint == "already available, call directly: coin_price"


def test_a_need_without_a_tool_is_named() -> None:
    assert search("send a mail", "qwzx qqq").hint == "no tool matches: qwzx qqq"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_hint_exists_in_each_language(language: Any) -> None:
    tools = search_tool(language=language)
    asked = ["send a mail", "price of a coin", "qwzx", *(f"zz{n}" for n in range(20))]
    result = tools.run({"queries": asked}, callable_now={"coin_price"}, discovered=1)
    hint = result.hint or ""
    assert "coin_price" in hint
    assert "qwzx" in hint
    assert str(MAX_QUERIES) in hint


def test_the_answer_has_no_more_keys_than_that_of_one_query() -> None:
    content = json.loads(search("send a mail", "book a room").to_json())
    assert set(content) == {"query", "matches", "total_found", "total_tools"}
    assert content["query"] == "send a mail | book a room"
    assert content["total_found"] == 18


def test_each_of_several_queries_teaches_by_itself() -> None:
    chat = Chat([*TOOLS, *toolbox(30)])
    chat.begin()
    chat.call("tool_search", {"queries": ["send a mail", "price of a coin"]})
    chat.call("coin_price", {"count": 1})
    lessons = chat.session.drain_lessons()
    assert [(lesson.query, lesson.tool) for lesson in lessons] == [
        ("price of a coin", "coin_price")
    ]


@given(
    queries=st.lists(st.sampled_from(["mail", "room", "coin", "list", "screen", "", "zz"])),
    limit=st.integers(0, 9),
    total=st.integers(1, 12),
)
def test_any_queries_give_each_tool_once_within_the_budget(
    queries: list[str], limit: int, total: int
) -> None:
    tools = search_tool(max_results=3, max_results_total=total)
    result = tools.run({"queries": queries, "limit": limit}, callable_now={"mail_1"}, discovered=1)
    asked = len({query for query in queries if query})
    assert len(set(result.names)) == len(result.names)
    assert len(result.matches) <= max(3, total, asked)
    assert {name for part in result.parts for name in part.names} <= set(result.names)
    for part in result.parts:
        assert not part.matches or part.matches[0].name in names(result)
