"""Misbehaving tools, hooks and callbacks: the call still has exactly one result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
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
    result,
    runner,
    told,
    tool,
)
from tool_search import (
    CallOptions,
    CallRunner,
    Permissions,
    PermissionSettings,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolFinished,
)
from tool_search.runner.events import ToolProgress
from tool_search.runner.execution import (
    CallLimits,
    Cancellation,
    ExecutionResult,
    FinishedCall,
    HookedCall,
    PermissionRequest,
    ToolHook,
)

SAFE = {"concurrency_safe": True}
SHORT_GRACE = CallLimits(grace_s=0.02)


@pytest.fixture
async def stubborn() -> AsyncIterator[Stubborn]:
    """An event that is set at the end of the test."""
    made = Stubborn()
    yield made
    made.free.set()
    await nothing_left()


@pytest.mark.parametrize("names", [["stubborn"], ["stubborn", "stubborn", "it"]])
async def test_turn_that_is_told_to_stop_does_not_wait_for_who_ignores_it(
    names: list[str], stubborn: Stubborn
) -> None:
    """Each call has its result after the grace period, with any timeout of its tool."""
    stop = Cancellation()
    made = [tool(stubborn.run, "stubborn", annotations=SAFE), tool(stubborn.run)]
    batch = runner(*made, options=CallOptions(limits=SHORT_GRACE)).batch(
        calls(*names), replace(CONTEXT, cancellation=stop)
    )
    outcomes = []
    async with asyncio.timeout(PATIENCE_S), aclosing(batch.events()) as events:
        async for event in events:
            if isinstance(event, FinishedCall):
                outcomes.append(event.result.outcome)
            else:
                asyncio.get_running_loop().call_soon(stop.cancel)
    assert outcomes == ["cancelled"] * len(names)
    assert set(batch.runaways) == {"stubborn"}
    stubborn.free.set()
    await nothing_left()
    assert not batch.runaways


async def test_sibling_that_ignores_that_it_is_given_up_does_not_hold_the_reply_up(
    stubborn: Stubborn,
) -> None:
    async def fail(**arguments: Any) -> None:
        await stubborn.begun.wait()
        raise OSError("broken")

    limits = replace(SHORT_GRACE, cancels_siblings=True)
    made = [tool(stubborn.run, "stubborn", annotations=SAFE), tool(fail, "fail", annotations=SAFE)]
    run = runner(*made, options=CallOptions(limits=limits))
    async with asyncio.timeout(PATIENCE_S):
        done = await run.results(calls("stubborn", "fail"), CONTEXT)
    assert [one.outcome for one in done] == ["cancelled", "failed"]


async def test_thread_that_never_ends_does_not_hold_up_a_turn_that_is_told_to_stop() -> None:
    """Nothing can end it, and nobody waits for it."""
    stop, free = Cancellation(), threading.Event()

    def block(**arguments: Any) -> None:
        stop.cancel()
        free.wait(PATIENCE_S)

    done = await result(runner(tool(block)), "it", replace(CONTEXT, cancellation=stop))
    free.set()
    assert done.outcome == "cancelled"
    await nothing_left()


def _raising(error: BaseException) -> Callable[..., Any]:
    async def fail(*given: Any, **named: Any) -> Any:
        raise error

    return fail


def _raising_at_once(*given: Any, **named: Any) -> Any:
    raise ValueError("no coroutine")


@pytest.mark.parametrize(
    "wrong",
    [_raising(SystemExit(1)), _raising(asyncio.CancelledError()), _raising_at_once],
    ids=["exits", "cancels itself", "raises at once"],
)
async def test_hook_that_fails_in_any_way_warns_and_stops_nothing(
    wrong: Callable[..., Any],
) -> None:
    options = CallOptions(hooks=[ToolHook(before=wrong, after=wrong)])
    events = await told(runner(tool(_fine), options=options), calls("it"))
    warned = [event.message for event in events if isinstance(event, ToolProgress)]
    assert len(warned) == 2
    assert all("hook failed" in message for message in warned)
    assert [e.content for e in events if isinstance(e, ToolFinished)] == ["fine"]


async def _fine(**arguments: Any) -> str:
    return "fine"


async def test_hook_may_be_no_coroutine() -> None:
    seen: list[str] = []

    def see(call: HookedCall) -> None:
        seen.append(call.tool.name)

    options = CallOptions(hooks=[ToolHook(before=see)])  # type: ignore[arg-type]
    events = await told(runner(tool(_fine), options=options), calls("it"))
    assert seen == ["it"]
    assert not [event for event in events if isinstance(event, ToolProgress)]


@pytest.mark.parametrize(
    "answer",
    [
        _raising(SystemExit(1)),
        _raising(asyncio.CancelledError()),
        _raising_at_once,
        _fine,
        lambda request: True,
    ],
    ids=["exits", "cancels itself", "raises at once", "neither yes nor no", "no coroutine"],
)
async def test_answer_that_is_none_is_a_no(answer: Callable[..., Any]) -> None:
    async def ask(request: PermissionRequest) -> Any:
        given = answer()
        return await given

    permissions = Permissions(PermissionSettings(ask=("it",)), ask=ask)
    done = await result(runner(tool(_fine), options=CallOptions(permissions=permissions)), "it")
    assert done.outcome == "denied"


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), ValueError("no")])
async def test_check_of_a_tools_own_that_fails_is_an_error_result(error: BaseException) -> None:
    made = tool(_fine, validate_input=_raising(error))
    done = await result(runner(made), "it")
    assert done.outcome == "failed"
    assert type(error).__name__ in done.content


async def _slow_yes(request: PermissionRequest) -> bool:
    await asyncio.sleep(0.1)
    return True


@pytest.mark.parametrize("limit_s", [None, 0.06])
@pytest.mark.parametrize("asked", ["by the tool", "before the call"])
async def test_time_of_all_calls_stands_still_while_the_user_is_asked(
    asked: str, limit_s: float | None
) -> None:
    """The clock of the outer call and the bot's own limit are paused too."""

    async def inner(context: ToolContext) -> str:
        """Ask."""
        return str(asked == "before the call" or await context.ask("May I?"))

    async def outer(context: ToolContext) -> str:
        """Call."""
        return str(await context.call("inner"))

    settings = PermissionSettings(ask=("inner",) if asked == "before the call" else ())
    options = CallOptions(
        permissions=Permissions(settings, ask=_slow_yes), limits=CallLimits(timeout_s=limit_s)
    )
    made = [
        tool(outer, "outer", timeout_s=0.05),
        tool(inner, "inner", timeout_s=0.05, needs_permission=None),
    ]
    done = await result(runner(*made, options=options), "outer")
    assert done.content == "True"


