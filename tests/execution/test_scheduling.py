"""The calls of one reply: concurrency, order and cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.execution.calling import (
    CONTEXT,
    PATIENCE_S,
    Stubborn,
    calls,
    nothing_left,
    of_kind,
    result,
    runner,
    told,
    tool,
)
from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    ExecutableTool,
    Permissions,
    Tool,
    ToolCall,
    ToolCallStarted,
    ToolCatalog,
    ToolContext,
    ToolFinished,
)
from tool_search.runner.events import ToolProgress
from tool_search.runner.execution import (
    CallLimits,
    CallOutputDelta,
    Cancellation,
    ExecutionResult,
    FinishedCall,
    PermissionRequest,
    TurnCalls,
)

SAFE = {"concurrency_safe": True}


class Stage:
    """Notes when its tools begin and end, and how many run at the same time."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.running = 0
        self.most = 0
        self.free = asyncio.Event()

    def tool(self, name: str, *, safe: bool = False, ticks: int = 3, **more: Any) -> ExecutableTool:
        """A tool that takes some rounds of the loop."""

        async def run(**arguments: Any) -> str:
            self.log.append(f"+{name}")
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                for _ in range(ticks):
                    await asyncio.sleep(0)
                return f"{name} is done"
            finally:
                self.running -= 1
                self.log.append(f"-{name}")

        return tool(run, name, annotations=SAFE if safe else {}, **more)

    def waiting(self, name: str = "wait", *, safe: bool = True) -> ExecutableTool:
        """A tool that ends when it is freed."""

        async def run(**arguments: Any) -> str:
            self.log.append(f"+{name}")
            await self.free.wait()
            return "freed"

        return tool(run, name, annotations=SAFE if safe else {})


async def test_safe_calls_run_together_and_others_are_barriers_in_order() -> None:
    """An unsafe call waits for earlier calls, and later calls wait for it."""
    stage = Stage()
    names = ["a", "b", "WRITE", "c", "d", "WRITE"]
    made = [stage.tool(name, safe=name.islower()) for name in dict.fromkeys(names)]
    done = await runner(*made).results(calls(*names), CONTEXT)
    assert stage.log == [
        "+a", "+b", "-a", "-b", "+WRITE", "-WRITE", "+c", "+d", "-c", "-d", "+WRITE", "-WRITE",
    ]  # fmt: skip
    assert [one.tool for one in done] == names


@pytest.mark.parametrize(
    ("facts", "together"),
    [
        ({"annotations": {"read_only": True}}, True),
        ({"annotations": {"concurrency_safe": True}}, True),
        ({"annotations": {"read_only": True, "concurrency_safe": False}}, False),
        ({"annotations": {"read_only": "yes"}}, False),
        ({}, False),
        ({"is_concurrency_safe": lambda arguments: True}, True),
        ({"is_concurrency_safe": lambda arguments: arguments["no"]}, False),
        ({"is_concurrency_safe": lambda arguments: False, "annotations": SAFE}, False),
    ],
)
async def test_author_says_what_is_safe(facts: dict[str, Any], together: bool) -> None:
    stage = Stage()
    made = replace(stage.tool("it"), **{k: v for k, v in facts.items() if k != "annotations"})
    made = replace(made, tool=Tool(name="it", annotations=facts.get("annotations", {})))
    await runner(made).results(calls("it", "it"), CONTEXT)
    assert (stage.most == 2) is together


async def test_call_that_needs_no_tool_is_answered_in_its_place() -> None:
    """Unknown names and wrong arguments hold nobody up."""
    stage = Stage()
    schema = {"type": "object", "required": ["x"]}
    run = runner(stage.tool("a", safe=True), stage.tool("b", safe=True, parameters=schema))
    done = await run.results(calls("a", "nobody", "b", "a"), CONTEXT)
    assert [one.is_error for one in done] == [False, True, True, False]
    assert stage.most == 2


async def test_results_come_in_call_order_and_progress_at_once() -> None:
    free = asyncio.Event()

    async def slow(**arguments: Any) -> str:
        await free.wait()
        return "slow"

    async def quick(context: ToolContext) -> str:
        """Say something."""
        context.progress("quick is there")
        free.set()
        return "quick"

    made = [
        tool(slow, "slow", annotations=SAFE),
        replace(tool(quick, "quick", annotations=SAFE)),
    ]
    events = await told(runner(*made), calls("slow", "quick"))
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "ToolCallStarted", "ToolCallStarted", "ToolProgress", "ToolFinished", "ToolFinished",
    ]  # fmt: skip
    assert [one.content for one in of_kind(events, ToolFinished)] == ["slow", "quick"]


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"overall": 2}, 2),
        ({"per_tool": 1}, 3),
        ({"per_tool": {"a": 1}}, 5),
        ({"per_server": 1}, 3),
        ({"per_server": {"far": 2}}, 4),
        ({"overall": 2, "per_tool": 1, "per_server": 1}, 2),
        ({}, 6),
    ],
)
async def test_limits_hold_per_tool_per_server_and_overall(
    limits: dict[str, Any], most: int
) -> None:
    stage = Stage()
    made = [
        stage.tool("a", safe=True, kind="mcp", server="far"),
        stage.tool("b", safe=True, kind="mcp", server="far"),
        stage.tool("c", safe=True),
    ]
    run = runner(*made, options=CallOptions(limits=CallLimits(**limits)))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        for conversation in ("x", "y"):
            context = replace(CONTEXT, conversation=conversation)
            group.create_task(run.results(calls("a", "b", "c"), context))
    if limits == {"per_server": 1}:
        most = 3  # one of the server's, and `c` in both conversations
    assert stage.most == most


