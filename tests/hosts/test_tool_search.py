"""One `ToolSearch` for all conversations of a host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conversations import CLAUDE, OPENAI, tool, toolbox
from tool_search import (
    ConfigurationError,
    DuplicateToolError,
    SearchResult,
    SQLiteStore,
    Tool,
    ToolCatalog,
    ToolSearch,
    ToolSearchConfig,
    ToolSearchIndex,
    build_index,
    load_config,
    tool_from_definition,
    tool_from_function,
)
from tool_search.adapters.openai_chat import encode_tools
from tool_search.errors import SearchError
from tool_search.sources import toolbox as demo

SEARCHING = ToolSearchConfig(tool_schema_mode="tool_search")
TOOLS = toolbox(30, core=2)
# Reading functions takes longer than all that is tested with them.
TOOLBOX = [tool_from_function(function).tool for function in demo.TOOLBOX[3::4]]
OPENAI_FORM: dict[str, Any] = {
    "type": "function",
    "function": {"name": "find_flight", "parameters": {"type": "object", "properties": {}}},
}
ANTHROPIC_FORM: dict[str, Any] = {"name": "book_hotel", "input_schema": {"type": "object"}}
MCP_FORM: dict[str, Any] = {"name": "rent_car", "inputSchema": {"type": "object"}}


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def test_tools_come_in_any_form() -> None:
    forms = [tool("own"), count_words, tool_from_function(count_words, name="count_again")]
    search = ToolSearch([*forms, OPENAI_FORM, ANTHROPIC_FORM, MCP_FORM])
    assert set(search.catalog) == {
        "own", "count_words", "count_again", "find_flight", "book_hotel", "rent_car",
    }  # fmt: skip
    assert ToolSearch(search.catalog).catalog == search.catalog
    assert search.rank("count words").names[0] == "count_words"


def test_a_configuration_file_means_here_what_it_means_in_a_bot(tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(
        "tool_schema_mode: tool_search\n"
        "tool_search: {always_loaded_tools: [tool_003], search_tool_name: find_tools}\n"
        "providers: [{id: claude, type: anthropic, model: claude-sonnet-4-6}]\n",
        encoding="utf-8",
    )
    search = ToolSearch(toolbox(5), load_config(path).tool_search)
    assert search.view().names == ("tool_003", "find_tools")
    assert [each.name for each in search.catalog.core] == ["tool_003"]


@pytest.mark.parametrize(
    "build",
    [
        lambda odd: ToolSearch((), odd),
        lambda odd: ToolSearch((), store=odd),
        lambda odd: ToolSearch().view(allowed=odd),
    ],
    ids=["config", "store", "allowed"],
)
def test_an_argument_of_a_wrong_type_is_named(build: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"must be a.*not \['odd'\]"):
        build(["odd"])


def test_two_own_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(DuplicateToolError, match="'tool_000'"):
        ToolSearch([*TOOLS, tool("tool_000", description="Another.")])
    search = ToolSearch(TOOLS)
    with pytest.raises(DuplicateToolError, match="'tool_000'"):
        search.replace_tools([*TOOLS, tool("tool_000")])
    assert len(search.catalog) == len(TOOLS)


def test_a_wrong_definition_is_left_out_with_a_warning_that_names_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = {"name": "broken_one", "input_schema": {"type": "array"}}
    search = ToolSearch([broken, MCP_FORM])
    assert set(search.catalog) == {"rent_car"}
    for _ in range(3):
        assert set(search.view(tools=[ANTHROPIC_FORM, broken]).names) == {"book_hotel"}
    assert caplog.text.count("broken_one") == 1


def test_of_two_tools_of_one_name_in_a_request_the_first_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = {**ANTHROPIC_FORM, "description": "Another."}
    view = ToolSearch().view(tools=[ANTHROPIC_FORM, other, ANTHROPIC_FORM])
    assert [entry.tool.description for entry in view.tools()] == [""]
    assert caplog.text.count("two tools have the name 'book_hotel'") == 1


def definitions(count: int) -> list[dict[str, Any]]:
    """Return fresh definitions in OpenAI's form."""
    return [
        {"type": "function", "function": {"name": f"tool_{n:03}", "description": f"Does {n}."}}
        for n in range(count)
    ]


def test_an_equal_list_is_one_catalog_and_changes_no_byte() -> None:
    search = ToolSearch(config=SEARCHING)
    first = search.view(["tool_003"], tools=definitions(30))
    second = search.view(["tool_003"], tools=definitions(30))
    assert second.catalog is first.catalog
    assert second.tools(CLAUDE) is first.tools(CLAUDE)
    assert encode_tools(second.tools(), OPENAI) is encode_tools(first.tools(), OPENAI)


