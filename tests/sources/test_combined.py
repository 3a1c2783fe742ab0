"""Functions and sources as one catalog, and changes that reach a runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from tool_search import (
    ProviderConfig,
    Tool,
    ToolCall,
    ToolContext,
    ToolSearchRunner,
    build_provider,
    tool_from_function,
)
from tool_search.errors import ConfigurationError
from tool_search.runner.execution import CallProgress, ExecutionResult
from tool_search.runner.execution.results import ExecutionEvent
from tool_search.search import build as search_build
from tool_search.sources import CombinedTools, SourceChange
from tool_search.sources.definitions import read_definitions
from tool_search.sources.updates import CatalogUpdates
from tool_search.sources.variables import expand
from tool_search.testing import KeywordModel, StandInServer


class ListSource:
    """A source of a list that a test changes."""

    def __init__(self, *names: str, server: str = "s") -> None:
        self._server = server
        self._callbacks: list[Callable[[SourceChange], object]] = []
        self.executor = self
        self.tools: tuple[Tool, ...] = ()
        self.list(*names)

    def list(self, *names: str) -> None:
        self.tools = tuple(
            Tool(name=name, description=f"Do {name}.", server=self._server, kind="mcp")
            for name in names
        )
        for callback in self._callbacks:
            callback(SourceChange(servers=(self._server,)))

    def subscribe(self, callback: Callable[[SourceChange], object]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        yield CallProgress("half")
        yield ExecutionResult(content=f"{self._server} ran {call.name}")


def find(value: str) -> str:
    """Find a value."""
    return f"own {value}"


async def run(executor: Any, name: str) -> list[ExecutionEvent]:
    context = ToolContext(conversation="c", language="en-US")
    call = ToolCall(id="1", name=name, arguments='{"value": "x"}')
    return [event async for event in executor.run(call, context)]


async def test_each_name_runs_the_tool_that_has_it() -> None:
    one, two = ListSource("find", "send", server="a"), ListSource("send", server="b")
    combined = CombinedTools([tool_from_function(find)], [one, two])
    catalog, executor = combined.build()
    assert list(catalog) == ["a__find", "b__send", "find", "send"]
    assert (await run(executor, "find"))[-1] == ExecutionResult(content="own x")
    assert await run(executor, "a__find") == [
        CallProgress("half"),
        ExecutionResult(content="a ran find"),
    ]
    assert (await run(executor, "b__send"))[-1] == ExecutionResult(content="b ran send")
    one.list()
    catalog, executor = combined.build()
    assert list(catalog) == ["b__send", "find"]
    assert (await run(executor, "send"))[-1] != ExecutionResult(content="b ran send")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the indexes that are built as a whole."""
    sizes: list[int] = []
    real = search_build._build

    def build(tools: Any, *rest: Any) -> Any:
        sizes.append(len(tools))
        return real(tools, *rest)

    monkeypatch.setattr(search_build, "_build", build)
    return sizes


async def test_a_change_reaches_the_next_turn_without_a_new_index(builds: list[int]) -> None:
    many = [f"rebuild_{number}" for number in range(300)]
    source = ListSource(*many)
    combined = CombinedTools([], [source])
    catalog, executor = combined.build()
    with StandInServer(model=KeywordModel()) as server:
        settings = ProviderConfig(
            id="x", type="openai_chat", model="m", api_key_env=None,
            base_url=server.openai_base_url,
        )  # fmt: skip
        async with build_provider(settings) as provider:
            runner = ToolSearchRunner(providers={"x": provider}, catalog=catalog, executor=executor)
            await runner.prepare()
            applied = asyncio.Event()

            async def apply(*made: Any) -> None:
                runner.replace_catalog(*made)
                await runner.prepare()
                if "rocket_start" in made[0]:
                    applied.set()

            updates = CatalogUpdates(combined, [source], apply)
            updates.start()
            source.list(*many, "rocket_start")
            await applied.wait()
            await updates.aclose()
            for conversation in ("one", "two"):
                events = runner.run("rocket start", conversation=conversation)
                shown = [str(event) async for event in events]
                assert any("rocket_start" in event for event in shown)
            await runner.aclose()
    assert builds == [300]


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ("${A}/x", "1/x"),
        ("${env:A}", "1"),
        ("${NONE:-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${NONE:-}", ""),
        ("$A and ${A}${A}", "$A and 11"),
        ({"k${A}": ["${A}", 2, None]}, {"k${A}": ["1", 2, None]}),
    ],
)
def test_variables_are_replaced_in_values(value: Any, expanded: Any) -> None:
    assert expand(value, {"A": "1", "EMPTY": ""}, place="x") == expanded


@pytest.mark.parametrize("value", ["${NONE}", "${env:NONE}", "${input:token}", "${}", "${a b}"])
def test_an_unknown_variable_names_its_place(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"mcpServers\.a\.env\.TOKEN"):
        expand({"TOKEN": value}, {"A": "secret"}, place="mcpServers.a.env")


def test_more_tools_than_the_limit_are_left_out_with_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tool_search.sources.definitions._MAX_TOOLS", 3)
    definitions = [{"name": f"t{number}", "inputSchema": {}} for number in range(5)]
    listed = read_definitions(definitions, server="s")
    assert [tool.name for tool in listed.tools] == ["t0", "t1", "t2"]
    assert listed.problems == ("lists more than 3 tools; the rest is left out",)