async def test_call_that_waits_for_a_place_says_so_once() -> None:
    stage = Stage()
    options = CallOptions(limits=CallLimits(per_tool=1))
    events = await told(
        runner(stage.tool("a", safe=True, ticks=20), options=options), calls("a", "a")
    )
    said = of_kind(events, ToolProgress)
    assert [event.message for event in said] == ["Waiting until other calls are done."]
    assert said[0].call.id == "c1"


def test_limit_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="per_tool"):
        CallLimits(per_tool={"a": 0})


async def test_tool_inside_a_tool_takes_no_place_of_its_own() -> None:
    """Or the two would wait for each other for ever."""

    async def inner() -> str:
        """Be called."""
        return "inside"

    async def outer(context: ToolContext) -> str:
        """Call."""
        return str(await context.call("inner"))

    run = runner(inner, outer, options=CallOptions(limits=CallLimits(overall=1)))
    assert (await result(run, "outer")).content == "inside"


async def test_turn_cancelled_before_its_calls_runs_none_of_them() -> None:
    stage = Stage()
    stop = Cancellation()
    stop.cancel()
    context = replace(CONTEXT, cancellation=stop)
    done = await runner(stage.tool("a")).results(calls("a", "a"), context)
    assert [one.outcome for one in done] == ["cancelled", "cancelled"]
    assert done[0].content == "The call of a was cancelled."
    assert stage.log == []


@pytest.mark.parametrize("from_thread", [False, True])
async def test_turn_cancelled_during_its_calls_ends_each_with_one_result(from_thread: bool) -> None:
    """Ended calls keep their results, running ones are cancelled, waiting ones do not start."""
    stage = Stage()
    stop = Cancellation()
    run = runner(stage.tool("a"), stage.waiting(safe=False), stage.tool("b"))
    context = replace(CONTEXT, cancellation=stop)
    seen = []
    async with (
        asyncio.timeout(PATIENCE_S),
        aclosing(run.run(calls("a", "wait", "b"), context)) as events,
    ):
        async for event in events:
            seen.append(event)
            if isinstance(event, ToolCallStarted) and event.tool == "wait":
                if from_thread:
                    threading.Thread(target=stop.cancel).start()
                else:
                    stop.cancel()
    outcomes = [one.outcome for one in of_kind(seen, ToolFinished)]
    assert outcomes == ["finished", "cancelled", "cancelled"]
    assert "+b" not in stage.log
    await nothing_left()


async def test_call_that_has_ended_keeps_its_result_when_the_turn_is_cancelled() -> None:
    """Though it had not been given out, because one before it still ran."""
    stage = Stage()
    run = runner(stage.waiting(), stage.tool("quick", safe=True))
    batch = run.batch(calls("wait", "quick", "wait"), CONTEXT)
    task = asyncio.ensure_future(_drain(batch.events()))
    async with asyncio.timeout(PATIENCE_S):
        while "-quick" not in stage.log:  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.result.outcome for one in batch.undelivered()] == [
        "cancelled", "finished", "cancelled",
    ]  # fmt: skip
    assert batch.undelivered() == ()
    await nothing_left()


