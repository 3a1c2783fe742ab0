"""Tools come, go and change while people talk; and not everybody may call each."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    call,
    calling,
    many_tools,
    named,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tests.stateful.model import is_callable
from tool_search import (
    ConfigurationError,
    Done,
    DuplicateToolError,
    RunnerEvent,
    RunnerWarning,
    ToolCatalog,
    ToolFinished,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.testing import ModelReply, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt", "responses", "kept", "late"])
NAMES = pytest.mark.parametrize(
    "name", ["claude", "gpt", "responses", "kept", "late", "bound", "glm"]
)
AUTO = ToolSearchConfig()
RESERVED = tool("tool_search", "Somebody else's search.", "query")


def _codes(events: list[RunnerEvent]) -> list[str]:
    return [event.code for event in named(events, RunnerWarning)]


def _discovered(runner: ToolSearchRunner) -> tuple[str, ...]:
    """What the conversation has discovered."""
    session = runner.session()
    assert session is not None
    return session.discoveries.names


@NAMES
async def test_equal_relisting_changes_no_byte(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), say("1"), say("2")]))
    runner = await bench.runner(name)
    await turn(runner)
    before = runner.catalog.fingerprint
    runner.replace_tools([bench.runnable(item) for item in reversed(some_tools())])
    assert runner.catalog.fingerprint == before
    assert _codes(await turn(runner)) == []
    first, second = (request.body for request in bench.requests[1:])
    assert bench.requests[1].tools_bytes == bench.requests[2].tools_bytes
    if name == "gpt":
        assert second["messages"][: len(first["messages"])] == first["messages"]


@BOTH
async def test_relisted_tool_runs_its_new_function(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("1")] * 2))
    runner = await bench.runner(name)
    await turn(runner)
    ran = len(bench.ran)
    made = [bench.runnable(item) for item in some_tools()]
    again = [replace(item, function=lambda **_: "the new one") for item in made]
    runner.replace_tools(again)
    events = await turn(runner)
    assert named(events, ToolFinished)[0].content == "the new one"
    assert len(bench.ran) == ran


@BOTH
async def test_late_tools_move_full_to_tool_search_once(bench: Bench, name: str) -> None:
    """At the user's turn, with a warning that names the cause; never back."""
    bench.server.reset(model=ScriptedModel([say("1"), search("gadget 025"), say("2"), say("3")]))
    runner = await bench.runner(name, tools=some_tools(), config=AUTO)
    await turn(runner)
    runner.replace_tools(map(bench.runnable, [*some_tools(), *many_tools(30)]))
    assert set(_codes(await turn(runner))) == {"catalog_changed", "mode_changed"}
    runner.replace_tools(map(bench.runnable, some_tools()))
    assert "mode_changed" not in _codes(await turn(runner))
    session = runner.session()
    assert session is not None
    assert session.decision.mode == "tool_search"
    assert "tool_search" in bench.requests[-1].tool_names


@BOTH
async def test_tools_that_come_during_a_turn_wait_for_the_next(bench: Bench, name: str) -> None:
    late = bench.runnable(tool("late_tool", "Came late.", always_load=True))

    async def install() -> str:
        runner.replace_tools([*map(bench.runnable, some_tools()), late])
        return "installed"

    installer = replace(bench.runnable(tool("install", "", always_load=True)), function=install)
    script = [calling(call("install")), calling(call("get_time")), say("1"), say("2")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), installer])
    await turn(runner)
    assert not any("late_tool" in request.tool_names for request in bench.requests)
    await turn(runner)
    assert "late_tool" in bench.requests[-1].tool_names


@BOTH
async def test_catalog_with_the_search_tools_name_starts_in_full_mode(
    bench: Bench, name: str
) -> None:
    script = [calling(call("tool_search", {"query": "x"})), say("1"), say("2")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), RESERVED])
    events = await turn(runner)
    assert _codes(events) == ["catalog_refused"]
    assert "'tool_search'" in named(events, RunnerWarning)[0].message
    assert bench.ran == [("tool_search", {"query": "x"})]
    assert set(bench.requests[0].tool_names) == {*(t.name for t in some_tools()), "tool_search"}
    assert _codes(await turn(runner)) == []


@BOTH
async def test_catalog_with_the_search_tools_name_later_is_not_taken_in(
    bench: Bench, name: str
) -> None:
    """The old one stays, searched as before; each turn says so until it is renamed."""
    bench.server.reset(model=ScriptedModel([say("1"), search("weather"), say("2"), say("3")]))
    runner = await bench.runner(name)
    await turn(runner)
    runner.replace_tools(map(bench.runnable, [*some_tools(), RESERVED]))
    assert _codes(await turn(runner)) == ["catalog_refused"]
    assert len({request.tools_bytes for request in bench.requests[:2]}) == 1
    runner.replace_tools(map(bench.runnable, some_tools()))
    assert _codes(await turn(runner)) == []