async def test_generator_that_fails_at_its_clean_up_has_given_its_result() -> None:
    async def untidy() -> Any:
        """Give a result."""
        try:
            yield "given"
        finally:
            raise OSError("cannot be closed")

    done = await result(runner(untidy), "untidy")
    assert (done.content, done.is_error) == ("given", False)


class Unspeakable(Exception):  # noqa: N818  # that it is an error is not the point
    """An exception that cannot be written."""

    def __str__(self) -> str:
        raise self


async def test_exception_that_cannot_be_written_is_told_by_its_kind() -> None:
    done = await result(runner(tool(_raising(Unspeakable()))), "it")
    assert done.content == "it failed: Unspeakable"


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    ("value", "begins"),
    [
        (b"\xff\x00", "b'\\xff"),
        (float("nan"), "nan"),
        ({"a": [float("inf")]}, "{'a': [inf]}"),
        ("half \ud83d a sign", "half ? a sign"),
        ({"half \ud83d": "\ud83d"}, "{'half "),
        (_circle(), "[[...]]"),
        ("x" * 20_000_000, "xxx"),
        (ExecutionResult(content="\udc00 given"), "? given"),
    ],
    ids=["bytes", "nan", "inf", "surrogate", "in JSON", "circle", "huge", "whole result"],
)
async def test_result_of_any_content_can_be_sent(value: Any, begins: str) -> None:
    async def give() -> Any:
        """Give."""
        return value

    done = await result(runner(give), "give")
    assert not done.is_error
    assert done.content.startswith(begins)
    assert done.content.encode("utf-8")


async def test_failure_with_half_a_sign_can_be_sent() -> None:
    done = await result(runner(tool(_raising(ValueError("no \udcff.txt")))), "it")
    assert done.content == "it failed: ValueError: no ?.txt"


def _exits(*given: Any) -> Any:
    raise SystemExit(1)


@pytest.mark.parametrize("fact", ["render", "subjects", "is_read_only", "needs_permission"])
async def test_tool_whose_author_exits_where_he_is_asked_has_failed(fact: str) -> None:
    rules = PermissionSettings(deny=("it(x)",), otherwise="ask")
    permissions = Permissions(rules, ask=_slow_yes)
    facts: dict[str, Any] = {fact: _exits}
    made = tool(_fine, **facts)
    done = await result(runner(made, options=CallOptions(permissions=permissions)), "it")
    # A tool whose rights cannot be told is not run.
    assert done.outcome == ("failed" if fact == "render" else "denied")
    assert "SystemExit" in done.content


async def test_tool_that_exits_when_asked_whether_it_is_safe_is_not() -> None:
    done = await runner(tool(_fine, is_concurrency_safe=_exits)).results(calls("it", "it"), CONTEXT)
    assert [one.content for one in done] == ["fine", "fine"]


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), OSError("no line")])
async def test_foreign_executor_that_ends_in_any_way_has_failed(error: BaseException) -> None:
    class Executor:
        async def run(self, call: Any, context: ToolContext) -> Any:
            yield await _raising(error)()

    run = CallRunner(catalog=ToolCatalog([Tool(name="it")]), executor=Executor())
    done = await result(run, "it")
    assert done.outcome == "failed"
    assert type(error).__name__ in done.content


async def test_foreign_executor_that_ignores_the_turns_end_is_left_behind(
    stubborn: Stubborn,
) -> None:
    stop = Cancellation()

    class Executor:
        async def run(self, call: Any, context: ToolContext) -> Any:
            yield ExecutionResult(content=await stubborn.run())

    run = CallRunner(
        catalog=ToolCatalog([Tool(name="it")]),
        executor=Executor(),
        options=CallOptions(limits=SHORT_GRACE),
    )
    task = asyncio.ensure_future(result(run, "it", replace(CONTEXT, cancellation=stop)))
    await stubborn.begun.wait()
    stop.cancel()
    async with asyncio.timeout(PATIENCE_S):
        assert (await task).outcome == "cancelled"
