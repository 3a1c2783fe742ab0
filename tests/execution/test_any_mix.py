"""Any mix of calls: exactly one result each, in call order, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execution.calling import CONTEXT, PATIENCE_S, calls, leftovers, nothing_left, tool
from tool_search import (
    CallOptions,
    CallRunner,
    ExecutableTool,
    Permissions,
    PermissionSettings,
    ToolContext,
)
from tool_search.runner.execution import (
    CallBatch,
    CallLimits,
    CallOutputDelta,
    CallProgress,
    FinishedCall,
    HookAnswer,
    HookedCall,
    PermissionRequest,
    ToolHook,
)

_MIXES = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 60
_SAFE = {"concurrency_safe": True}


async def _quick(**arguments: Any) -> str:
    return "quick"


async def _slow(**arguments: Any) -> str:
    for _ in range(5):
        await asyncio.sleep(0)
    return "slow"


async def _late(**arguments: Any) -> str:
    await asyncio.Event().wait()
    return "never"


async def _fails(**arguments: Any) -> str:
    raise ValueError("failed")


async def _exits(**arguments: Any) -> str:
    raise SystemExit(1)


async def _streams(**arguments: Any) -> Any:
    yield CallProgress("begun")
    yield CallOutputDelta("a piece")
    await asyncio.sleep(0)
    yield "streamed"


def _threaded(**arguments: Any) -> str:
    time.sleep(0.0005)
    return "threaded"


async def _nests(context: ToolContext) -> str:
    """Call another tool."""
    return str(await context.call("slow"))


async def _cancels_itself(**arguments: Any) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "never"


def _toolbox() -> list[ExecutableTool]:
    functions: Mapping[str, Any] = {
        "quick": _quick, "slow": _slow, "late": _late, "fails": _fails, "exits": _exits,
        "streams": _streams, "threaded": _threaded, "denied": _quick, "asked": _quick,
        "blocked": _quick, "nests": _nests, "self_cancelled": _cancels_itself,
    }  # fmt: skip
    made = []
    for name, function in functions.items():
        timeout_s = 0.005 if name == "late" else 30.0
        made.append(tool(function, name, timeout_s=timeout_s))
        made.append(tool(function, f"{name}_safe", timeout_s=timeout_s, annotations=_SAFE))
    return made


_TOOLS = _toolbox()
_ABLE = {"quick", "slow", "streams", "threaded", "asked", "nests"}
_NAMES = [item.tool.name for item in _TOOLS] + ["no_such_tool"]


async def _ask(request: PermissionRequest) -> bool:
    await asyncio.sleep(0)
    return request.user == "ann"


async def _hook(call: HookedCall) -> HookAnswer | None:
    return HookAnswer(block="no") if call.tool.name.startswith("blocked") else None


@settings(max_examples=_MIXES)
@given(
    names=st.lists(st.sampled_from(_NAMES), min_size=1, max_size=7),
    overall=st.sampled_from([None, 1, 2]),
    siblings=st.booleans(),
    stop=st.none() | st.integers(0, 12),
    how=st.sampled_from(["close", "cancel", "token"]),
)
def test_each_call_has_one_result_in_order_and_nothing_is_left(
    names: list[str], overall: int | None, siblings: bool, stop: int | None, how: str
) -> None:
    options = CallOptions(
        permissions=Permissions(
            PermissionSettings(deny=("denied*(x)", "denied", "denied_safe"), ask=("asked*",)),
            ask=_ask,
        ),
        hooks=[ToolHook(before=_hook)],
        limits=CallLimits(overall=overall, cancels_siblings=siblings),
    )
    whole = stop is None and not siblings
    asyncio.run(_one_mix(CallRunner(_TOOLS, options=options), names, stop, how, whole=whole))


async def _one_mix(
    run: CallRunner, names: list[str], stop: int | None, how: str, *, whole: bool
) -> None:
    batch = run.batch(calls(*names), CONTEXT)
    async with asyncio.timeout(PATIENCE_S):
        outcomes = await _outcomes(batch, stop, how)
    assert [one.call.id for one in outcomes] == [f"c{n}" for n in range(len(names))]
    assert all(one.result.content for one in outcomes)
    for one in outcomes:
        is_able = one.call.name.removesuffix("_safe") in _ABLE
        assert is_able or one.result.is_error
        if whole:
            assert one.result.is_error is not is_able
    await nothing_left()
    assert leftovers() == (0, 0)
    assert batch.runaways == ()


async def _outcomes(batch: CallBatch, stop: int | None, how: str) -> list[FinishedCall]:
    """One outcome a call, of a turn that is stopped after so many events."""
    outcomes: list[FinishedCall] = []

    async def drain() -> None:
        async with aclosing(batch.events()) as events:
            number = 0
            async for event in events:
                number += 1
                if isinstance(event, FinishedCall):
                    outcomes.append(event)
                if number == stop and how == "close":
                    return
                if number == stop:
                    task.cancel() if how == "cancel" else batch.cancel()

    task = asyncio.ensure_future(drain())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return [*outcomes, *batch.undelivered()]
