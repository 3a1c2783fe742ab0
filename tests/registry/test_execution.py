"""Calls of registered tools: by which backend, under which name, with which failure."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.registry.samples import GITHUB, tool
from tool_search import CallRunner, Tool, ToolCall, ToolContext, tool_from_function
from tool_search.runner.events import ToolFinished
from tool_search.runner.execution import ExecutionEvent, ExecutionResult, FunctionExecutor
from tool_search.sources.registry import Backend, InvalidBackendError, ToolRegistry

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def local(path: str) -> str:
    """A local handler."""
    return f"local {path}"


class Remote:
    """An executor that says which call it got."""

    def __init__(self) -> None:
        self.ended = 0

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        try:
            said = f"{call.name} {call.parsed_arguments()} {context.conversation}"
            yield ExecutionResult(content=said)
        finally:
            self.ended += 1


class Source:
    """A source whose executor may be replaced."""

    def __init__(self) -> None:
        self.executor = Remote()


async def called(
    registry: ToolRegistry, name: str, arguments: str = '{"path": "."}'
) -> ToolFinished:
    """The result of one call."""
    runner = CallRunner(catalog=registry.catalog, executor=registry.executor)
    (result,) = await runner.results(
        [ToolCall(id="1", name=name, arguments=arguments)], runner.context("me", "en-US")
    )
    return result


async def test_a_call_goes_to_the_local_backend_first_then_to_others() -> None:
    registry = ToolRegistry()
    handler, source, remote = Backend.local(local), Source(), Remote()
    registry.attach(source, server="github")
    registry.attach(remote, provider="acme")
    given = tool(parameters=SCHEMA)
    registry.register_all(
        [(given, Backend.mcp("github", tool="gh_status")), (given, Backend.provider("acme", "s1")),
         (given, handler)]
    )  # fmt: skip
    assert (await called(registry, "status")).content == "local ."
    registry.unregister("git:status", handler)
    assert (await called(registry, "status")).content == "s1 {'path': '.'} me"
    registry.unregister("git:status", Backend.provider("acme", "s1"))
    assert (await called(registry, "status")).content == "gh_status {'path': '.'} me"
    first, source.executor = source.executor, Remote()
    assert (await called(registry, "status")).content == "gh_status {'path': '.'} me"
    assert (first.ended, source.executor.ended, remote.ended) == (1, 1, 1)


async def test_tools_of_one_name_run_where_they_are_registered() -> None:
    registry = ToolRegistry()
    registry.attach(Remote(), server="svn")
    registry.register(tool(parameters=SCHEMA), Backend.local(local))
    registry.register(tool(namespace="svn", parameters=SCHEMA), Backend.mcp("svn"))
    assert (await called(registry, "status")).content == "local ."
    assert (await called(registry, "svn__status")).content == "status {'path': '.'} me"


async def test_ids_are_names_for_the_executor_too() -> None:
    registry = ToolRegistry()
    registry.register(tool(parameters=SCHEMA), Backend.local(local))
    context = CallRunner().context("me", "en-US")
    call = ToolCall(id="1", name="git:status", arguments='{"path": "x"}')
    events = [event async for event in registry.executor.run(call, context)]
    assert [event.content for event in events if isinstance(event, ExecutionResult)] == ["local x"]


async def test_an_executor_and_an_executable_tool_are_local_backends() -> None:
    registry = ToolRegistry()
    item = tool_from_function(local, name="status")
    registry.register(item.tool, Backend.local(item))
    other = tool_from_function(local, name="other", needs_permission=True, render=str.upper)
    registry.register(other.tool, Backend.local(FunctionExecutor([other])))
    assert (await called(registry, "status")).content == "local ."
    denied = await called(registry, "other")
    assert denied.is_error
    assert denied.outcome == "denied"


@pytest.mark.parametrize("backend", [GITHUB, Backend.provider("acme", "x")])
async def test_a_tool_that_nothing_runs_fails_clearly(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    registry = ToolRegistry()
    registry.register(tool(), backend)
    result = await called(registry, "status", "{}")
    assert result.is_error
    assert "status is not available" in result.content
    assert "call registry.attach(executor, " in caplog.text


async def test_a_tool_that_was_removed_meanwhile_fails_clearly() -> None:
    registry = ToolRegistry()
    registry.register(tool(), Backend.local(local, name="x"))
    runner = CallRunner(catalog=registry.catalog, executor=registry.executor)
    registry.unregister("git:status", Backend.local(local, name="x"))
    (result,) = await runner.results(
        [ToolCall(id="1", name="status", arguments="{}")], runner.context("me", "en-US")
    )
    assert result.is_error
    assert "not available" in result.content


@pytest.mark.parametrize("names", [{}, {"server": ""}, {"server": "a", "provider": "b"}])
def test_what_is_attached_has_one_name(names: dict[str, str]) -> None:
    with pytest.raises(InvalidBackendError, match="needs a server or a provider"):
        ToolRegistry().attach(Remote(), **names)


def test_what_is_attached_must_run_tools() -> None:
    with pytest.raises(InvalidBackendError, match="cannot run tools"):
        ToolRegistry().attach(object(), server="x")


async def test_clean_up_reaches_each_local_executor_once() -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    registry = ToolRegistry()
    item = tool_from_function(local, name="a", close=close)
    executor = FunctionExecutor([item])
    registry.register(item.tool, Backend.local(executor))
    registry.register(Tool(name="b"), Backend.local(executor))
    registry.register(Tool(name="c"), Backend.local(local))
    runner = CallRunner(catalog=registry.catalog, executor=registry.executor)
    await runner.forget("me")
    await runner.aclose()
    assert closed == ["closed"]