async def test_renamed_search_tool_leaves_the_name_to_others(bench: Bench) -> None:
    """`search_tool_name` is for that."""
    config = SEARCHING.model_copy(update={"search_tool_name": "find_tools"})
    bench.server.reset(model=ScriptedModel([say("1")]))
    runner = await bench.runner("gpt", tools=[*some_tools(), RESERVED], config=config)
    assert _codes(await turn(runner)) == []


@BOTH
async def test_server_that_went_away_and_came_back(bench: Bench, name: str) -> None:
    script: list[ModelReply] = [search("weather"), say("Found.")]
    script += [calling(FORECAST), say("Gone."), calling(FORECAST), say("Back.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name)
    await turn(runner, "Weather?")
    left = [item for item in some_tools() if item.server != "weather"]
    runner.replace_tools(map(bench.runnable, left))
    gone = named(await turn(runner, "In Paris?"), ToolFinished)[0]
    runner.replace_tools(map(bench.runnable, some_tools()))
    back = named(await turn(runner, "Again?"), ToolFinished)[0]
    assert (gone.is_error, back.is_error) == (True, False)
    assert "weather" in gone.content
    assert all(is_callable("get_forecast", request) for request in bench.requests[2:])


@BOTH
async def test_changed_schema_is_announced_and_holds(bench: Bench, name: str) -> None:
    script: list[ModelReply] = [search("weather"), say("Found."), calling(FORECAST)]
    script += [calling(call("get_forecast", {"town": "Paris"})), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name)
    await turn(runner, "Weather?")
    changed = tool("get_forecast", "Weather of a town.", "town", kind="mcp", server="weather")
    others = [item for item in some_tools() if item.name != "get_forecast"]
    runner.replace_tools(map(bench.runnable, [*others, changed]))
    events = await turn(runner, "In Paris?")
    assert "schema_changed" in _codes(events)
    assert [event.is_error for event in named(events, ToolFinished)] == [True, False]
    assert bench.ran == [("get_forecast", {"town": "Paris"})]


SECRET = tool("shut_down", "Shuts the whole server down.", roles=("admin",))


@BOTH
async def test_tool_with_roles_is_found_and_run_for_the_role(bench: Bench, name: str) -> None:
    shut = calling(call("shut_down"))
    bench.server.reset(model=ScriptedModel([search("shut down server"), shut, say("Done.")]))
    runner = await bench.runner(name, tools=[*some_tools(), SECRET])
    await turn(runner, roles=("admin", "user"))
    assert bench.ran == [("shut_down", {})]


@BOTH
async def test_tool_with_roles_is_hidden_and_refused_for_others(bench: Bench, name: str) -> None:
    script = [search("shut down server"), calling(call("shut_down")), say("Sorry.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), SECRET])
    found, refused = named(await turn(runner, roles=("user",)), ToolFinished)
    result = json.loads(found.content)
    assert "shut_down" not in found.content
    assert (result["matches"], result["total_tools"]) == ([], 3)
    assert refused.is_error
    assert bench.ran == []
    assert "shut_down" not in _discovered(runner)


@BOTH
async def test_role_counts_for_the_turn_it_is_given_in(bench: Bench, name: str) -> None:
    """In a group chat the administrator finds a tool that the next speaker may not call."""
    script: list[ModelReply] = [search("shut down server"), say("Found.")]
    script += [calling(call("shut_down")), say("No.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), SECRET])
    await turn(runner, roles=("admin",))
    events = await turn(runner)
    assert named(events, ToolFinished)[0].is_error
    assert bench.ran == []
    assert named(events, Done)[0].answer == "No."


async def test_two_tools_of_one_name_are_refused(bench: Bench) -> None:
    runner = await bench.runner("gpt")
    twice = [bench.runnable(item) for item in [*some_tools(), *some_tools()]]
    with pytest.raises(DuplicateToolError, match="get_time"):
        runner.replace_tools(twice)
    assert len(runner.catalog) == 4


async def test_catalog_without_an_executor_is_refused(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match="executor"):
        ToolSearchRunner(
            providers={"gpt": await bench.provider("gpt")}, catalog=ToolCatalog(some_tools())
        )


def test_bot_without_providers_is_refused() -> None:
    """There is nobody to ask."""
    with pytest.raises(ConfigurationError, match="provider"):
        ToolSearchRunner(providers={})
