"""A consumer gives a turn up: everything under it ends, and the conversation stays valid."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from tests.adapters.contract import ADAPTERS, Adapter, Responses
from tests.runner.bench import (
    FORECAST,
    PATIENCE_S,
    SEARCHING,
    Bench,
    assert_paired,
    call,
    calling,
    named,
    results,
    say,
    search,
    settled,
    some_tools,
    turn,
    until,
)
from tool_search import (
    Done,
    ExecutableTool,
    MemoryStore,
    RunnerEvent,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallStarted,
    ToolContext,
    ToolFinished,
    ToolSearchRunner,
)
from tool_search.runner.events import ToolProgress
from tool_search.runner.execution import CallProgress, ExecutionEvent, ExecutionResult
from tool_search.testing import Fault, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])
LONG = "Word after word of a very long answer. " * 20


class SlowTool:
    """A tool that never ends by itself, and says how it was ended."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def run(self) -> str:
        """Waits for good."""
        self.running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "never"

    @property
    def tool(self) -> ExecutableTool:
        """The tool."""
        return ExecutableTool(tool=Tool(name="slow", always_load=True), function=self.run)


async def _until(runner: ToolSearchRunner, kind: type[RunnerEvent]) -> list[RunnerEvent]:
    """The events up to the first of a kind; then the turn is closed."""
    seen = []
    async with asyncio.timeout(PATIENCE_S), aclosing(runner.run("Hello")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, kind):
                break
    return seen


@BOTH
async def test_cancelled_task_cancels_the_running_tool(bench: Bench, name: str) -> None:
    slow = SlowTool()
    bench.server.reset(model=ScriptedModel([calling(call("slow")), say("Fine.")]))
    runner = await bench.runner(name, tools=[slow.tool])
    task = asyncio.create_task(turn(runner))
    await slow.running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.cancelled.is_set()
    await settled()
    session = runner.session()
    assert session is not None
    assert "cancelled" in results(session.history)[0].text
    assert results(session.history)[0].is_error


@BOTH
async def test_turn_after_a_cancelled_one_is_valid(bench: Bench, name: str) -> None:
    """Of three parallel calls one had ended, one ran, one had not begun: each has one result."""
    slow = SlowTool()
    script = [calling(call("get_time"), call("slow"), call("get_time")), say("Fine.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=[*some_tools(), slow.tool])
    task = asyncio.create_task(turn(runner))
    await slow.running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert named(await turn(runner), Done)[0].answer == "Fine."
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert [result.is_error for result in results(session.history)] == [False, True, True]
    assert [ran for ran, _ in bench.ran] == ["get_time"]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.dialect)
async def test_closed_turn_releases_the_connection_at_once(bench: Bench, adapter: Adapter) -> None:
    """Not when the garbage collector comes by: it is closed when `aclose` returns."""
    bench.server.reset(model=ScriptedModel([say(LONG), say("Fine.")]))
    bench.server.faults.add(Fault(event_delay_s=0.2))
    responses = Responses()
    async with adapter.client(bench.server, responses) as client:
        provider = adapter.connect(bench.server, client=client)
        runner = await bench.runner(providers={"tested": provider})
        await _until(runner, TextDelta)
        assert [response.is_closed for response in responses.seen] == [True]
        await settled()
        assert named(await turn(runner), Done)[0].answer == "Fine."


@BOTH
async def test_cancelled_stream_leaves_a_valid_conversation(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([say(LONG), say("Fine.")]))
    bench.server.faults.add(Fault(event_delay_s=0.2))
    runner = await bench.runner(name)
    task = asyncio.create_task(turn(runner, "First"))
    await until(lambda: bench.requests and bench.requests[0].status == 200)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()
    assert named(await turn(runner, "Second"), Done)[0].answer == "Fine."
    session = runner.session()
    assert session is not None
    assert [message.text for message in session.history] == ["First", "Second", "Fine."]


@BOTH
async def test_turn_closed_between_two_requests_keeps_its_results(bench: Bench, name: str) -> None:
    """What a tool did is not forgotten, and what was found stays found, in the store too."""
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    store = MemoryStore()
    runner = await bench.runner(name, store=store)
    await _until(runner, ToolFinished)
    record = await store.load("default")
    assert record is not None
    assert [entry.name for entry in record.discoveries] == ["get_forecast"]
    await turn(runner, "Go on")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_turn_closed_before_a_call_begins_answers_it(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("Fine.")]))
    runner = await bench.runner("claude")
    await _until(runner, ToolCallStarted)
    await turn(runner, "Go on")
    assert bench.ran == []
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


