"""Compare the time of a whole call with a bare await of the same function.

Run: python benchmarks/execution.py [rounds]

Rounds of both are interleaved, so that a busy machine slows both. Tracing, observers and
logs are off; the cost of a rule, a hook and a span has a column of its own.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from time import perf_counter

from tool_search import (
    CallOptions,
    CallRunner,
    Permissions,
    PermissionSettings,
    ToolCall,
    ToolContext,
    tool_from_function,
)
from tool_search.runner.execution import HookedCall, ToolHook

_CALLS_A_ROUND = 200
_CONTEXT = ToolContext(conversation="benchmark", language="en-US")
_ONE = [ToolCall(id="1", name="add", arguments='{"a": 1, "b": 2}')]
_EIGHT = [ToolCall(id=str(n), name="add", arguments='{"a": 1, "b": 2}') for n in range(8)]


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _pass(call: HookedCall) -> None:
    """Allow every call."""


def _options() -> dict[str, CallOptions]:
    rules = PermissionSettings(deny=("remove_*", "mcp__files__*"), allow=("add(a=*)",))
    options = {
        "whole life": CallOptions(),
        "with three rules": CallOptions(permissions=Permissions(rules)),
        "with a hook": CallOptions(hooks=[ToolHook(before=_pass)]),
    }
    if find_spec("opentelemetry"):
        from tool_search.adapters.opentelemetry import OpenTelemetry  # noqa: PLC0415  # an extra

        options["with spans nobody collects"] = CallOptions(telemetry=OpenTelemetry())
    return options


def _subjects() -> dict[str, Callable[[], Awaitable[object]]]:
    made = tool_from_function(add, annotations={"read_only": True})
    subjects: dict[str, Callable[[], Awaitable[object]]] = {
        "bare await": lambda: add(a=1, b=2),
        "bare task": lambda: asyncio.create_task(add(a=1, b=2)),
    }
    for name, options in _options().items():
        runner = CallRunner([made], options=options)
        subjects[name] = lambda runner=runner: runner.results(_ONE, _CONTEXT)  # type: ignore[misc]
    together = CallRunner([made])
    subjects["eight together, each"] = lambda: together.results(_EIGHT, _CONTEXT)
    return subjects


async def _microseconds(subject: Callable[[], Awaitable[object]]) -> list[float]:
    times = []
    for _ in range(_CALLS_A_ROUND):
        began = perf_counter()
        await subject()
        times.append((perf_counter() - began) * 1e6)
    return times


async def main(rounds: int) -> None:
    """Print the median of each, and its ratio to the bare await."""
    subjects = _subjects()
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            share = 8 if name.startswith("eight") else 1
            times[name] += [took / share for took in await _microseconds(subject)]
    bare = statistics.median(times["bare await"])
    print(f"{'':<28}{'median':>10}{'fastest':>10}{'ratio':>8}   (microseconds a call)")
    for name, measured in times.items():
        middle = statistics.median(measured)
        print(f"{name:<28}{middle:>10.1f}{min(measured):>10.1f}{middle / bare:>8.0f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