def test_an_equal_list_is_read_and_indexed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built, read = [], []

    def build(tools: Sequence[Tool], *more: Any) -> ToolSearchIndex:
        built.append(len(tools))
        return build_index(tools, *more)

    def parse(definition: dict[str, Any]) -> Tool | None:
        read.append(definition)
        return tool_from_definition(definition)

    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", build)
    monkeypatch.setattr("tool_search.adapters.hosts.tool_lists.tool_from_definition", parse)
    search = ToolSearch(config=SEARCHING)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: search.view(tools=definitions(40)), range(40)))
    assert (built, len(read)) == ([40], 40)
    # One definition more is one definition to read, and no index to build anew.
    search.view(tools=definitions(41))
    assert (built, len(read)) == ([40], 41)


def test_a_definition_that_was_changed_in_place_is_read_again() -> None:
    search, given = ToolSearch(), definitions(3)
    assert search.view(tools=given).catalog["tool_001"].description == "Does 1."
    given[1]["function"]["description"] = "Does more."
    assert search.view(tools=given).catalog["tool_001"].description == "Does more."


def test_a_list_may_change_shrink_and_be_empty_between_requests() -> None:
    search = ToolSearch(config=SEARCHING)
    found = search.view(["tool_003"], tools=definitions(40)).found
    for count in (40, 39, 20, 0, 41):
        view = search.view(found, tools=definitions(count))
        expected = () if not count else ("tool_search", "tool_003")
        assert view.names == expected
        found = view.found
        ranked = search.rank("tool_003", definitions(count)).names
        assert ranked[:1] == (("tool_003",) if count else ())
    assert found == ("tool_003",)


def test_an_index_of_a_changed_list_ranks_as_one_that_is_built_anew() -> None:
    grown, query = ToolSearch(TOOLBOX[:40]), "count the words of a text"
    grown.view()
    grown.replace_tools(TOOLBOX[5:])
    assert grown.rank(query) == ToolSearch(TOOLBOX[5:]).rank(query)


def test_what_one_conversation_finds_no_other_has() -> None:
    search = ToolSearch(TOOLS, SEARCHING)

    def conversation(number: int) -> tuple[str, ...]:
        view = search.view()
        for _ in range(5):
            view.search({"query": f"tool_{number:03}", "limit": 1})
        return view.found

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(conversation, list(range(30)) * 3))
    assert found == [(f"tool_{n:03}",) for n in range(30)] * 3


