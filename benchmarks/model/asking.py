"""One task in one arm: a turn of a fresh conversation with the model."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal

from model.arms import Arm
from model.tasks import Task
from tool_search import (
    AllProvidersFailedError,
    Done,
    RunnerWarning,
    ToolCall,
    ToolCallStarted,
    ToolCatalog,
    ToolSearchError,
    ToolSearchRunner,
)
from tool_search.catalog.tool import Tool
from tool_search.execution import ExecutionEvent, ExecutionResult, ToolContext
from tool_search.providers.base import ChatProvider, Usage
from tool_search.values.redaction import redacted_text

__all__ = ["PROMPT", "EndpointFailedError", "Record", "ask"]

PROMPT = "You are the assistant of a group chat. Answer in the user's language, briefly."
_REFUSED = (400, 413, 422)


class EndpointFailedError(ToolSearchError):
    """The end of a run, because the endpoint did not answer a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one task came to in one arm.

    Attributes:
        arm: The arm's name.
        task: The task's key.
        outcome: `done`, or `refused`: the endpoint does not take such a request, or not with
            every tool.
        called: The tools that were called, in order, without searches.
        searches: The number of searches.
        requests: The number of requests.
        input: Input tokens, cached ones included.
        read: Those from the prompt cache.
        written: Those that were written into it.
        output: Output tokens.
        seconds: The time of the turn.
        detail: Why it was refused, without keys.
    """

    arm: str
    task: str
    outcome: Literal["done", "refused"] = "done"
    called: tuple[str, ...] = ()
    searches: int = 0
    requests: int = 0
    input: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    seconds: float = 0.0
    detail: str = ""


class _Canned:
    """An executor whose tools all return the same short text."""

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        del context
        yield ExecutionResult(content=json.dumps({"tool": call.name, "ok": True}))


async def ask(
    provider: ChatProvider, arm: Arm, task: Task, tools: Sequence[Tool], *, max_steps: int
) -> Record:
    """Ask the model one task, and return what came of it.

    Raises:
        EndpointFailedError: The endpoint did not answer; the task has no record.
    """
    most = provider.profile.max_tools
    if arm.kind == "all" and most is not None and len(tools) > most:
        detail = f"the endpoint takes at most {most} tools"
        return Record(arm=arm.name, task=task.key, outcome="refused", detail=detail)
    shown = [tool for tool in tools if arm.kind != "right" or tool.name in task.relevant]
    runner = ToolSearchRunner(
        providers={"endpoint": provider},
        catalog=ToolCatalog(shown),
        executor=_Canned(),
        config=arm.config,
        system_prompt=PROMPT,
        max_steps=max_steps,
    )
    called: list[str] = []
    codes: list[str] = []
    done, begun = None, time.perf_counter()
    try:
        async for event in runner.run(task.request):
            if isinstance(event, ToolCallStarted):
                called.append(event.tool)
            elif isinstance(event, RunnerWarning):
                codes.append(event.code)
            elif isinstance(event, Done):
                done = event
    except AllProvidersFailedError as exc:
        return _refused(arm, task, exc)
    finally:
        await runner.aclose()
    usage = done.usage if done is not None else Usage()
    search = arm.config.search_tool_name
    cut = arm.kind == "all" and "rendered_within_limit" in codes
    return Record(
        arm=arm.name,
        task=task.key,
        outcome="refused" if cut else "done",
        called=tuple(name for name in called if name != search),
        searches=called.count(search),
        requests=done.steps if done is not None else 0,
        input=usage.input_tokens,
        read=usage.cache_read_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
        seconds=round(time.perf_counter() - begun, 3),
        detail="the endpoint takes fewer tools" if cut else "",
    )


def _refused(arm: Arm, task: Task, exc: AllProvidersFailedError) -> Record:
    """Return the record of a request that the endpoint will never take, or raise."""
    cause = next(iter(exc.causes.values()))
    if cause.status not in _REFUSED:
        raise EndpointFailedError(redacted_text(str(cause))) from exc
    detail = redacted_text(str(cause))[:500]
    return Record(arm=arm.name, task=task.key, outcome="refused", requests=1, detail=detail)
