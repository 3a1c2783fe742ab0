"""One task in one arm: a turn of a fresh conversation with the model."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Literal

from model.arms import Arm
from model.peers import PEERS, SEARCH, Run
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
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.redaction import redacted_text
from tool_search.providers.base import ChatProvider, Usage
from tool_search.runner.execution import ExecutionEvent, ExecutionResult, ToolContext

__all__ = ["PROMPT", "EndpointFailedError", "Record", "ask"]

PROMPT = "You are the assistant of a group chat. Answer in the user's language, briefly."
_REFUSED = (400, 413, 422)


class EndpointFailedError(ToolSearchError):
    """The end of a run, because the endpoint did not answer a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of one task in one arm.

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


@dataclass(slots=True)
class _Tools:
    """The tools of one arm, and an executor of them.

    Attributes:
        listed: The definitions.
        run: Runs a tool of a peer; None: each returns the same short text.
    """

    listed: Sequence[Tool]
    run_peer: Run | None = None

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Yield the result of a call."""
        del context
        if self.run_peer is None:
            yield ExecutionResult(content=_returned(call.name))
            return
        yield ExecutionResult(content=await self.run_peer(call.name, call.parsed_arguments() or {}))


@dataclass(slots=True)
class _Seen:
    """The events of one turn that count.

    Attributes:
        search: The name of the arm's search tool.
        called: The tools that were called, in order, without searches.
        searches: The number of searches.
        codes: The codes of warnings.
        done: The end.
    """

    search: str
    called: list[str] = field(default_factory=list)
    searches: int = 0
    codes: list[str] = field(default_factory=list)
    done: Done | None = None

    def take(self, event: object, *, by_name: bool) -> None:
        """Count an event; with `by_name` a call names its tool in its arguments."""
        if isinstance(event, ToolCallStarted) and event.tool == self.search:
            self.searches += 1
        elif isinstance(event, ToolCallStarted):
            named = (event.call.parsed_arguments() or {}).get("name") if by_name else event.tool
            self.called.append(str(named))
        elif isinstance(event, RunnerWarning):
            self.codes.append(event.code)
        elif isinstance(event, Done):
            self.done = event


async def ask(
    provider: ChatProvider, arm: Arm, task: Task, tools: Sequence[Tool], *, max_steps: int
) -> Record:
    """Ask the model one task, and return the result.

    Raises:
        EndpointFailedError: The endpoint did not answer; the task has no record.
    """
    most = provider.profile.max_tools
    if arm.kind == "all" and most is not None and len(tools) > most:
        detail = f"the endpoint takes at most {most} tools"
        return Record(arm=arm.name, task=task.key, outcome="refused", detail=detail)
    is_peer = arm.kind == "peer"
    seen = _Seen(search=SEARCH if is_peer else arm.config.search_tool_name)
    async with AsyncExitStack() as stack:
        given = await _given(arm, task, tools, stack)
        runner = ToolSearchRunner(
            providers={"endpoint": provider},
            catalog=ToolCatalog(given.listed),
            executor=given,
            config=arm.config,
            system_prompt=PROMPT,
            max_steps=max_steps,
        )
        stack.push_async_callback(runner.aclose)
        begun = time.perf_counter()
        try:
            async for event in runner.run(task.request):
                seen.take(event, by_name=is_peer)
        except AllProvidersFailedError as exc:
            return _refused(arm, task, exc)
        seconds = round(time.perf_counter() - begun, 3)
    return _record(arm, task, seen, seconds)


async def _given(arm: Arm, task: Task, tools: Sequence[Tool], stack: AsyncExitStack) -> _Tools:
    """Return the tools of an arm; a peer is closed with the stack."""
    if arm.kind == "peer":
        peer = await stack.enter_async_context(PEERS[arm.name].open(tools, _returned))
        return _Tools(peer.tools, peer.run)
    return _Tools([tool for tool in tools if arm.kind != "right" or tool.name in task.relevant])


def _returned(name: str) -> str:
    return json.dumps({"tool": name, "ok": True})


def _record(arm: Arm, task: Task, seen: _Seen, seconds: float) -> Record:
    usage = seen.done.usage if seen.done is not None else Usage()
    cut = arm.kind == "all" and "rendered_within_limit" in seen.codes
    return Record(
        arm=arm.name,
        task=task.key,
        outcome="refused" if cut else "done",
        called=tuple(seen.called),
        searches=seen.searches,
        requests=seen.done.steps if seen.done is not None else 0,
        input=usage.input_tokens,
        read=usage.cache_read_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
        seconds=seconds,
        detail="the endpoint takes fewer tools" if cut else "",
    )


def _refused(arm: Arm, task: Task, exc: AllProvidersFailedError) -> Record:
    """Return the record of a request that the endpoint will never take, or raise."""
    cause = next(iter(exc.causes.values()))
    if cause.status not in _REFUSED:
        raise EndpointFailedError(redacted_text(str(cause))) from exc
    detail = redacted_text(str(cause))[:500]
    return Record(arm=arm.name, task=task.key, outcome="refused", requests=1, detail=detail)
