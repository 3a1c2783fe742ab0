"""The engine `lexical`: tooldiscovery's substring scores."""

from __future__ import annotations

import pytest

from tool_search.adapters.compat.tooldiscovery import LexicalEngine
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchSettings, build_index

TOOLS = (
    Tool(name="git_status", description="What has changed.", namespace="vcs"),
    Tool(name="status", description="Whether all is well."),
    Tool(name="commit", description="Records the changes in git.", namespace="git"),
    Tool(name="push", description="Sends commits away.", tags=["git"]),
    Tool(name="merge_request", description="Asks for a merge.", server="gitlab"),
    Tool(name="gitlab_push", description="Sends away.", server="gitlab", namespace="x"),
)


def found(query: str, floor: float = 0.1) -> dict[str, float]:
    """Names and scores, best first."""
    index = build_index(TOOLS, SearchSettings(engine="lexical", min_relevance=floor))
    return {match.name: match.score for match in index.search(query, limit=10).matches}


@pytest.mark.parametrize(
    ("query", "points"),
    [
        (
            "git",
            {"git_status": 100, "commit": 50, "push": 10, "merge_request": 50, "gitlab_push": 150},
        ),
        ("status", {"git_status": 100, "status": 150}),
        ("  COMMIT ", {"commit": 150, "push": 10}),
        ("gitlab", {"gitlab_push": 150, "merge_request": 50}),
        ("git status", {}),
        ("changes in git", {"commit": 10}),
    ],
)
def test_scores_are_tooldiscoverys_points(query: str, points: dict[str, int]) -> None:
    """100 in the name, 50 for equality, 50 in the namespace, else 10 in the text."""
    engine = LexicalEngine(TOOLS)
    values = dict(zip(sorted(t.name for t in TOOLS), engine.scores(query).values, strict=True))
    reached = {name: round((value - 0.5) / 1.5 * 200) for name, value in values.items() if value}
    assert reached == points


def test_search_orders_by_points_and_then_by_name() -> None:
    assert list(found("git")) == ["gitlab_push", "git_status", "commit", "merge_request", "push"]


def test_search_default_floor_cuts_no_hit() -> None:
    assert found("git") == found("git", floor=0.0)
    assert found("sends") == {"gitlab_push": found("sends")["push"], "push": found("sends")["push"]}


def test_search_words_apart_are_not_found() -> None:
    """A query of two words must occur literally, and is reported as a whole."""
    index = build_index(TOOLS, SearchSettings(engine="lexical"))
    result = index.search("merge commits", limit=5)
    assert (result.matches, result.unmatched) == ((), ("merge commits",))


@pytest.mark.parametrize("written", ["  TAG ONE ", "tag-one", "Tag One"])
def test_search_finds_a_tag_however_it_is_written(written: str) -> None:
    index = build_index(
        [Tool(name="a", tags=[written])], SearchSettings(preset="tooldiscovery", engine="lexical")
    )
    assert [match.name for match in index.search("tag-one", limit=5).matches] == ["a"]
