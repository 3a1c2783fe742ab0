"""Queries with operators, and plain text that only looks like one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.registry import WITH_LANGUAGE
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.text.query_language import parse_query, selected_names

TOOLS = (
    Tool(name="create_issue", description="Create an issue on GitHub.", server="github"),
    Tool(name="list_issues", description="List all issues of a repository.", server="github"),
    Tool(name="delete_repository", description="Delete a repository.", server="github"),
    Tool(name="gitlab_merge", description="Merge a request.", server="gitlab", tags=["review"]),
    Tool(name="create_event", description="Create a calendar event.", server="calendar"),
    Tool(name="get_weather_forecast", description="Weather of the next days.", tags=["climate"]),
    Tool(name="forecast_sales", description="Sales, and the weather behind them.", tags=["money"]),
    Tool(name="查询天气", description="查询城市的天气预报"),
    Tool(name="发送邮件", description="给联系人发送邮件"),
)

PLAIN = (
    "github: issue",
    "the following: create issue",
    "create (issue",
    "create issue)",
    "create issue :)",
    "https://github.com/a/b?issue=1&create=2#top",
    "issue in C++ and C#",
    "create and issue or repository not",
    "file-read issue",
    "read/write issue",
    "create AND",
    "OR issue",
    "issue OR (event OR qwzx)",
    "issue AND AND create",
    'create "issue',
    'create "weather issue"',
    'create "issue"~2',
    "issue^2 create~1",
    "- issue - create",
    "issue && create || event",
    "Please create an issue AND an event",
    "CREATE ISSUE AND EVENT",
    "create issue\n-event",
    "call +49 30 or -5 for issue",
    "issue OR event",
    "(issue create)",
    "name: issue",
    "foo:issue",
    "git hub issue * event",
    '"create the event that is no issue"',
    "select: create an issue",
    "+",
    "()",
    '""',
)


@pytest.fixture(params=WITH_LANGUAGE)
def index(request: pytest.FixtureRequest) -> ToolSearchIndex:
    """The tools in every engine whose queries are in the query language."""
    chosen: Any = request.param
    return build_index(TOOLS, SearchSettings(engine=chosen))


def names(index: ToolSearchIndex, query: str | Sequence[str], limit: int = 10) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=limit).matches]


@pytest.mark.parametrize("query", PLAIN)
def test_search_plain_text_ranks_as_without_the_language(query: str) -> None:
    engine = Bm25Engine(TOOLS)
    plain = RankedIndex(engine, min_relevance=0.1, has_operators=False)
    index = RankedIndex(engine, min_relevance=0.1)
    assert index.search(query, limit=20) == plain.search(query, limit=20)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("create -issue", {"create_event"}),
        ("create NOT issue", {"create_event"}),
        ("create -name:issue", {"create_event"}),
        ('create -"calendar event"', {"create_issue"}),
        ("+repository issue", {"list_issues", "delete_repository"}),
        ("create AND issue", {"create_issue"}),
        ("create AND qwzx", set()),
        ("create AND NOT issue", {"create_event"}),
        ("(issue OR event) AND create", {"create_issue", "create_event"}),
        ("(issue AND list) OR (event AND create)", {"list_issues", "create_event"}),
        ("merge OR list AND issue", {"gitlab_merge", "list_issues"}),
        ("issue AND (create OR (list -qwzx))", {"create_issue", "list_issues"}),
        ('"weather forecast"', {"get_weather_forecast"}),
        ('"forecasts sales"', {"forecast_sales"}),
        ('+"git hub" create', {"create_issue"}),
        ("git*", {"create_issue", "list_issues", "delete_repository", "gitlab_merge"}),
        ("repository*", {"list_issues", "delete_repository"}),
        ("name:fore*", {"get_weather_forecast", "forecast_sales"}),
        ("name:weather", {"get_weather_forecast"}),
        ("description:weather", {"get_weather_forecast", "forecast_sales"}),
        ("server:github", {"create_issue", "list_issues", "delete_repository"}),
        ("server:github AND issue", {"create_issue", "list_issues"}),
        (
            "server:github OR server:calendar -delete",
            {"create_issue", "list_issues", "create_event"},
        ),
        ("tag:review", {"gitlab_merge"}),
        ("+tag:climate weather", {"get_weather_forecast"}),
        ('description:"calendar event"', {"create_event"}),
        ("天气 AND 预报", {"查询天气"}),
        ("预报 OR 邮件 -发送", {"查询天气"}),
        ("发送*", {"发送邮件"}),
        ('"天气预报"', {"查询天气"}),
    ],
)
def test_search_operators_filter(index: ToolSearchIndex, query: str, expected: set[str]) -> None:
    result = index.search(query, limit=10)
    assert {match.name for match in result.matches} == expected
    assert result.total_found == len(expected)
    assert all(0 < match.score < 1 for match in result.matches)


GROUPED = (
    Tool(name="status", namespace="git", category="source control", description="Show changes."),
    Tool(name="show", namespace="svn tools", tags=["git"], description="Source of git."),
    Tool(name="plain", description="git, source control"),
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("namespace:git", {"status"}),
        ("namespace:svn", {"show"}),
        ('namespace:"svn tools"', {"show"}),
        ("namespace:sv*", {"show"}),
        ("category:control", {"status"}),
        ('category:"source control"', {"status"}),
        ("-namespace:git", {"show", "plain"}),
        ("namespace:git OR namespace:svn", {"status", "show"}),
        ("tag:git", {"status", "show"}),
        ("namespace:nothing", set[str]()),
    ],
)
@pytest.mark.parametrize("engine", WITH_LANGUAGE)
def test_namespace_and_category_are_fields(engine: Any, query: str, expected: set[str]) -> None:
    index = build_index(GROUPED, SearchSettings(engine=engine))
    assert {match.name for match in index.search(query, limit=9).matches} == expected


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("-issue", {"create_issue", "list_issues"}),
        ("NOT issue", {"create_issue", "list_issues"}),
        ("NOT issue NOT server:gitlab", {"create_issue", "list_issues", "gitlab_merge"}),
        ("-(create OR delete)", {"create_issue", "create_event", "delete_repository"}),
        ("NOT qwzx", set()),
    ],
)
def test_search_exclusion_alone_finds_everything_else(
    index: ToolSearchIndex, query: str, excluded: set[str]
) -> None:
    found = index.search(query, limit=20)
    assert [match.name for match in found.matches] == sorted(
        tool.name for tool in TOOLS if tool.name not in excluded
    )
    assert found.total_found == len(TOOLS) - len(excluded)
    hidden = index.search(query, limit=20, allowed=lambda name: name != "forecast_sales")
    assert "forecast_sales" not in [match.name for match in hidden.matches]


# Each has every word of `createGitHubIssue` somewhere in its definition, but not each in its name.
COMPOUND_NAMES = (
    Tool(name="createGitHubIssue", description="Open a ticket."),
    Tool(name="creategithubissue", description="Its former spelling."),
    Tool(name="create_issue", description="Like createGitHubIssue, for any git hub."),
    Tool(name="create_git_branch", description="For a GitHub issue that a hub has."),
    Tool(name="github_search", description="Search before createGitHubIssue."),
    Tool(name="list_issues", description="Create nothing on a git hub, GitHub or another."),
)


@pytest.mark.parametrize("engine", WITH_LANGUAGE)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name:createGitHubIssue", {"createGitHubIssue", "creategithubissue"}),
        ("name:create_git_hub_issue", {"createGitHubIssue", "creategithubissue"}),
        ("name:github", {"createGitHubIssue", "github_search"}),
        ("name:GitHub", {"createGitHubIssue", "github_search"}),
        ("name:create/issue", {"createGitHubIssue", "create_issue"}),
        ("name:create_iss*", {"createGitHubIssue", "create_issue"}),
        ("name:create_git_b*", {"create_git_branch"}),
        ("name:createGitHub*", {"createGitHubIssue", "creategithubissue"}),
        (
            "create -name:createGitHubIssue",
            {"create_issue", "create_git_branch", "github_search", "list_issues"},
        ),
    ],
)
def test_search_field_filter_matches_every_part_of_a_compound_name(
    engine: Any, query: str, expected: set[str]
) -> None:
    index = build_index(COMPOUND_NAMES, SearchSettings(engine=engine))
    assert set(names(index, query)) == expected


def test_search_operators_leave_the_ranking_to_the_engine(index: ToolSearchIndex) -> None:
    assert names(index, "+server:github delete")[0] == "delete_repository"
    assert names(index, "(server:github AND issue) OR create_issue")[0] == "create_issue"
    assert names(index, "merge*")[0] == "gitlab_merge"


def test_search_operators_find_what_a_floor_would_cut() -> None:
    """An operator finds a tool however small its score."""
    tools = [Tool(name=f"t{n}", description="common word", server="s") for n in range(8)]
    index = build_index([*tools, Tool(name="qwzx")], SearchSettings(min_relevance=0.9))
    assert len(names(index, "common AND word")) == 8
    assert len(names(index, "server:s")) == 8


@pytest.mark.parametrize(
    "query", ["common AND word", "server:s", "+common rare", "common -qwzx", "rare", "common word"]
)
def test_search_no_score_depends_on_min_relevance(query: str) -> None:
    tools = [
        Tool(name=f"t{n}", description=f"common word {'x ' * n}", server="s") for n in range(8)
    ]
    tools += [Tool(name="qwzx"), Tool(name="u", description="rare rare common", server="s")]
    scores: dict[str, set[float]] = {}
    for floor in (0.0, 0.05, 0.1, 0.4, 0.9):
        index = build_index(tools, SearchSettings(min_relevance=floor))
        for match in index.search(query, limit=20).matches:
            scores.setdefault(match.name, set()).add(match.score)
    assert scores
    assert {name for name, found in scores.items() if len(found) > 1} == set()


def test_search_select_gives_exact_names_in_their_order(index: ToolSearchIndex) -> None:
    result = index.search("select:list_issues, CREATE_EVENT,qwzx,create_issue", limit=10)
    found = [(match.name, match.score) for match in result.matches]
    assert found == [("list_issues", 1.0), ("create_event", 1.0), ("create_issue", 1.0)]
    assert (result.total_found, result.unmatched) == (3, ("qwzx",))


def test_search_select_is_cut_at_the_limit(index: ToolSearchIndex) -> None:
    result = index.search("select:list_issues,create_issue", limit=1)
    assert ([m.name for m in result.matches], result.total_found) == (["list_issues"], 2)


def test_search_select_of_unknown_names_is_searched_as_words() -> None:
    assert names(build_index(TOOLS), "select:delete,repository")[:1] == ["delete_repository"]


def test_search_select_merges_with_other_queries(index: ToolSearchIndex) -> None:
    found = names(index, ["merge", "select:list_issues,create_issue"])
    assert found[:3] == ["list_issues", "create_issue", "gitlab_merge"]


@pytest.mark.parametrize(
    "query", ["select:create_issue,list_issues", "issue AND github", "iss*", '"create issue"']
)
def test_search_operators_give_nothing_of_hidden_tools_away(query: str) -> None:
    visible = [tool for tool in TOOLS if tool.server != "github"]
    seen = {tool.name for tool in visible}
    found = build_index(TOOLS).search(query, limit=10, allowed=lambda name: name in seen)
    alone = build_index(visible).search(query, limit=10)
    assert found.names == alone.names
    assert (found.total_found, found.unmatched) == (alone.total_found, alone.unmatched)


def test_search_operators_after_an_update(index: ToolSearchIndex) -> None:
    changed = index.updated(
        added=[Tool(name="close_issue", server="github")], removed=["create_issue"]
    )
    assert set(names(changed, "server:github AND issue")) == {"list_issues", "close_issue"}
    assert set(names(changed, "clos*")) == {"close_issue"}


def test_search_name_with_operators_is_a_name() -> None:
    index = build_index([*TOOLS, Tool(name="create AND issue")])
    assert names(index, "create AND issue")[0] == "create AND issue"


def test_search_unmatched_leaves_excluded_words_out(index: ToolSearchIndex) -> None:
    """Only wanted words can be missing."""
    result = index.search("issue AND plugh -qwzx", limit=5)
    assert result.unmatched == ("plugh",)


@pytest.mark.parametrize(
    "query",
    [
        "(" * 10_000 + "issue" + ")" * 10_000,
        "(" * 900 + "issue" + ")" * 900,
        "issue AND " * 10_000 + "issue",
        "-" * 100_000,
        '"' * 100_001,
        "git* " * 300,
        "name:" * 20_000,
        "+issue " * 14_000,
        "select:" + "a," * 50_000,
        " " * 100_000 + "issue",
        "a" * 1_900 + "*",
        "(" * 15 + "git* AND issue" + ")" * 15,
    ],
    ids=lambda query: query[:8],
)
def test_search_hostile_syntax_is_answered(query: str) -> None:
    assert len(build_index(TOOLS).search(query, limit=5).matches) <= 5


def test_selected_names_are_bounded_and_differ() -> None:
    assert selected_names("select: a ,b,,a") == ("a", "b")
    assert len(selected_names("select:" + ",".join(map(str, range(900))))) == 256


_PARTS = ("issue", "git*", "AND", "OR", "NOT", "-", "+", "(", ")", '"', "name:", "tag:x", " ", ",")


@given(parts=st.lists(st.sampled_from(_PARTS), max_size=25))
def test_search_any_syntax_never_raises(parts: list[str]) -> None:
    result = build_index(TOOLS).search("".join(parts), limit=20)
    assert len(result.matches) == result.total_found


@given(text=st.text(max_size=60))
def test_parsed_any_text_never_raises(text: str) -> None:
    """Any text is plain or a group that asks for something or excludes something."""
    group = parse_query(text)
    assert group is None or any(group.wanted) or group.must_not


@pytest.mark.parametrize("name", ["metatool", "ultratool_zh", "callnavi", "acebench_en"])
def test_search_public_queries_rank_as_without_the_language(shared: Path, name: str) -> None:
    rows = (shared / "data" / name / "tools.jsonl").read_text("utf-8").splitlines()
    tools = [
        Tool(name=row["name"], description=row["description"]) for row in map(json.loads, rows)
    ]
    engine = Bm25Engine(tools)
    plain = RankedIndex(engine, min_relevance=0.1, has_operators=False)
    index = RankedIndex(engine, min_relevance=0.1)
    lines = (shared / "data" / name / "queries.jsonl").read_text("utf-8").splitlines()
    for query in [json.loads(line)["query"] for line in lines][::3]:
        assert index.search(query, limit=10) == plain.search(query, limit=10)
