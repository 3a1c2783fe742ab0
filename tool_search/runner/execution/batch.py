"""The calls of one reply: concurrent if they are safe, in order otherwise.

Calls that are safe to run with others run together. Any other call waits for the calls before
it, and later calls wait for it. Each call has exactly one result. Results come in call order;
progress comes at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import perf_counter

from tool_search.core.conversation.calls import AnsweredCall, CallDecision, RunCall
from tool_search.core.messages import ToolCall
from tool_search.core.values.redaction import redacted_json
from tool_search.runner.events import (
    CallStep,
    RunnerEvent,
    ToolCallStarted,
    ToolOutputDelta,
    ToolProgress,
)
from tool_search.runner.execution.call import CallRun, CallServices, Decide
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.hooks import NO_TURN, TurnCalls
from tool_search.runner.execution.observers import CallBegun, CallEnded, EventStream
from tool_search.runner.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionResult,
    FinishedCall,
    called_tool_name,
    failure_result,
)
from tool_search.runner.execution.tasks import OrphanedTasks

__all__ = ["CallBatch", "in_call"]

in_call: ContextVar[bool] = ContextVar("tool_search_in_call", default=False)
"""True in the task of a call and in the tasks that its tool starts."""
# Kode's texts, which its prompts refer to.
_SIBLING_ERRORED = "<tool_use_error>Sibling tool call errored</tool_use_error>"
_WAITING = "Waiting…"
_INTERRUPTED = "[Request interrupted by user for tool use]"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    """One call of a batch; it has ended when it has an outcome."""

    call: ToolCall
    decision: CallDecision | None = None
    run: CallRun | None = None
    task: asyncio.Task[None] | None = None
    decision_steps: tuple[CallStep, ...] = ()
    began: float = 0.0
    outcome: FinishedCall | None = None
    cancelled_as: str = "call.cancelled"
    is_running: bool = False
    has_begun: bool = False
    has_waited: bool = False
    grace_timer: asyncio.TimerHandle | None = None


class CallBatch:
    """The calls of one reply.

    Args:
        calls: The calls in order, each with its own id.
        context: The context of all calls.
        decide: Decides a call when its turn comes. If an earlier call discovered tools, its
            result has been yielded before.
        services: Everything that calls of a bot share.
        stream: Takes the begin and the end of each call to those who follow calls.
        turn: The turn, if it has an idempotency key.
        wants_events: False if `events` yields only finished calls.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        *,
        decide: Decide,
        services: CallServices,
        stream: EventStream,
        turn: TurnCalls | None = None,
        wants_events: bool = True,
    ) -> None:
        self._jobs = [_Job(call) for call in calls]
        self._context = context
        self._decide = decide
        self._services = services
        self._stream = stream
        self._turn = turn or NO_TURN
        self._wants_events = wants_events
        self._as_kode = services.profile == "kode"
        self._grace_s = services.limits.grace_s
        self._orphans = OrphanedTasks(grace_s=self._grace_s)
        self._pending: deque[RunnerEvent] = deque()
        self._running = 0
        self._next = 0
        self._delivered = 0
        self._runs_alone = False
        self._last_discovery = -1
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    @property
    def runaways(self) -> tuple[str, ...]:
        """The tools that ignored their cancellation and still run."""
        return self._orphans.names

    def cancel(self) -> None:
        """Cancel the calls that have not ended; `events` still yields a result for each.

        A call that ignores its cancellation is given up after the grace period.
        """
        for job in self._jobs[self._next :]:
            self._settle_cancelled(job)
        self._next = len(self._jobs)
        for job in self._jobs:
            self._cancel_job(job)
        self._wake()

    def undelivered(self) -> tuple[FinishedCall, ...]:
        """Return the calls that `events` had not yielded when it was closed, in call order.

        Calls that had not ended count as cancelled; the others keep their results.
        """
        left = self._jobs[self._delivered :]
        for job in left:
            self._settle_cancelled(job)
        self._delivered = len(self._jobs)
        return tuple(job.outcome for job in left if job.outcome is not None)

    async def events(self) -> AsyncGenerator[RunnerEvent | FinishedCall, None]:
        """Yield the calls' events at once, and one finished call for each in call order."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        unlisten = self._context.cancellation.listen(self._cancel_threadsafe)
        try:
            if self._context.cancellation.is_cancelled:
                self.cancel()
            while True:
                while self._pending:
                    yield self._pending.popleft()
                if self._delivered == len(self._jobs):
                    return
                outcome = self._jobs[self._delivered].outcome
                if outcome is not None:
                    self._delivered += 1
                    yield self._close(outcome)
                    continue
                await self._start_ready()
                self._show_waiting()
                if not self._pending and self._jobs[self._delivered].outcome is None:
                    self._waiter = self._loop.create_future()
                    await self._waiter
        finally:
            unlisten()
            if self._running:
                await self._orphans.end(
                    {job.task: job.call.name for job in self._jobs if job.task and job.is_running}
                )

    async def _start_ready(self) -> None:
        """Start calls in order, up to the first that has to wait."""
        while self._next < len(self._jobs) and not (self._runs_alone and self._running):
            self._runs_alone = False
            if self._waits_for_discovery():
                return
            job = self._jobs[self._next]
            began = perf_counter()
            answer = self._decide(job.call)
            decision = await answer if isinstance(answer, Awaitable) else answer
            if job.outcome is not None:
                return  # cancelled while it was decided
            took = perf_counter() - began
            searched = isinstance(decision, AnsweredCall) and decision.result is not None
            job.decision_steps = (CallStep("search" if searched else "decision", took),)
            if isinstance(decision, AnsweredCall):
                if decision.result or decision.names_tool:
                    self._last_discovery = self._next
                self._next += 1
                job.decision = decision
                self._announce(job, called_tool_name(decision))
                self._settle(job, _answer(decision), 0.0)
                if self._next - 1 == self._delivered:
                    return
                continue
            run = self._build_run(job, decision)
            self._runs_alone = not run.is_concurrency_safe
            if self._runs_alone and self._running:
                return
            self._next += 1
            job.decision = decision
            self._start(job, run)

    def _show_waiting(self) -> None:
        """Say once of each call that it waits for others, as Kode does."""
        if not (self._as_kode and self._running and self._wants_events):
            return
        for job in self._jobs[self._next :]:
            if not job.has_waited and job.outcome is None:
                job.has_waited = True
                self._pending.append(ToolProgress(call=job.call, message=_WAITING))

    def _close(self, outcome: FinishedCall) -> FinishedCall:
        """Return an outcome; the last one of an interrupted turn says so, as Kode does."""
        is_last = self._delivered == len(self._jobs)
        cut = self._as_kode and is_last and self._context.cancellation.is_cancelled
        if not cut or outcome.result.failure != "cancelled":
            return outcome
        content = f"{outcome.result.content}\n{_INTERRUPTED}"
        return replace(outcome, result=replace(outcome.result, content=content))

    def _waits_for_discovery(self) -> bool:
        """Return True if an earlier call discovered tools and its result was not yielded yet."""
        return self._last_discovery >= self._delivered

    def _build_run(self, job: _Job, decision: RunCall) -> CallRun:
        return CallRun(
            decision,
            self._context,
            services=self._services,
            decide=self._decide,
            turn=self._turn,
            emit=lambda event: self._say(job, event),
            overdue=lambda seconds: self._give_up(job, seconds),
        )

    def _start(self, job: _Job, run: CallRun) -> None:
        job.run = run
        self._announce(job, run.tool.name)
        self._running += 1
        job.is_running = True
        job.began = perf_counter()
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(in_call.set, True)
        job.task = loop.create_task(self._run(job, run), name=run.tool.name, context=context)

    async def _run(self, job: _Job, run: CallRun) -> None:
        job.has_begun = True
        if self._stream.has_telemetry:
            self._stream.trace(CallBegun(tool=run.tool, call=job.call))
        result = None
        try:
            result = await run.run()
        except asyncio.CancelledError:
            result = run.render(self._cancelled_result(job, run))
        finally:
            if result is None:  # a `BaseException` such as KeyboardInterrupt
                result = self._cancelled_result(job, run)
            self._finish(job, result)

    def _finish(self, job: _Job, result: ExecutionResult) -> None:
        """Record the end of a call; ignore a second end of a call that was given up."""
        if not job.is_running:
            return
        if job.grace_timer is not None:
            job.grace_timer.cancel()
        job.is_running = False
        self._running -= 1
        self._settle(job, result, perf_counter() - job.began)
        if self._as_kode:
            if result.is_error and result.failure != "cancelled":
                self._cancel_siblings()
                self._cancel_waiting()
        elif result.failure in ("failed", "timed_out") and self._cancels_siblings:
            self._cancel_siblings()
        self._wake()

    def _cancel_job(self, job: _Job) -> None:
        """Cancel a running call; one whose task has not begun ends at once."""
        if job.task is None or job.run is None or not job.is_running:
            return
        job.task.cancel()
        if not job.has_begun:
            self._finish(job, self._cancelled_result(job, job.run))
        elif job.grace_timer is None:
            loop = asyncio.get_running_loop()
            job.grace_timer = loop.call_later(self._grace_s, self._give_up, job, None)

    def _give_up(self, job: _Job, seconds: float | None) -> None:
        """Give up a call that ignores its cancellation.

        Args:
            job: The call.
            seconds: The timeout that ended it; None: it was cancelled.
        """
        run = job.run
        if run is not None and job.task is not None and job.is_running:
            self._orphans.watch(job.task, run.tool.name)
            if seconds is None:
                result = self._cancelled_result(job, run)
            else:
                result = run.timeout_result(seconds)
            self._finish(job, run.render(result))

    @property
    def _cancels_siblings(self) -> bool:
        return self._services.limits.cancels_siblings and self._running > 0

    def _cancel_siblings(self) -> None:
        for job in self._jobs[: self._next]:
            if job.is_running:
                job.cancelled_as = "call.given_up"
                self._cancel_job(job)

    def _cancel_waiting(self) -> None:
        """End the calls that have not begun."""
        for job in self._jobs[self._next :]:
            job.cancelled_as = "call.given_up"
            self._settle_cancelled(job)
        self._next = len(self._jobs)

    def _cancelled_result(self, job: _Job, run: CallRun | None) -> ExecutionResult:
        if self._as_kode and job.cancelled_as == "call.given_up":
            return ExecutionResult(content=_SIBLING_ERRORED, is_error=True, failure="cancelled")
        if run is not None:
            return run.error("cancelled", job.cancelled_as)
        return failure_result(
            "cancelled", job.cancelled_as, self._context.language, name=job.call.name
        )

    def _settle(self, job: _Job, result: ExecutionResult, duration_s: float) -> None:
        """Set a call's outcome once; ignore a second one."""
        if job.outcome is not None:
            return
        run = job.run
        job.run = None  # breaks a reference cycle: a call needs no garbage collection
        steps = (*job.decision_steps, *run.steps) if run else job.decision_steps
        job.outcome = FinishedCall(
            call=job.call, decision=job.decision, result=result, duration_s=duration_s, steps=steps
        )
        if self._stream.follows_calls:
            self._stream.trace(CallEnded(finished=job.outcome))
        if _log.isEnabledFor(logging.DEBUG):
            arguments = run.arguments if run else job.call.parsed_arguments()
            _log.debug(
                "tool %s %s after %.1f ms: arguments %s, result of %d characters",
                job.outcome.tool, result.outcome, duration_s * 1000,
                redacted_json(arguments), len(result.content),
            )  # fmt: skip

    def _settle_cancelled(self, job: _Job) -> None:
        """Give a call that has not ended a cancelled outcome; its task is ended elsewhere."""
        if job.run is not None:
            result = job.run.render(self._cancelled_result(job, job.run))
            self._settle(job, result, perf_counter() - job.began)
        elif job.outcome is None:
            self._settle(job, self._cancelled_result(job, None), 0.0)

    def _announce(self, job: _Job, tool: str) -> None:
        if self._wants_events:
            self._pending.append(ToolCallStarted(call=job.call, tool=tool))

    def _say(self, job: _Job, event: CallProgress | CallOutputDelta) -> None:
        """Pass an event of a call on, from any thread; drop it after the call has ended."""
        if job.outcome is not None or not self._wants_events:
            return
        if isinstance(event, CallOutputDelta):
            self._pending.append(ToolOutputDelta(call=job.call, content=event.content))
        else:
            self._pending.append(ToolProgress(call=job.call, message=event.message))
        if threading.get_ident() == self._thread:
            self._wake()
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _cancel_threadsafe(self) -> None:
        if threading.get_ident() == self._thread:
            self.cancel()
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.cancel)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _answer(decision: AnsweredCall) -> ExecutionResult:
    return ExecutionResult(
        content=decision.content,
        is_error=decision.is_error,
        failure="denied" if decision.is_denied else "invalid",
    )
