"""Two servers with a tool of one name, over real HTTP: each call runs the right one."""

from __future__ import annotations

import pytest

from tests.runner.bench import Bench, call, calling, named, say, search, tool, turn
from tests.runner.test_restart import JsonStore
from tool_search import ExecutableTool, RunnerWarning, Tool, ToolFinished
from tool_search.testing import ScriptedModel

NAMES = pytest.mark.parametrize("name", ["claude", "gpt", "responses", "late", "kimi", "bridge"])


def listed(*servers: str) -> list[Tool]:
    """The tool `get` of each server, and another one that waits."""
    own = [tool(f"gadget_{n}", f"Runs gadget {n}.") for n in range(3)]
    get = [
        tool("get", f"Get a document from {server}.", "n", kind="mcp", server=server)
        for server in servers
    ]
    return [*own, *get]


def runnable(bench: Bench, one: Tool) -> ExecutableTool:
    """A tool that notes its server, and says it."""

    def run(**_arguments: object) -> str:
        bench.ran.append((one.name, {"server": one.server}))
        return f"from {one.server}"

    return ExecutableTool(tool=one, function=run)


@NAMES
async def test_both_tools_of_a_name_are_called_by_the_names_that_were_shown(
    bench: Bench, name: str
) -> None:
    """The first keeps the plain name, and none stops the other; the operator is told."""
    script = [search("document"), calling(call("get", {"n": "1"}), call("b__get", {"n": "2"}))]
    bench.server.reset(model=ScriptedModel([*script, say("Done.")]))
    runner = await bench.runner(name, tools=[runnable(bench, one) for one in listed("a", "b")])
    events = await turn(runner)
    assert [event.content for event in named(events, ToolFinished)][-2:] == ["from a", "from b"]
    warned = [event for event in named(events, RunnerWarning) if event.code == "tool_renamed"]
    assert ["'b__get'" in event.message for event in warned] == [True]


@NAMES
async def test_a_kept_conversation_calls_the_tool_that_it_was_shown(
    bench: Bench, name: str
) -> None:
    """After a restart that listed the servers the other way round, or only one of them."""
    store = JsonStore()
    found = [search("document"), calling(call("get", {"n": "1"})), say("Done.")]
    both = calling(call("get", {"n": "1"}), call("b__get", {"n": "2"}))
    bench.server.reset(model=ScriptedModel([*found, both, say("Done."), both, say("Done.")]))
    said: list[list[str]] = []
    for servers in (("a", "b"), ("b", "a"), ("b",)):
        tools = [runnable(bench, one) for one in listed(*servers)]
        runner = await bench.runner(name, tools=tools, store=store)
        events = await turn(runner)
        said.append([event.content for event in named(events, ToolFinished)])
    assert said[0][-1] == "from a"
    assert said[1] == ["from a", "from b"]
    assert '"a" is not connected' in said[2][0]
    assert said[2][1] == "from b"


async def test_a_new_listing_leaves_each_name_where_it_is(bench: Bench) -> None:
    script = [search("document"), calling(call("b__get", {"n": "2"})), say("Done.")]
    again = [calling(call("b__get", {"n": "2"})), say("Done.")]
    bench.server.reset(model=ScriptedModel([*script, *again]))
    runner = await bench.runner("gpt", tools=[runnable(bench, one) for one in listed("a", "b")])
    await turn(runner)
    runner.replace_tools([runnable(bench, one) for one in listed("b")])
    events = await turn(runner)
    assert [event.content for event in named(events, ToolFinished)] == ["from b"]
    assert "get" not in runner.catalog
    assert set(runner.catalog) >= {"b__get"}
