"""A turn ends in time, whatever it waits for, and whoever takes its events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from tests.clock import LoopClock
from tests.runner.bench import (
    FORECAST,
    PATIENCE_S,
    Bench,
    assert_paired,
    call,
    calling,
    kinds,
    named,
    results,
    say,
    search,
    settled,
    some_tools,
    tool,
    turn,
    until,
)
from tests.runner.test_cancellation import SlowTool
from tool_search import (
    CallOptions,
    Done,
    ExecutableTool,
    RunnerEvent,
    RunnerWarning,
    TextDelta,
    ToolCallStarted,
    ToolSearchRunner,
)
from tool_search.errors import SessionError
from tool_search.i18n import text
from tool_search.runner.execution import CallLimits
from tool_search.testing import Fault, ScriptedModel

ALL = pytest.mark.parametrize("name", ["claude", "gpt", "responses"])
LIMIT_S = 10.0  # passed by moving the clock on


async def first_of(
    events: AsyncGenerator[RunnerEvent, None], kind: type[RunnerEvent]
) -> RunnerEvent:
    """The first event of a kind; no further one is taken."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            event = await anext(events)
            if isinstance(event, kind):
                return event


def timed_out(events: list[RunnerEvent]) -> None:
    """Asserts that the turn's last events say that its time was over."""
    warning, done = events[-2:]
    assert isinstance(warning, RunnerWarning)
    assert isinstance(done, Done)
    assert (warning.code, done.stop_reason) == ("turn_timed_out", "timeout")
    assert "turn_timeout_s" in warning.message


@ALL
async def test_turn_ends_while_its_provider_is_silent(
    bench: Bench, clock: LoopClock, name: str
) -> None:
    bench.server.reset(model=ScriptedModel([say("Fine.")]))
    bench.server.faults.add(Fault(delay_s=60))
    runner = await bench.runner(name, turn_timeout_s=LIMIT_S)
    running = asyncio.create_task(turn(runner, "Привет"))
    await until(lambda: bench.requests)
    await clock.move_on(LIMIT_S)
    events = await running
    timed_out(events)
    assert named(events, Done)[0].answer == text("answer.timeout", "ru-RU")
    await settled()
    assert named(await turn(runner, "Снова"), Done)[0].answer == "Fine."


@ALL
async def test_each_open_call_has_its_one_result(bench: Bench, clock: LoopClock, name: str) -> None:
    """Of three, one had ended, one ran and one had not begun; the one before them is found."""
    slow = SlowTool()
    script = [
        search("weather"),
        calling(FORECAST, call("slow"), call("get_time")),
        say("Fine."),
    ]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), slow.tool], turn_timeout_s=LIMIT_S)
    running = asyncio.create_task(turn(runner))
    await until(slow.running.is_set)
    await clock.move_on(LIMIT_S)
    events = await running
    timed_out(events)
    assert named(events, Done)[0].steps == 2
    assert slow.cancelled.is_set()
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert [result.is_error for result in results(session.history)] == [False, False, True, True]
    assert named(await turn(runner), Done)[0].answer == "Fine."


async def test_tool_that_ignores_its_end_holds_no_turn(bench: Bench, clock: LoopClock) -> None:
    begun, free = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        begun.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    made = ExecutableTool(
        tool=tool("stubborn", "Does not end.", always_load=True), function=stubborn
    )
    bench.server.reset(model=ScriptedModel([calling(call("stubborn")), say("Fine.")]))
    calls = CallOptions(limits=CallLimits(grace_s=0.05))
    runner = await bench.runner("gpt", tools=[made], turn_timeout_s=LIMIT_S, calls=calls)
    running = asyncio.create_task(turn(runner))
    await until(begun.is_set)
    await clock.move_on(LIMIT_S)
    timed_out(await running)
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    free.set()
    await settled()