class Reporting:
    """An executor that reports progress, then waits until it is closed."""

    def __init__(self) -> None:
        self.closed = False

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """One report, and never a result."""
        try:
            yield CallProgress("half done")
            await asyncio.Event().wait()
        finally:
            self.closed = True
        yield ExecutionResult(content="never")


async def test_turn_closed_at_a_progress_report_closes_the_executor_at_once(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("Fine.")]))
    executor = Reporting()
    first = await bench.runner("gpt")
    runner = ToolSearchRunner(
        providers={"gpt": await bench.provider("gpt")},
        catalog=first.catalog,
        executor=executor,
        config=SEARCHING,
    )
    seen = await _until(runner, ToolProgress)
    assert named(seen, ToolProgress)[0].message == "half done"
    assert executor.closed
    await settled()  # the HTTP client's own clean-up of a reply takes another round


async def test_cancelled_turn_does_not_wait_for_a_sync_tool(bench: Bench) -> None:
    """Its thread cannot be ended, but nobody waits for it."""
    begun, free = threading.Event(), threading.Event()

    def blocking() -> str:
        begun.set()
        free.wait(PATIENCE_S)
        return "too late"

    tools = [ExecutableTool(tool=Tool(name="blocking", always_load=True), function=blocking)]
    bench.server.reset(model=ScriptedModel([calling(call("blocking")), say("Fine.")]))
    runner = await bench.runner("gpt", tools=tools)
    task = asyncio.create_task(turn(runner))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not free.is_set()
    free.set()
    await settled()
    assert named(await turn(runner), Done)[0].answer == "Fine."


async def test_cancelled_turn_lets_the_waiting_one_go_on(bench: Bench) -> None:
    slow = SlowTool()
    bench.server.reset(model=ScriptedModel([calling(call("slow")), say("Fine.")]))
    runner = await bench.runner("gpt", tools=[slow.tool])
    first = asyncio.create_task(turn(runner, "First"))
    await slow.running.wait()
    second = asyncio.create_task(turn(runner, "Second"))
    await asyncio.sleep(0)
    first.cancel()
    assert named(await second, Done)[0].answer == "Fine."
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_turn_cancelled_while_it_waits_leaves_no_trace(bench: Bench) -> None:
    """It has not begun: its message is in no history."""
    slow = SlowTool()
    bench.server.reset(model=ScriptedModel([calling(call("slow")), say("Fine.")]))
    runner = await bench.runner("gpt", tools=[slow.tool])
    first = asyncio.create_task(turn(runner, "First"))
    await slow.running.wait()
    second = asyncio.create_task(turn(runner, "Second"))
    await asyncio.sleep(0)
    for task in (second, first):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    session = runner.session()
    assert session is not None
    assert [m.text for m in session.history if m.role == "user"] == ["First"]


async def test_forget_waits_for_the_turn_that_goes_on(bench: Bench) -> None:
    slow = SlowTool()
    store = MemoryStore()
    bench.server.reset(model=ScriptedModel([calling(call("slow")), say("Fine.")]))
    runner = await bench.runner("gpt", tools=[slow.tool], store=store)
    task = asyncio.create_task(turn(runner))
    await slow.running.wait()
    forgetting = asyncio.create_task(runner.forget("default"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await forgetting
    assert await store.load("default") is None
    assert runner.session() is None
    await turn(runner)
    assert [m["role"] for m in bench.requests[-1].body["messages"]] == ["user"]