Opened = Callable[[Path], SQLiteStore]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Open stores that are closed after the test."""
    stores: list[SQLiteStore] = []

    def store(path: Path) -> SQLiteStore:
        stores.append(SQLiteStore(path))
        return stores[-1]

    yield store
    for each in stores:
        asyncio.run(each.aclose())


def test_event_loops_share_one_object(tmp_path: Path, opened: Opened) -> None:
    store = opened(tmp_path / "evidence.db")
    search = ToolSearch(TOOLBOX, store=store)

    async def conversation() -> int:
        await search.prepare()
        view = search.view()
        await view.asearch({"query": "how long is this essay"})
        view.read([await search.arank("how long is this essay")])
        view.returned(view.found[0])
        return await search.learn(view)

    async def conversations() -> Sequence[int]:
        return await asyncio.gather(*(conversation() for _ in range(4)))

    with ThreadPoolExecutor(4) as threads:
        lessons = [*threads.map(lambda _: asyncio.run(conversations()), range(4))]
    assert lessons == [[1] * 4] * 4


QUERY, OTHER_WORDS = "how long is my essay", "is the essay long"


def taught(search: ToolSearch, user: str | None = None) -> int:
    """Have one conversation look for something, call a tool, and learn."""
    view = search.view(user=user)
    view.search({"query": QUERY})
    view.read([SearchResult(query=QUERY, matches=search.rank("count words").matches)])
    view.returned("count_words")
    return search.learn_now(view)


def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    tmp_path: Path, opened: Opened
) -> None:
    path = tmp_path / "evidence.db"
    search = ToolSearch(TOOLBOX, store=opened(path))
    assert search.rank(OTHER_WORDS).names[:1] != ("count_words",)
    assert taught(search) == 1
    assert search.rank(OTHER_WORDS).names[0] == "count_words"
    later = ToolSearch(TOOLBOX, store=opened(path))
    assert later.rank(OTHER_WORDS).names[0] == "count_words"
    view = ToolSearch(TOOLBOX, store=opened(path)).view()
    assert view.search({"query": OTHER_WORDS}).names[0] == "count_words"


def test_learning_lives_in_the_object_without_a_store_and_can_be_off() -> None:
    search = ToolSearch(TOOLBOX)
    taught(search)
    assert search.rank(OTHER_WORDS).names[0] == "count_words"
    assert ToolSearch(TOOLBOX).rank(OTHER_WORDS).names[:1] != ("count_words",)
    off = ToolSearch(TOOLBOX, ToolSearchConfig.model_validate({"learning": {"enabled": False}}))
    assert taught(off) == 0
    assert off.rank(OTHER_WORDS).names[:1] != ("count_words",)


def test_a_user_teaches_first_of_all_that_user(tmp_path: Path, opened: Opened) -> None:
    store = opened(tmp_path / "evidence.db")
    search = ToolSearch(TOOLBOX, store=store)
    assert taught(search, user="alice") == 1
    found = {
        user: search.view(user=user).search({"query": OTHER_WORDS}) for user in ("alice", "bob")
    }
    assert found["alice"].names[0] == "count_words"
    entries = asyncio.run(store.load_evidence()).entries
    assert {bool(entry.source) for entry in entries} == {True}
    assert "alice" not in repr(entries)
    assert search.view(user="alice").search({"query": OTHER_WORDS}) == found["alice"]
    assert ToolSearch(TOOLBOX).view(user="bob").search({"query": OTHER_WORDS}) != found["alice"]


def test_a_lesson_is_learned_once() -> None:
    search = ToolSearch(TOOLBOX)
    view = search.view()
    said = view.search({"query": "count words"}).to_json()
    view.read([said, said])
    view.returned("count_words", failed=True)
    assert search.learn_now(view) == 0
    view.returned("count_words")
    view.returned("count_words")
    assert search.learn_now(view) == 1
    # The next request's view reads the same history.
    later = search.view(view.found)
    later.read([said], ["count_words"])
    later.returned("count_words")
    assert search.learn_now(later) == 0


class _Failing(ToolSearchIndex):
    """An index whose service is down."""

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        raise RuntimeError(f"no service for {query!r} with {limit} and {allowed}")

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        raise RuntimeError(f"no service for {added} and {removed}")


def fail_to_build(*_args: object, **_more: object) -> ToolSearchIndex:
    """Fail as an engine whose package is broken."""
    raise SearchError("the engine is down")


@pytest.mark.parametrize("stage", ["build", "search"])
def test_an_engine_that_raises_gives_the_host_every_tool_and_a_warning(
    stage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    build = fail_to_build if stage == "build" else lambda *_a, **_k: _Failing()
    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", build)
    search = ToolSearch(TOOLS, SEARCHING)
    with caplog.at_level(logging.WARNING):
        view = search.view(["tool_003"])
        before = view.names
        result = view.search({"query": "tool_007"})
    assert result.error
    assert view.names[: len(before)] == before
    assert {each.name for each in TOOLS} <= set(view.names)
    assert "search_unavailable" in caplog.text
    later = search.view(["tool_003"])
    assert later.names == view.names
    assert not any(entry.deferred for entry in later.tools(CLAUDE))
    assert search.rank("tool_007").error


def test_an_engine_that_works_again_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("tool_search.adapters.hosts.indexes.time.monotonic", lambda: now[0])
    with monkeypatch.context() as broken:
        broken.setattr("tool_search.adapters.hosts.indexes.build_index", fail_to_build)
        search = ToolSearch(TOOLS, ToolSearchConfig(tool_schema_mode="auto"))
        assert search.view().mode.reason == "search_unavailable"
    assert search.view().mode.reason == "search_unavailable"
    now[0] = 61.0
    assert search.view().mode.mode == "tool_search"


def test_a_query_without_words_is_not_a_failure_of_the_engine() -> None:
    view = ToolSearch(TOOLS, SEARCHING).view()
    assert view.search({"query": "?!"}).error
    assert view.names == ("core_000", "core_001", "tool_search")


async def test_rankings_and_lessons_off_the_loop_equal_those_on_it() -> None:
    search = ToolSearch(TOOLBOX)
    await search.prepare()
    assert await search.arank("count words", limit=3) == search.rank("count words", limit=3)
    only = await search.arank("count words", TOOLBOX[:45], allowed={"count_words"}.__contains__)
    assert set(only.names) <= {"count_words"}
    view = search.view()
    await view.asearch({"query": "count words"})
    view.returned("count_words")
    assert await search.learn(view) == 1


def test_the_user_of_a_view_is_kept() -> None:
    assert ToolSearch(TOOLS).view(user="alice").user == "alice"


def test_definitions_are_read_at_the_top_level_too() -> None:
    read = tool_from_definition(OPENAI_FORM)
    assert read is not None
    assert ToolCatalog([read])["find_flight"] == ToolSearch([OPENAI_FORM]).catalog["find_flight"]
