"""The engine `regex`: a model's patterns."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.engines.regex import RegexEngine
from tool_search.search.index.ranking import RankedIndex

TOOLS = (
    Tool(name="get_user", description="A person."),
    Tool(name="get_user_data", description="What is known of a person."),
    Tool(name="create_issue", description="Open a ticket on GitHub.\nNot a pull request."),
    Tool(name="send_mail", parameters={"properties": {"to": {"description": "An address."}}}),
    Tool(name="погода_сейчас", description="Текущая погода в городе."),
    Tool(name="weather", aliases=["forecast"], server="sky"),
)


def built(*tools: Tool) -> ToolSearchIndex:
    """An index over the tools."""
    return build_index(tools or TOOLS, SearchSettings(engine="regex"))


def names(query: str, *tools: Tool) -> list[str]:
    """The names that a pattern finds."""
    return [match.name for match in built(*tools).search(query, limit=10).matches]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("get_.*_data", ["get_user_data"]),
        ("GET_user$", ["get_user"]),
        (r"^get_\w+", ["get_user", "get_user_data"]),
        (r"\Aget_user\Z", ["get_user"]),
        ("issue|mail", ["create_issue", "send_mail"]),
        ("(?i)GitHub", ["create_issue"]),
        ("^addr?|^an addr", ["send_mail"]),
        ("^(to|from)$", ["send_mail"]),
        (r"^погода_\w+$", ["погода_сейчас"]),
        (r"\bПОГОДА\b в", ["погода_сейчас"]),
        (r"[\w]+_сейчас", ["погода_сейчас"]),
        ("fore.*st", ["weather"]),
        ("github.*pull", ["create_issue"]),
        ("(?P<what>tick)et+", ["create_issue"]),
        ("qwzx.*", []),
        ("x*", []),
    ],
)
def test_search_pattern_finds_what_it_matches(pattern: str, expected: list[str]) -> None:
    """It is searched in names, descriptions and parameters, ignoring case."""
    assert sorted(names(pattern)) == sorted(expected)


def test_search_pattern_ranks_by_field_and_share_of_the_name() -> None:
    tools = (
        Tool(name="a", parameters={"properties": {"city": {}}}),
        Tool(name="b", description="For a city."),
        Tool(name="list_city_names"),
        Tool(name="find_city"),
        Tool(name="city_find"),
        Tool(name="cities"),
    )
    assert names("cit(y|ies)", *tools) == [
        "cities", "city_find", "find_city", "list_city_names", "b", "a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "(weather",
        "weather)",
        "weather in C++",
        "*weather",
        "[weather",
        "weather(?=x)",
        r"(w)eather\1 weather",
        "weather{1000}{1000}",
        "weather \\",
        "weather " * 200,
    ],
    ids=lambda query: query[:12],
)
def test_search_what_is_no_pattern_is_searched_as_words(query: str) -> None:
    plain = RankedIndex(Bm25Engine(TOOLS), min_relevance=0.1, has_operators=False)
    found, words = built().search(query, limit=5), plain.search(query, limit=5)
    assert [match.name for match in found.matches] == ["weather"]
    assert (found.total_found, found.unmatched) == (words.total_found, words.unmatched)


def test_search_text_without_signs_is_searched_as_words_too() -> None:
    assert names("What about mails?") == ["send_mail"]
    assert names("eathe") == ["weather"]


def test_search_pattern_has_no_operators() -> None:
    """A plus or a bracket belongs to the pattern; only `select:` is read."""
    assert sorted(names("get_use+r")) == ["get_user", "get_user_data"]
    assert names("select:weather,get_user") == ["weather", "get_user"]


def test_search_pattern_never_needs_words() -> None:
    assert built().search("qwzx.*plugh", limit=5).unmatched == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)+b|(.*)*x",
        "(.*){20}x",
        "[ -~]*a[ -~]{150}z",
        "(a?){100}a{100}b",
        "((((((a*)*)*)*)*)*)*b",
        ".*" * 240 + "b",
        "(" * 240 + "a" + ")" * 240,
        "(?:a{0,9}){0,90}b",
        r"(\pL+\s?)+\d$",
    ],
    ids=lambda pattern: pattern[:12],
)
def test_search_runaway_pattern_is_quick(pattern: str) -> None:
    tools = [Tool(name=f"t{n}", description="a" * 1_000 + "!" * 900) for n in range(50)]
    index = built(*tools)
    index.search("warm", limit=1)
    start = time.perf_counter()
    index.search(pattern, limit=5)
    assert time.perf_counter() - start < 2.0


@given(pattern=st.text(alphabet="ab._\\[](){}|*+?^$-w1,:P<>!=", max_size=30))
def test_search_any_pattern_never_raises(pattern: str) -> None:
    assert len(built().search(pattern, limit=3).matches) <= 3


def test_build_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(SearchError, match=r"\[regex\]"):
        RegexEngine(TOOLS)