async def _drain(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


async def test_pieces_of_a_cancelled_call_survive() -> None:
    begun = asyncio.Event()

    async def stream() -> Any:
        """Stream."""
        yield CallOutputDelta("half of it")
        begun.set()
        await asyncio.Event().wait()

    batch = runner(stream).batch(calls("stream"), CONTEXT)
    task = asyncio.ensure_future(_drain(batch.events()))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (left,) = batch.undelivered()
    assert left.result.content.splitlines() == [
        "The call of stream was cancelled.", "What it had given by then: half of it",
    ]  # fmt: skip


async def test_tool_that_cleans_up_when_cancelled_is_waited_for() -> None:
    cleaned = asyncio.Event()
    begun = asyncio.Event()

    async def careful() -> None:
        """Take care."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()

    events = runner(careful).run(calls("careful"), CONTEXT)
    assert isinstance(await anext(events), ToolCallStarted)
    task = asyncio.ensure_future(anext(events))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await events.aclose()
    assert cleaned.is_set()


async def test_tool_that_ignores_the_end_of_its_time_is_given_up_and_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The turn continues; the log and `runaways` name the tool until it ends."""
    stubborn = Stubborn()
    options = CallOptions(limits=CallLimits(grace_s=0.02))
    run = runner(tool(stubborn.run, "stubborn", timeout_s=0.02), options=options)
    batch = run.batch(calls("stubborn"), CONTEXT)
    async with asyncio.timeout(PATIENCE_S):
        (outcome,) = [e async for e in batch.events() if isinstance(e, FinishedCall)]
    assert "within 0.02 seconds" in outcome.result.content
    assert list(batch.runaways) == ["stubborn"]
    assert "'stubborn' ignores its cancellation" in caplog.text
    stubborn.free.set()
    await nothing_left()
    assert not batch.runaways
    assert "'stubborn' ended after it was given up" in caplog.text


async def test_a_turn_that_is_cancelled_again_and_again_leaves_tools_their_clean_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scopes of anyio do so, and an operator must not read that a tool ignored the first one."""
    begun = asyncio.Event()

    async def tidy() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
        return "never"

    run = runner(tool(tidy, "tidy"), options=CallOptions(limits=CallLimits(grace_s=0.02)))
    task = asyncio.ensure_future(_drain(run.batch(calls("tidy"), CONTEXT).events()))
    await begun.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    await nothing_left()
    await asyncio.sleep(0.05)
    assert task.cancelled()
    assert caplog.text == ""


async def test_tool_that_ignores_the_turns_end_does_not_hold_it_up() -> None:
    stubborn = Stubborn()
    options = CallOptions(limits=CallLimits(grace_s=0.02))
    run = runner(tool(stubborn.run, "stubborn"), options=options)
    batch = run.batch(calls("stubborn"), CONTEXT)
    task = asyncio.ensure_future(_drain(batch.events()))
    await stubborn.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(PATIENCE_S):
            await task
    assert [one.result.outcome for one in batch.undelivered()] == ["cancelled"]
    assert list(batch.runaways) == ["stubborn"]
    stubborn.free.set()
    await nothing_left()


async def test_thread_is_told_that_nobody_waits_for_it() -> None:
    stopped = threading.Event()

    def work(context: ToolContext) -> str:
        """Work."""
        while not context.is_cancelled:
            stopped.wait(0.001)
        stopped.set()
        return "stopped"

    made = tool(work, "work", timeout_s=0.02)
    assert "within 0.02 seconds" in (await result(runner(made), "work")).content
    await nothing_left()
    assert stopped.is_set()


async def test_time_stands_still_while_the_user_is_asked() -> None:
    async def ask(request: PermissionRequest) -> bool:
        await asyncio.sleep(0.1)
        return True

    async def work(context: ToolContext) -> str:
        """Work."""
        return "yes" if await context.ask("May I?") else "no"

    made = tool(work, "work", timeout_s=0.05)
    options = CallOptions(permissions=Permissions(ask=ask))
    assert (await result(runner(made, options=options), "work")).content == "yes"


@pytest.mark.parametrize(("ends", "outcome"), [(True, "cancelled"), (False, "finished")])
async def test_failure_ends_its_siblings_only_where_the_owner_says(
    ends: bool, outcome: str
) -> None:
    """Otherwise what else was asked for is still done."""
    stage = Stage()

    async def fail(**arguments: Any) -> None:
        raise OSError("broken")

    made = [stage.tool("a", safe=True, ticks=10), tool(fail, "fail", annotations=SAFE)]
    options = CallOptions(limits=CallLimits(cancels_siblings=ends))
    done = await runner(*made, options=options).results(calls("a", "fail", "a"), CONTEXT)
    assert [one.outcome for one in done] == [outcome, "failed", outcome]
    assert ("given up because a call beside it failed" in done[0].content) is ends


class Noting:
    """A tool that notes the idempotency keys of its calls."""

    def __init__(self) -> None:
        self.keys: list[str | None] = []

    async def pay(self, amount: int, context: ToolContext) -> str:
        """Pay."""
        self.keys.append(context.idempotency_key)
        return f"paid {amount}"


async def test_each_call_of_a_keyed_turn_has_a_key_of_its_own() -> None:
    """Equal calls are told apart; the same call of another try of the turn has the same key."""
    noting = Noting()
    run = runner(noting.pay)
    pay = ("pay", {"amount": 5})
    for key, where, user in [
        ("m1", "c", None), ("m1", "c", None), ("m2", "c", None), ("m1", "d", None),
        ("m1", "c", "ann"), (None, "c", None),
    ]:  # fmt: skip
        turn = TurnCalls(where, key, user=user)
        batch = run.batch(calls(pay, pay), replace(CONTEXT, conversation=where), turn=turn)
        assert len([e async for e in batch.events() if isinstance(e, FinishedCall)]) == 2
    assert noting.keys[:2] == noting.keys[2:4]
    assert len(set(noting.keys[2:10])) == 8
    assert noting.keys[10:] == [None, None]


async def test_foreign_loop_decides_its_calls_itself() -> None:
    """A batch asks it for each call when the call's turn has come."""

    class Echo:
        async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[Any]:
            yield ExecutionResult(content=f"{call.name} {call.arguments}")

    run = CallRunner(catalog=ToolCatalog([Tool(name="echo")]), executor=Echo())
    done = await run.results(calls(("echo", {"a": 1})), CONTEXT)
    assert done[0].content == 'echo {"a":1}'
