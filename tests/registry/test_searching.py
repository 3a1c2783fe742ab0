"""Searches, filters, pages and cursors of a registry."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.registry.samples import GITHUB, filled, tool
from tool_search import SearchError, SearchResult, SearchSettings, Tool, build_index
from tool_search.search import SearchMatch
from tool_search.sources.registry import (
    InvalidCursorError,
    RegistryError,
    ToolRegistry,
    ToolSummary,
    UnstableOrderError,
)

LEXICAL = SearchSettings(preset="tooldiscovery", engine="lexical")


class OwnIndex:
    """An engine of one's own: every tool, in the order in which they came."""

    has_stable_order = True

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tools

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        names = [one.name for one in self.tools if allowed is None or allowed(one.name)]
        found = tuple(SearchMatch(name=name) for name in names[:limit])
        return SearchResult(query=str(query), matches=found)

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> OwnIndex:
        kept = [one for one in self.tools if one.name not in removed]
        return OwnIndex([*kept, *added])


class UnstableIndex(OwnIndex):
    """An engine that does not declare its order."""

    has_stable_order = False


def ids(found: Sequence[ToolSummary]) -> list[str]:
    """The ids of what was found, in order."""
    return [one.id for one in found]


def test_a_result_has_a_summary_and_no_schema() -> None:
    registry = ToolRegistry()
    definition = {
        "name": "status",
        "description": "d" * 500,
        "namespace": "git",
        "tags": ["Source Control"],
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        "_meta": {
            "category": "vcs",
            "inputModes": ["text/plain"],
            "outputModes": ["application/json", 7],
            "securityRequirements": [{"oauth": []}, {"apiKey": []}],
        },
    }
    registry.register(definition, GITHUB)
    (found,) = registry.search("status")
    assert found == ToolSummary(
        id="git:status", name="status", namespace="git", summary="d" * 120, category="vcs",
        input_modes=("text/plain",), output_modes=("application/json",),
        security_summary="apiKey,oauth", tags=("source-control",),
    )  # fmt: skip
    assert found.to_dict() == {
        "id": "git:status", "name": "status", "namespace": "git", "shortDescription": "d" * 120,
        "category": "vcs", "inputModes": ["text/plain"], "outputModes": ["application/json"],
        "securitySummary": "apiKey,oauth", "tags": ["source-control"],
    }  # fmt: skip
    assert found.score > 0
    assert found.score_type == "bm25"


def test_a_summary_of_its_own_comes_before_the_description_and_counts_in_characters() -> None:
    registry = ToolRegistry()
    registry.register(tool("one", summary="查" * 130), GITHUB)
    registry.register({"name": "two", "inputSchema": {}, "_meta": {"summary": "Short."}}, GITHUB)
    assert [one.summary for one in registry.page(limit=2).items] == ["查" * 120, "Short."]
    assert registry.page(limit=1).items[0].short_description == "查" * 120


def test_an_empty_query_gives_the_first_tools_by_id() -> None:
    registry = filled("c", "a", "b")
    assert ids(registry.search("")) == ["git:a", "git:b", "git:c"]
    assert ids(registry.search("  ", limit=2)) == ["git:a", "git:b"]
    assert registry.search("changes", limit=0) == registry.search("", limit=-1) == ()


def test_equal_scores_go_by_id_and_not_by_name() -> None:
    registry = ToolRegistry(settings=LEXICAL)
    for space, name in (("z", "a_status"), ("a", "z_status"), ("m", "m_status")):
        registry.register(tool(name, namespace=space), GITHUB)
    in_order = ["a:z_status", "m:m_status", "z:a_status"]
    assert ids(registry.search("status")) == in_order
    assert ids(registry.search("status", limit=1)) == in_order[:1]


def test_names_listed_by_a_query_stay_in_its_order() -> None:
    registry = filled("a", "b", "c")
    assert ids(registry.search("select:c,a")) == ["git:c", "git:a"]


