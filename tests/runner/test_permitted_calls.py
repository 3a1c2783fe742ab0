"""Permissions, scheduling and kinds of results in a bot's turns, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    call,
    calling,
    named,
    results,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tool_search import (
    AllProvidersFailedError,
    CallOptions,
    Done,
    ExecutableTool,
    ImagePart,
    PermissionAnswer,
    Permissions,
    PermissionSettings,
    Tool,
    ToolCallStarted,
    ToolCatalog,
    ToolFinished,
    ToolSearchRunner,
    tool_from_function,
)
from tool_search.i18n import text
from tool_search.runner.events import ToolOutputDelta
from tool_search.runner.execution import CallOutputDelta, ExecutionResult, PermissionRequest
from tool_search.testing import Fault, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])


def permitted(settings: dict[str, Any], ask: Any = None) -> CallOptions:
    """Options with these permissions."""
    made = Permissions(PermissionSettings.model_validate(settings), ask=ask)
    return CallOptions(permissions=made)


def _found(runner: ToolSearchRunner) -> dict[str, Any]:
    session = runner.session()
    assert session is not None
    found: dict[str, Any] = json.loads(results(session.history)[0].text)
    return found


@BOTH
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"deny": ["mcp__weather__*"]}, "There is no tool named get_forecast."),
        ({"policy": {"deny": ["get_forecast"]}}, "There is no tool named get_forecast."),
        ({"mode": "plan"}, "only reading is allowed"),
        ({"mode": "never-ask", "ask": ["get_forecast"]}, "nobody can be asked here"),
        ({"ask": ["get_forecast"]}, "nobody can be asked here"),
        ({"roles": {"guest": {"deny": ["get_forecast"]}}}, "There is no tool named get_forecast."),
    ],
    ids=["deny", "policy", "plan", "never-ask", "nobody to ask", "role"],
)
async def test_what_may_not_be_called_is_not_found_either(
    bench: Bench, name: str, settings: dict[str, Any], said: str
) -> None:
    """The search and the call agree, and no count speaks of what everybody is denied."""
    forecast = call("get_forecast", {"city": "Paris"})
    bench.server.reset(model=ScriptedModel([search("weather"), calling(forecast), say("No.")]))
    runner = await bench.runner(name, calls=permitted(settings))
    events = await turn(runner, "Weather?", roles=["guest"])
    finished = named(events, ToolFinished)[1]
    assert _found(runner)["matches"] == []
    assert (finished.is_error, bench.ran) == (True, [])
    assert said in finished.content
    assert _found(runner)["total_tools"] == (3 if "mode" in settings or "ask" in settings else 2)


@BOTH
async def test_discovery_grants_nothing_and_a_grant_outlives_the_provider(
    bench: Bench, name: str
) -> None:
    """A tool that a search loaded is asked about like any other, and once granted no more."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(allow=True, scope="conversation")

    script = [search("weather"), calling(FORECAST), say("Sunny."), calling(FORECAST), say("Hot.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(calls=permitted({"ask": ["mcp__weather__*"]}, ask))
    runner.use(name)
    await turn(runner, "Weather?", user="ann")
    assert [(one.tool.name, one.arguments) for one in asked] == [
        ("get_forecast", {"city": "Paris"})
    ]
    runner.use("gpt" if name == "claude" else "claude")
    await turn(runner, "And now?", user="ann")
    assert len(asked) == 1
    assert [ran for ran, _ in bench.ran] == ["get_forecast", "get_forecast"]


@BOTH
async def test_safe_calls_of_one_reply_run_together(bench: Bench, name: str) -> None:
    both = asyncio.Barrier(2)

    async def meet(**arguments: Any) -> str:
        async with asyncio.timeout(10):
            await both.wait()
        return f"met {arguments['who']}"

    definition = tool("meet", "Meet.", "who", always_load=True, annotations={"read_only": True})
    made = ExecutableTool(tool=definition, function=meet)
    script = [calling(call("meet", {"who": "ann"}), call("meet", {"who": "bo"})), say("Done.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[made])
    events = await turn(runner)
    assert [one.content for one in named(events, ToolFinished)] == ["met ann", "met bo"]
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


@BOTH
async def test_safe_call_that_ended_keeps_its_result_in_a_cancelled_turn(
    bench: Bench, name: str
) -> None:
    ended = asyncio.Event()

    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    async def quick() -> str:
        ended.set()
        return "here already"

    safe: dict[str, Any] = {"always_load": True, "annotations": {"concurrency_safe": True}}
    made = [
        ExecutableTool(tool=Tool(name="wait", **safe), function=wait),
        ExecutableTool(tool=Tool(name="quick", **safe), function=quick),
    ]
    bench.server.reset(model=ScriptedModel([calling(call("wait"), call("quick")), say("Fine.")]))
    runner = await bench.runner(name, tools=made)
    task = asyncio.create_task(turn(runner))
    await ended.wait()
    for _ in range(50):
        await asyncio.sleep(0)  # its end is noted, however slow the machine is
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    session = runner.session()
    assert session is not None
    assert [m.text for m in results(session.history)] == [
        "The call of wait was cancelled.", "here already",
    ]  # fmt: skip
    assert named(await turn(runner), Done)[0].answer == "Fine."
    assert_paired(session.history)


@BOTH
async def test_two_searches_of_one_reply_know_of_each_other(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("weather", "forecast of a city"), say("Ok.")]))
    runner = await bench.runner(name)
    events = await turn(runner)
    first, second = (json.loads(one.content) for one in named(events, ToolFinished))
    assert first["matches"][0]["name"] == "get_forecast"
    assert second["loaded"] == ["get_forecast"]


@pytest.mark.parametrize("name", ["claude", "responses", "gpt"])
async def test_picture_reaches_a_provider_that_takes_it_in_results(bench: Bench, name: str) -> None:
    """Others get the words that stand for it."""

    def draw() -> list[Any]:
        """Draw a chart."""
        return ["A chart.", ImagePart("data:image/png;base64,iVBORw0KGgo=")]

    made = tool_from_function(draw, always_load=True)
    bench.server.reset(model=ScriptedModel([calling(call("draw")), say("Nice.")]))
    events = await turn(await bench.runner(name, tools=[made]))
    assert len(named(events, ToolFinished)[0].parts) == 2
    body = bench.requests[-1].body
    if name == "claude":
        shown = body["messages"][-1]["content"][0]["content"]
        assert [part["type"] for part in shown] == ["text", "image"]
    elif name == "responses":
        shown = body["input"][-1]["output"]
        assert [part["type"] for part in shown] == ["input_text", "input_image"]
    else:
        assert body["messages"][-1]["content"] == "A chart.\n[pictures: 1]"


@pytest.mark.parametrize("name", ["claude", "responses", "gpt"])
async def test_picture_alone_is_something_to_read(bench: Bench, name: str) -> None:
    """Whoever runs the tools: here an executor that says nothing beside its picture."""
    picture = ImagePart("data:image/png;base64,iVBORw0KGgo=")

    class Painter:
        async def run(self, call: Any, context: Any) -> Any:
            yield ExecutionResult(content="", parts=(picture,))

    bench.server.reset(model=ScriptedModel([calling(call("draw")), say("很好。")]))
    runner = await bench.runner(name)
    runner.replace_catalog(ToolCatalog([tool("draw", "Draws.", always_load=True)]), Painter())
    await turn(runner, "画一张图")
    body = bench.requests[-1].body
    shown = body["input"][-1]["output"] if name == "responses" else body["messages"][-1]["content"]
    words = text("call.pictures", "zh-CN", count=1)
    assert words in (shown if name == "gpt" else json.dumps(shown, ensure_ascii=False))
    assert (shown == words) is (name == "gpt")


async def test_pieces_of_a_result_are_events_of_the_turn(bench: Bench) -> None:
    async def stream() -> Any:
        """Stream."""
        yield CallOutputDelta("one, ")
        yield CallOutputDelta("two")
        yield "one, two"

    made = tool_from_function(stream, always_load=True)
    bench.server.reset(model=ScriptedModel([calling(call("stream")), say("Done.")]))
    events = await turn(await bench.runner("gpt", tools=[made]))
    assert [event.content for event in named(events, ToolOutputDelta)] == ["one, ", "two"]
    assert named(events, ToolFinished)[0].content == "one, two"


async def test_retried_turn_does_not_repeat_what_it_did(bench: Bench) -> None:
    """The provider fails after the call; the bot sends the message again under its key."""
    pay = calling(call("send_mail", {"to": "bo"}))
    bench.server.reset(model=ScriptedModel([pay, say("Sent.")]))
    bench.server.faults.add(Fault(status=500, skip=1, times=1))
    runner = await bench.runner("gpt")
    with pytest.raises(AllProvidersFailedError):
        await turn(runner, "Write to Bo", idempotency_key="m1")
    events = await turn(runner, "Write to Bo", idempotency_key="m1")
    assert named(events, Done)[0].answer == "Sent."
    assert [ran for ran, _ in bench.ran] == ["send_mail"]
    assert not named(events, ToolFinished)[0].is_error


async def test_mode_of_a_conversation_is_changed_between_its_turns(bench: Bench) -> None:
    forecast = calling(call("get_forecast", {"city": "Paris"}))
    bench.server.reset(model=ScriptedModel([forecast, say("No."), forecast, say("Sunny.")]))
    runner = await bench.runner("gpt", calls=permitted({}))
    runner.permissions.use_mode("plan", conversation="default")
    denied = named(await turn(runner), ToolFinished)[0]
    runner.permissions.use_mode("default", conversation="default")
    done = named(await turn(runner), ToolFinished)[0]
    assert (denied.outcome, done.outcome) == ("denied", "finished")


@BOTH
async def test_calls_say_how_they_ended_and_what_they_were_made_of(bench: Bench, name: str) -> None:
    script = [search("weather"), calling(FORECAST, call("nothing")), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    events = await turn(await bench.runner(name, tools=some_tools()))
    finished = named(events, ToolFinished)
    assert [one.outcome for one in finished] == ["finished", "finished", "failed"]
    assert [step.name for step in finished[1].steps] == ["decision", "permission", "call"]
    assert len(named(events, ToolCallStarted)) == 3