async def test_consumer_that_takes_no_further_event_holds_nothing(
    bench: Bench, clock: LoopClock
) -> None:
    """The tool ends, the conversation is free, and the consumer reads why when it comes back."""
    slow = SlowTool()
    script = [calling(call("slow"), call("get_time")), say("Fine.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("gpt", tools=[*some_tools(), slow.tool], turn_timeout_s=LIMIT_S)
    events = runner.run("Hello")
    async with aclosing(events):
        await first_of(events, ToolCallStarted)
        await clock.move_on(LIMIT_S)
        await until(slow.cancelled.is_set)
        session = runner.session()
        assert session is not None
        assert named(await turn(runner, "And now?"), Done)[0].answer == "Fine."
        assert_paired(session.history)
        timed_out([event async for event in events])


async def test_consumer_that_stops_at_the_first_event_holds_nothing(
    bench: Bench, clock: LoopClock
) -> None:
    """Before the turn has even begun: the provider was swapped."""
    bench.server.reset(model=ScriptedModel([say("One."), say("Two.")]))
    runner = await bench.runner("claude", "gpt", turn_timeout_s=LIMIT_S)
    await turn(runner)
    runner.use("gpt")
    async with aclosing(runner.run("Again")) as events:
        await anext(events)
        await clock.move_on(LIMIT_S)
        assert named(await turn(runner, "Me too"), Done)[0].answer == "Two."
        rest = [event async for event in events]
    timed_out(rest)


async def test_forget_does_not_wait_for_a_consumer_that_is_gone(
    bench: Bench, clock: LoopClock
) -> None:
    """Without any limit of a turn; who comes back is told that there is nothing left."""
    bench.server.reset(model=ScriptedModel([say("My secret is long."), say("Hello.")]))
    runner = await bench.runner("gpt")
    async with aclosing(runner.run("Hello")) as events:
        await first_of(events, TextDelta)
        forgetting = asyncio.create_task(runner.forget("default"))
        await clock.move_on(LIMIT_S)
        await forgetting
        assert runner.session() is None
        with pytest.raises(SessionError, match="forgotten"):
            await anext(events)
    await turn(runner)
    sent = json.dumps(bench.requests[-1].body["messages"])
    assert "secret" not in sent
    assert sent.count('"user"') == 1


async def test_forget_waits_for_a_consumer_that_takes_events(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("Noon.")]))
    runner = await bench.runner("gpt")
    seen: list[RunnerEvent] = []
    async with aclosing(runner.run("Hello")) as events:
        seen.append(await first_of(events, ToolCallStarted))
        forgetting = asyncio.create_task(runner.forget("default"))
        seen += [event async for event in events]
    await forgetting
    assert kinds(seen)[-1] == "Done"
    assert runner.session() is None


async def test_consumer_that_stops_at_the_last_event_holds_nothing(
    bench: Bench, clock: LoopClock
) -> None:
    """It need not ask for more, nor close the iteration."""
    bench.server.reset(model=ScriptedModel([say("One."), say("Two.")]))
    runner = await bench.runner("gpt", turn_timeout_s=LIMIT_S)
    async with aclosing(runner.run("Hello")) as events:
        await first_of(events, Done)
        assert named(await turn(runner, "And now?"), Done)[0].answer == "Two."
        await clock.move_on(LIMIT_S)
        assert [event async for event in events] == []


async def test_waiting_for_another_turn_does_not_count(bench: Bench, clock: LoopClock) -> None:
    begun, may_end = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def wait() -> str:
        begun.release()
        await may_end.acquire()
        return "waited"

    made = ExecutableTool(tool=tool("wait", "Wait.", always_load=True), function=wait)
    script = [calling(call("wait")), say("One."), calling(call("wait")), say("Two.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("gpt", tools=[made], turn_timeout_s=LIMIT_S)
    both = [asyncio.create_task(turn(runner, message)) for message in ("First", "Second")]
    for _ in both:
        await begun.acquire()
        await clock.move_on(0.6 * LIMIT_S)
        may_end.release()
    done = [named(events, Done)[0] for events in await asyncio.gather(*both)]
    assert [(end.answer, end.stop_reason) for end in done] == [
        ("One.", "answer"), ("Two.", "answer"),
    ]  # fmt: skip


async def test_turn_within_its_time_is_as_ever(bench: Bench) -> None:
    script = [search("weather"), calling(FORECAST), say("Sunny.")] * 2
    bench.server.reset(model=ScriptedModel(script))
    plain = await turn(await bench.runner("gpt"))
    limited: ToolSearchRunner = await bench.runner("gpt", turn_timeout_s=60)
    assert kinds(await turn(limited)) == kinds(plain)