def test_filters_are_by_namespace_tag_and_category() -> None:
    registry = ToolRegistry()
    registry.register(tool("one", tags=["Fast Track"], category="VCS"), GITHUB)
    registry.register(tool("two", tags=["slow", "查找"]), GITHUB)
    registry.register(tool("three", namespace="svn", category="vcs"), GITHUB)
    registry.register(tool("four", namespace=None), GITHUB)

    def found(**filters: Any) -> list[str]:
        assert set(ids(registry.search("changes", **filters))) == set(
            ids(registry.page(limit=9, **filters).items)
        )
        return ids(registry.page(limit=9, **filters).items)

    assert found(namespace="git") == ["git:one", "git:two"]
    assert found(namespace="GIT") == found(namespace="") == []
    assert found(tags=["fast-track", "nothing"]) == found(tags="FAST track") == ["git:one"]
    assert found(tags=["查找"]) == ["git:two"]
    assert found(tags=["!"]) == []
    assert found(category="vcs ") == ["git:one", "svn:three"]
    assert found(category="") == []
    assert found(namespace="git", category="vcs") == ["git:one"]


@pytest.mark.parametrize(
    "wrong", [{"namespace": 7}, {"category": 7}, {"tags": [7]}, {"query": 7}, {"query": None}]
)
def test_a_filter_of_a_wrong_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RegistryError, match="must be"):
        filled("a").search(**{"query": "a", **wrong})


def test_results_can_have_a_least_score() -> None:
    registry = ToolRegistry()
    registry.register(tool("send_mail", description="Send a mail."), GITHUB)
    registry.register(tool("read", description="Read mail, letters, faxes and more."), GITHUB)
    best, other = registry.search("mail")
    assert best.score > other.score
    assert registry.search("mail", min_score=best.score) == (best,)
    assert registry.search("mail", min_score=1.1) == ()


def test_a_field_of_the_query_language_is_namespace_or_category() -> None:
    registry = ToolRegistry()
    registry.register(tool("one", category="source control"), GITHUB)
    registry.register(tool("two", namespace="svn", tags=["git"], description="git"), GITHUB)
    assert ids(registry.search("namespace:git")) == ["git:one"]
    assert ids(registry.search('category:"source control"')) == ["git:one"]
    assert ids(registry.search("namespace:sv* changes OR git")) != []
    assert ids(registry.search("-namespace:git")) == ["svn:two"]
    assert registry.search("category:git") == ()


def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    registry = filled(*"edcba")
    first = registry.page(limit=2)
    second = registry.page(limit=2, cursor=first.next_cursor)
    last = registry.page(limit=2, cursor=second.next_cursor)
    assert ids(first.items + second.items + last.items) == [f"git:{name}" for name in "abcde"]
    assert last.next_cursor is None


@given(
    names=st.sets(st.text("abcdef", min_size=1, max_size=3), max_size=12),
    limit=st.integers(1, 5),
    query=st.sampled_from(["", "changes", "a", "name:a*"]),
)
def test_pages_are_the_whole_ranking_in_pieces(names: set[str], limit: int, query: str) -> None:
    registry = filled(*sorted(names, reverse=True))
    pieces, cursor = [], None
    while True:
        page = registry.page(query, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        pieces += ids(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.items) == limit
    assert pieces == ids(registry.search(query, limit=100))


def cursor_with(cursor: str | None, **changes: Any) -> str:
    """A cursor with other content than the registry wrote."""
    content = json.loads(base64.b64decode(cursor or ""))
    return base64.b64encode(json.dumps({**content, **changes}).encode()).decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": -1}, {"offset": "1"}, {"offset": True}, {"offset": None}, {"offset": 1.5},
        {"version": -1}, {"version": 99}, {"version": 0}, {"request": ""},
    ],
)  # fmt: skip
def test_a_cursor_that_was_changed_is_refused(changes: dict[str, Any]) -> None:
    registry = filled(*"abc")
    cursor = cursor_with(registry.page(limit=1).next_cursor, **changes)
    with pytest.raises(InvalidCursorError):
        registry.page(limit=1, cursor=cursor)


