"""Messages about changes, and sources that a registry follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.registry.samples import GITHUB, filled, tool
from tool_search import CallRunner, InvalidToolError, Tool, ToolCall, ToolContext
from tool_search.runner.execution import ExecutionEvent, ExecutionResult
from tool_search.sources.registry import Backend, ChangeNotifier, RegistryEvent, ToolRegistry


class Source:
    """Servers' tools, as an MCP source has them."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = tools
        self.callbacks: list[Callable[[Any], object]] = []

    @property
    def executor(self) -> Source:
        return self

    def subscribe(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def list_again(self, *tools: Tool) -> None:
        self.tools = tools
        for callback in self.callbacks:
            callback(object())

    async def run(self, call: ToolCall, _: ToolContext) -> AsyncIterator[ExecutionEvent]:
        yield ExecutionResult(content=f"ran {call.name}")


def listed(name: str, server: str = "github", **facts: Any) -> Tool:
    """A tool that a server lists."""
    return Tool(**{"name": name, "server": server, "kind": "mcp", "description": "Do it.", **facts})


def ids(registry: ToolRegistry) -> list[str]:
    """The ids of a registry."""
    return [one.id for one in registry.search("", limit=99)]


async def test_many_changes_are_told_once_and_later_ones_again() -> None:
    registry, sent = filled(), asyncio.Queue[int]()

    async def send() -> None:
        sent.put_nowait(registry.version)

    async with ChangeNotifier(registry, send, interval_s=0.01):
        for name in "abc":
            registry.register(tool(name), GITHUB)
        assert await asyncio.wait_for(sent.get(), 10) == 3
        await asyncio.to_thread(registry.register, tool("d"), GITHUB)
        assert await asyncio.wait_for(sent.get(), 10) == 4
        registry.register(tool("d"), Backend.mcp("mirror"))  # a backend alone
        await asyncio.sleep(0.05)
        assert sent.empty()
        registry.register(tool("e"), GITHUB)
    await asyncio.sleep(0.05)
    assert sent.empty()


async def test_a_change_during_a_message_is_told_by_the_next() -> None:
    registry, sent = filled(), asyncio.Queue[int]()

    async def send() -> None:
        if registry.version < 3:
            registry.register(tool(f"more_{registry.version}"), GITHUB)
        sent.put_nowait(registry.version)

    async with ChangeNotifier(registry, send, interval_s=0.01):
        registry.register(tool("a"), GITHUB)
        assert [await asyncio.wait_for(sent.get(), 10) for _ in range(3)] == [2, 3, 3]


async def test_a_message_that_fails_is_logged_and_the_next_one_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry, tried = filled(), asyncio.Queue[int]()

    async def send() -> None:
        tried.put_nowait(registry.version)
        raise ConnectionError("gone")

    async with ChangeNotifier(registry, send, interval_s=0.01):
        for name in "ab":
            registry.register(tool(name), GITHUB)
            await asyncio.wait_for(tried.get(), 10)
    assert "could not be sent" in caplog.text


async def test_the_tools_of_a_source_are_registered_and_run() -> None:
    registry = ToolRegistry()
    source = Source(listed("get"), listed("chat__get", "chat", listed_name="get"))
    registry.follow(source)
    assert ids(registry) == ["chat:get", "github:get"]
    assert registry.get("chat:get").backends == (Backend.mcp("chat", tool="chat__get"),)
    runner = CallRunner(catalog=registry.catalog, executor=registry.executor)
    context = runner.context("me", "en-US")
    results = {
        name: (await runner.results([ToolCall(id="1", name=name, arguments="{}")], context))[0]
        for name in registry.catalog
    }
    assert {registry.tool_id(name): result.content for name, result in results.items()} == {
        "chat:get": "ran chat__get",
        "github:get": "ran get",
    }
    assert all(one.is_third_party for one in registry.tools)


def test_a_source_that_lists_again_changes_its_own_tools_alone() -> None:
    registry = filled("status")
    source = Source(listed("get"), listed("put"))
    stop = registry.follow(source)
    events: list[RegistryEvent] = []
    registry.subscribe(events.append)
    source.list_again(listed("put"), listed("get"))
    assert events == []
    source.list_again(listed("get", description="New."), listed("post"))
    assert ids(registry) == ["git:status", "github:get", "github:post"]
    assert registry.get("github:get").tool.description == "New."
    assert {event.tool_id for event in events} == {"github:get", "github:put", "github:post"}
    stop()
    assert ids(registry) == ["git:status"]
    assert source.callbacks == []


async def test_a_change_in_the_event_loop_is_taken_in_by_a_thread() -> None:
    registry, changed = ToolRegistry(), asyncio.Event()
    source, loop = Source(), asyncio.get_running_loop()
    registry.follow(source, namespace="all")
    registry.subscribe(lambda _: loop.call_soon_threadsafe(changed.set))
    source.list_again(listed("get"))
    await asyncio.wait_for(changed.wait(), 10)
    assert ids(registry) == ["all:get"]


def test_a_definition_that_is_refused_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    registry.register(listed("get", namespace="github", description="Other."), Backend.mcp("x"))
    registry.follow(Source(listed("get"), listed("a b"), listed("put")))
    assert ids(registry) == ["github:get", "github:put"]
    assert registry.get("github:get").tool.description == "Other."
    assert caplog.text.count("a tool is left out") == 2


def test_a_registry_is_a_source_of_another() -> None:
    inner, outer = filled("status"), ToolRegistry()
    outer.follow(inner, namespace="inner")
    assert ids(outer) == ["inner:status"]
    inner.register(tool("log"), GITHUB)
    assert ids(outer) == ["inner:log", "inner:status"]


def test_a_name_is_kept_for_a_tool_that_is_gone_until_many_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tool_search.sources.registry.sources._MAX_GONE", 100)
    registry = ToolRegistry(strict=False)
    first = Tool(name="find", namespace="a", server="s")
    registry.register(first, GITHUB)
    registry.unregister(first.id, GITHUB)
    second = Tool(name="find", namespace="b", server="s")
    registry.register(second, GITHUB)
    assert registry.catalog.by_source.keys().isdisjoint({first.source})
    registry.unregister(second.id, GITHUB)

    source = Source(*(Tool(name=f"t{n}", server="big") for n in range(100)))
    registry.follow(source)()

    third = Tool(name="find", namespace="c", server="s")
    registry.register(third, GITHUB)
    assert set(registry.catalog.by_source) == {first.source}


def test_a_refused_list_of_tools_claims_nothing() -> None:
    registry = ToolRegistry(strict=False)
    spaces = "abcd"
    same = [(Tool(name="find", namespace=each, server="s"), GITHUB) for each in spaces]
    with pytest.raises(InvalidToolError, match="three other ids"):
        registry.register_all(same)
    assert registry.tools == ()
    assert registry.register_all(same[:3]) == ("a:find", "b:find", "c:find")


async def test_changes_that_come_at_once_are_taken_by_one_update() -> None:
    reads = list[int]()

    class Counting(Source):
        def __getattribute__(self, name: str) -> Any:
            if name == "tools":
                reads.append(1)
            return super().__getattribute__(name)

    registry = ToolRegistry(strict=False)
    source = Counting(Tool(name="a", server="s"))
    stop = registry.follow(source)
    source.tools = (*source.tools, Tool(name="b", server="s"))
    heard, loop = asyncio.Event(), asyncio.get_running_loop()
    registry.subscribe(lambda _: loop.call_soon_threadsafe(heard.set))
    reads.clear()
    for _ in range(50):
        source.callbacks[0](None)
    await asyncio.wait_for(heard.wait(), 20)
    assert len(reads) <= 10
    stop()
    assert registry.tools == ()
