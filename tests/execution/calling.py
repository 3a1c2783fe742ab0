"""Helpers of the tests of calls: a reply's calls, run to their results."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Any

from tool_search import (
    CallOptions,
    CallRunner,
    ExecutableTool,
    RunnerEvent,
    Tool,
    ToolCall,
    ToolContext,
    ToolFinished,
)
from tool_search.runner.execution import ToolFunction

CONTEXT = ToolContext(conversation="c", language="en-US", user="ann")
PATIENCE_S = 20.0
_EARLIER: set[str] = set()

Wanted = tuple[str, dict[str, Any]] | str


class Stubborn:
    """A tool that ignores its cancellation until it is freed."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.begun = asyncio.Event()

    async def run(self, **arguments: Any) -> str:
        self.begun.set()
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                continue
        return "late"


def calls(*wanted: Wanted) -> list[ToolCall]:
    """Return a reply's calls, from names or pairs of name and arguments."""
    made = []
    for number, one in enumerate(wanted):
        name, arguments = (one, {}) if isinstance(one, str) else one
        made.append(ToolCall(id=f"c{number}", name=name, arguments=json.dumps(arguments)))
    return made


def runner(*tools: ExecutableTool | ToolFunction, options: CallOptions | None = None) -> CallRunner:
    return CallRunner(tools, options=options)


def tool(function: ToolFunction, name: str = "it", **more: Any) -> ExecutableTool:
    """Return a tool that accepts any arguments."""
    of_tool = {key: more.pop(key) for key in list(more) if key in Tool.__dataclass_fields__}
    return ExecutableTool(tool=Tool(name=name, **of_tool), function=function, **more)


async def told(
    run: CallRunner, wanted: Sequence[ToolCall], context: ToolContext = CONTEXT
) -> list[RunnerEvent]:
    async with asyncio.timeout(PATIENCE_S), aclosing(run.run(wanted, context)) as events:
        return [event async for event in events]


async def result(run: CallRunner, wanted: Wanted, context: ToolContext = CONTEXT) -> ToolFinished:
    (finished,) = await run.results(calls(wanted), context)
    return finished


def of_kind(events: Iterable[RunnerEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def leftovers() -> tuple[int, int]:
    """Return the numbers of other tasks and of tool threads that are left."""
    return len(asyncio.all_tasks()) - 1, len(_working() - _EARLIER)


def _working() -> set[str]:
    """Return the names of threads in which tools run; each run has its own name."""
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if name.startswith("tool-") and name != "tool-idle"}


def forget_earlier_threads() -> None:
    """Ignore threads that earlier tests left hanging on purpose."""
    _EARLIER.update(_working())


async def nothing_left() -> None:
    """Wait until no task and no tool thread is left; fail if one stays."""
    async with asyncio.timeout(PATIENCE_S):
        while leftovers() != (0, 0):  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.001)