@given(st.text() | st.binary().map(lambda raw: base64.b64encode(raw).decode()))
def test_no_text_of_others_is_a_cursor(text: str) -> None:
    registry = filled("a")
    if text:
        with pytest.raises(InvalidCursorError):
            registry.page(limit=1, cursor=text)


def test_a_cursor_of_nested_json_is_refused() -> None:
    deep = base64.b64encode(b"[" * 700).decode()
    with pytest.raises(InvalidCursorError):
        filled("a").page(limit=1, cursor=deep)
    with pytest.raises(InvalidCursorError):
        filled("a").page(limit=1, cursor=7)  # type: ignore[arg-type]


def test_an_offset_past_the_end_is_an_empty_page() -> None:
    registry = filled(*"abc")
    far = cursor_with(registry.page(limit=1).next_cursor, offset=10**9)
    page = registry.page(limit=1, cursor=far)
    assert (page.items, page.next_cursor) == ((), None)


def test_a_cursor_is_stale_after_a_change_and_of_one_request() -> None:
    registry = filled(*"abc")
    cursor = registry.page("changes", limit=1).next_cursor
    with pytest.raises(InvalidCursorError, match="another request"):
        registry.page("show", limit=1, cursor=cursor)
    with pytest.raises(InvalidCursorError, match="another request"):
        registry.page("changes", limit=1, cursor=cursor, namespace="git")
    registry.register(tool("a"), GITHUB)  # equal: nothing changes
    assert registry.page("changes", limit=1, cursor=cursor).items
    registry.register(tool("d"), GITHUB)
    with pytest.raises(InvalidCursorError, match="stale: it is of version 3"):
        registry.page("changes", limit=1, cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, True, "2", None])
def test_a_page_needs_a_positive_limit(limit: Any) -> None:
    registry = filled("a")
    with pytest.raises(RegistryError, match="limit must be positive"):
        registry.page(limit=limit)
    with pytest.raises(RegistryError, match="limit must be positive"):
        registry.page_namespaces(limit=limit)


def test_namespaces_are_paged_too() -> None:
    registry = ToolRegistry()
    for space in ("c", "a", "b"):
        registry.register(tool(namespace=space), GITHUB)
    first = registry.page_namespaces(limit=2)
    assert first.items == ("a", "b")
    assert registry.page_namespaces(limit=2, cursor=first.next_cursor).items == ("c",)
    registry.register(tool(namespace="d"), GITHUB)
    with pytest.raises(InvalidCursorError):
        registry.page_namespaces(limit=2, cursor=first.next_cursor)


def test_an_engine_of_ones_own_gets_the_tools_by_id_and_keeps_its_order() -> None:
    given_tools: list[list[str]] = []

    def make(tools: Sequence[Tool]) -> OwnIndex:
        given_tools.append([one.id for one in tools])
        return OwnIndex(tools[::-1])

    registry = filled("b", "a", "c", index=make)
    assert ids(registry.search("anything")) == ["git:c", "git:b", "git:a"]
    assert ids(registry.page("anything", limit=2).items) == ["git:c", "git:b"]
    assert given_tools == [["git:a", "git:b", "git:c"]]


def test_an_engine_without_a_stable_order_is_refused_for_pages_alone() -> None:
    registry = filled("b", "a", index=UnstableIndex)
    assert ids(registry.search("x")) == ["git:a", "git:b"]
    with pytest.raises(UnstableOrderError, match="has_stable_order"):
        registry.page("x", limit=1)


@pytest.mark.parametrize(
    "settings",
    [
        None, LEXICAL, SearchSettings(preset="tooldiscovery"), SearchSettings(preset="oh-my-pi"),
        SearchSettings(engine="rank_bm25"), SearchSettings(engine="hybrid"),
    ],
)  # fmt: skip
def test_engines_of_the_library_declare_a_stable_order(settings: SearchSettings | None) -> None:
    registry = filled("status", settings=settings)
    assert ids(registry.page("status", limit=1).items) == ["git:status"]


def test_an_engine_that_fails_is_an_error_of_the_search() -> None:
    def make(_: Sequence[Tool]) -> OwnIndex:
        raise SearchError("no engine")

    registry = filled("a", index=make)
    with pytest.raises(SearchError, match="no engine"):
        registry.search("a")
    assert ids(registry.search("")) == ["git:a"]


class BrokenIndex:
    """An engine of one's own that fails in each search."""

    has_stable_order = True

    def search(self, *_: object, **__: object) -> SearchResult:
        raise KeyError("vectors")


def test_a_failure_of_an_engine_of_ones_own_has_the_type_of_a_search() -> None:
    def make(_: Sequence[Tool]) -> Any:
        raise OSError("no model")

    with pytest.raises(SearchError, match="failed to make an index: OSError: no model"):
        filled("a", index=make).search("a")
    broken = filled("a", index=lambda _: BrokenIndex())
    for search in (broken.search, lambda query: broken.page(query, limit=1)):
        with pytest.raises(SearchError, match="BrokenIndex failed in a search: KeyError"):
            search("a")


def test_the_index_is_built_once_after_any_number_of_changes() -> None:
    builds: list[int] = []

    def make(tools: Sequence[Tool]) -> Any:
        builds.append(len(tools))
        return build_index(tools)

    registry = ToolRegistry(index=make)
    for number in range(20):
        registry.register(tool(f"tool_{number}"), GITHUB)
    registry.unregister("git:tool_0", GITHUB)
    for _ in range(3):
        registry.search("changes")
        registry.page("changes", limit=3)
    assert builds == [19]
    assert registry.refresh() == 22
    registry.search("changes")
    assert builds == [19, 19]


def test_a_search_after_changes_ranks_as_a_new_registry_does() -> None:
    registry = filled(*(f"tool_{number}" for number in range(30)))
    registry.search("changes")
    registry.register(tool("send_mail", description="Send a mail."), GITHUB)
    registry.unregister("git:tool_7", GITHUB)
    fresh = ToolRegistry()
    fresh.register_all(
        [(registry.get(one.id).tool, GITHUB) for one in registry.search("", limit=99)]
    )
    for query in ("send mail", "changes", "tool_8"):
        assert registry.search(query, limit=99) == fresh.search(query, limit=99)
        assert [one.score for one in registry.search(query)] == [
            one.score for one in fresh.search(query)
        ]


def test_32_threads_have_one_build_of_the_index() -> None:
    builds: list[int] = []

    def make(tools: Sequence[Tool]) -> Any:
        builds.append(len(tools))
        return build_index(tools)

    registry = filled(*(f"tool_{number}" for number in range(100)), index=make)
    barrier = threading.Barrier(32, timeout=30)

    def search() -> list[str]:
        barrier.wait()
        return ids(registry.search("changes", limit=5))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(32) as pool:
            found = [future.result() for future in [pool.submit(search) for _ in range(32)]]
    finally:
        sys.setswitchinterval(interval)
    assert builds == [100]
    assert all(one == found[0] for one in found)


def test_threads_that_register_and_search_leave_a_whole_registry() -> None:
    registry = ToolRegistry()
    events: list[int] = []
    registry.subscribe(lambda event: events.append(event.version))

    def work(worker: int) -> None:
        for number in range(8):
            registry.register(tool(f"tool_{worker}_{number}"), GITHUB)
            registry.search("changes", limit=3)
            if number % 2:
                registry.unregister(f"git:tool_{worker}_{number}", GITHUB)

    with ThreadPoolExecutor(32) as pool:
        for future in [pool.submit(work, number) for number in range(32)]:
            future.result()
    assert registry.version == 32 * 12
    assert sorted(events) == list(range(1, 32 * 12 + 1))
    expected = sorted(f"git:tool_{w}_{n}" for w in range(32) for n in range(0, 8, 2))
    assert ids(registry.search("", limit=999)) == expected
    assert len(registry.search("changes", limit=999)) == len(expected)


def test_tools_that_are_switched_off_are_in_no_list() -> None:
    registry = filled("on")
    registry.register(tool("off", active=False), GITHUB)
    assert ids(registry.search("")) == ids(registry.search("changes")) == ["git:on"]
    assert registry.get("git:off").tool.active is False
