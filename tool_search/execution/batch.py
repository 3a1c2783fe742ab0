"""The calls of one reply: together where that is safe, in order everywhere else.

Calls that are safe beside others run together; any other waits for those before it and
holds up those behind it. Whatever happens, each call has one result, and results come
in call order; what calls say meanwhile comes at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter

from tool_search.conversation.calls import AnsweredCall, CallDecision, RunCall
from tool_search.events import (
    CallStep,
    RunnerEvent,
    ToolCallStarted,
    ToolOutputDelta,
    ToolProgress,
)
from tool_search.execution.call import CallRun, CallServices, Decide
from tool_search.execution.context import ToolContext
from tool_search.execution.observers import report
from tool_search.execution.replay import NO_TURN, TurnCalls
from tool_search.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionResult,
    FinishedCall,
    failure_of,
    meant_tool,
)
from tool_search.execution.tasks import OrphanedTasks
from tool_search.messages import ToolCall
from tool_search.values.redaction import redacted_json

__all__ = ["CallBatch", "in_call"]

in_call: ContextVar[bool] = ContextVar("tool_search_in_call", default=False)
"""True in the task of a call, and in whatever its tool starts."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    """One call of a batch; it is over when it has an outcome."""

    call: ToolCall
    decision: CallDecision | None = None
    one: CallRun | None = None
    task: asyncio.Task[None] | None = None
    decided: tuple[CallStep, ...] = ()
    began: float = 0.0
    outcome: FinishedCall | None = None
    cancelled_as: str = "call.cancelled"
    is_running: bool = False
    has_begun: bool = False
    patience: asyncio.TimerHandle | None = None


class CallBatch:
    """The calls of one reply.

    Args:
        calls: In call order, each under an id of its own.
        context: Where they are called.
        decide: Says what becomes of a call; asked when a call's turn has come, after the
            results of those before it were taken, where that could matter.
        services: What they pass through.
        turn: Gives them their keys.
        is_heard: Whether `events` gives more than the outcomes.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        *,
        decide: Decide,
        services: CallServices,
        turn: TurnCalls | None = None,
        is_heard: bool = True,
    ) -> None:
        self._jobs = [_Job(call) for call in calls]
        self._context = context
        self._decide = decide
        self._services = services
        self._turn = turn or NO_TURN
        self._is_heard = is_heard
        self._grace_s = services.limits.grace_s
        self._runaways = OrphanedTasks(grace_s=self._grace_s)
        self._said: deque[RunnerEvent] = deque()
        self._running = 0
        self._next = 0
        self._delivered = 0
        self._held = False
        self._last_found = -1
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    @property
    def runaways(self) -> tuple[str, ...]:
        """Tools that ignored their cancellation and still run."""
        return self._runaways.names

    def cancel(self) -> None:
        """Cancels what is not over; each call still gets its result, through `events`.

        One that ignores it is waited for no longer than the grace.
        """
        for job in self._jobs[self._next :]:
            self._cancelled(job)
        self._next = len(self._jobs)
        for job in self._jobs:
            self._end_early(job)
        self._wake()

    def undelivered(self) -> tuple[FinishedCall, ...]:
        """After `events` was closed: the outcomes it has not given, in call order.

        Calls that were not over are cancelled; what had ended by then keeps its result.
        """
        left = self._jobs[self._delivered :]
        for job in left:
            self._cancelled(job)
        self._delivered = len(self._jobs)
        return tuple(job.outcome for job in left if job.outcome is not None)

    async def events(self) -> AsyncGenerator[RunnerEvent | FinishedCall, None]:
        """What the calls say as they say it, and one outcome a call, in call order."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        unlisten = self._context.cancellation.listen(self._cancel_from_anywhere)
        try:
            if self._context.cancellation.is_cancelled:
                self.cancel()
            while True:
                while self._said:
                    yield self._said.popleft()
                if self._delivered == len(self._jobs):
                    return
                outcome = self._jobs[self._delivered].outcome
                if outcome is not None:
                    self._delivered += 1
                    yield outcome
                    continue
                await self._start_what_may()
                if not self._said and self._jobs[self._delivered].outcome is None:
                    self._waiter = self._loop.create_future()
                    await self._waiter
        finally:
            unlisten()
            if self._running:
                await self._runaways.end(
                    {job.task: job.call.name for job in self._jobs if job.task and job.is_running}
                )

    async def _start_what_may(self) -> None:
        """Starts calls in order, up to the first that has to wait."""
        while self._next < len(self._jobs) and not (self._held and self._running):
            self._held = False
            if self._waits_for_a_discovery():
                return
            job = self._jobs[self._next]
            began = perf_counter()
            said = self._decide(job.call)
            decision = await said if isinstance(said, Awaitable) else said
            if job.outcome is not None:
                return  # cancelled while it was decided
            took = perf_counter() - began
            searched = isinstance(decision, AnsweredCall) and decision.result is not None
            job.decided = (CallStep("search" if searched else "decision", took),)
            if isinstance(decision, AnsweredCall):
                if decision.result or decision.names_tool:
                    self._last_found = self._next
                self._next += 1
                job.decision = decision
                self._begun(job, meant_tool(decision))
                self._settle(job, _answer(decision), 0.0)
                if self._next - 1 == self._delivered:
                    return
                continue
            one = self._life_of(job, decision)
            self._held = not one.is_concurrency_safe
            if self._held and self._running:
                return
            self._next += 1
            job.decision = decision
            self._start(job, one)

    def _waits_for_a_discovery(self) -> bool:
        """Whether a call before the next has discovered something that is not taken in yet."""
        return self._last_found >= self._delivered

    def _life_of(self, job: _Job, decision: RunCall) -> CallRun:
        return CallRun(
            decision,
            self._context,
            services=self._services,
            decide=self._decide,
            turn=self._turn,
            emit=lambda event: self._say(job, event),
            overdue=lambda seconds: self._give_up(job, seconds),
        )

    def _start(self, job: _Job, one: CallRun) -> None:
        job.one = one
        self._begun(job, one.tool.name)
        self._running += 1
        job.is_running = True
        job.began = perf_counter()
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(in_call.set, True)
        job.task = loop.create_task(self._run(job, one), name=one.tool.name, context=context)

    async def _run(self, job: _Job, one: CallRun) -> None:
        job.has_begun = True
        telemetry = self._services.telemetry
        span = telemetry.start(one.tool, job.call, self._context) if telemetry else None
        result = None
        try:
            result = await one.run()
        except asyncio.CancelledError:
            result = one.rendered(one.error("cancelled", job.cancelled_as))
        finally:
            if result is None:  # a `BaseException` that nothing can hold, such as Ctrl-C
                result = one.error("cancelled", job.cancelled_as)
            if span is not None:
                span.end(result, perf_counter() - job.began)
            self._over(job, result)

    def _over(self, job: _Job, result: ExecutionResult) -> None:
        """Takes a call's end in; a second one, of a call that was given up, is none."""
        if not job.is_running:
            return
        if job.patience is not None:
            job.patience.cancel()
        job.is_running = False
        self._running -= 1
        self._settle(job, result, perf_counter() - job.began)
        if result.failure in ("failed", "timed_out") and self._siblings_end:
            self._end_siblings()
        self._wake()

    def _end_early(self, job: _Job) -> None:
        """Cancels a call that runs; one whose task has not begun is over at once."""
        if job.task is None or job.one is None or not job.is_running:
            return
        job.task.cancel()
        if not job.has_begun:
            self._over(job, job.one.error("cancelled", job.cancelled_as))
        elif job.patience is None:
            loop = asyncio.get_running_loop()
            job.patience = loop.call_later(self._grace_s, self._give_up, job, None)

    def _give_up(self, job: _Job, seconds: float | None) -> None:
        """Goes on without a call that ignores its end.

        Args:
            job: The call.
            seconds: The time it had; None: it was cancelled.
        """
        one = job.one
        if one is not None and job.task is not None and job.is_running:
            self._runaways.watch(job.task, one.tool.name)
            gone = (
                one.error("cancelled", job.cancelled_as) if seconds is None else one.late(seconds)
            )
            self._over(job, one.rendered(gone))

    @property
    def _siblings_end(self) -> bool:
        return self._services.limits.cancels_siblings and self._running > 0

    def _end_siblings(self) -> None:
        for job in self._jobs[: self._next]:
            if job.is_running:
                job.cancelled_as = "call.given_up"
                self._end_early(job)

    def _settle(self, job: _Job, result: ExecutionResult, duration_s: float) -> None:
        """Gives a call its outcome; the first one stays."""
        if job.outcome is not None:
            return
        one = job.one
        job.one = None  # it holds on to the job: nothing of a call waits for the garbage collector
        steps = (*job.decided, *one.steps) if one else job.decided
        job.outcome = FinishedCall(
            call=job.call, decision=job.decision, result=result, duration_s=duration_s, steps=steps
        )
        if self._services.observers:
            report(self._services.observers, job.outcome.tool, result, duration_s)
        if _log.isEnabledFor(logging.DEBUG):
            arguments = one.arguments if one else job.call.parsed_arguments()
            _log.debug(
                "tool %s %s after %.1f ms: arguments %s, result of %d characters",
                job.outcome.tool, result.outcome, duration_s * 1000,
                redacted_json(arguments), len(result.content),
            )  # fmt: skip

    def _cancelled(self, job: _Job) -> None:
        """Settles a call that is not over; what it has begun is ended elsewhere."""
        if job.one is not None:
            result = job.one.rendered(job.one.error("cancelled", job.cancelled_as))
            self._settle(job, result, perf_counter() - job.began)
        elif job.outcome is None:
            said = failure_of(
                "cancelled", "call.cancelled", self._context.language, name=job.call.name
            )
            self._settle(job, said, 0.0)

    def _begun(self, job: _Job, tool: str) -> None:
        if self._is_heard:
            self._said.append(ToolCallStarted(call=job.call, tool=tool))

    def _say(self, job: _Job, event: CallProgress | CallOutputDelta) -> None:
        """Passes on what a call says; from any thread, and until it is over."""
        if job.outcome is not None or not self._is_heard:
            return
        if isinstance(event, CallOutputDelta):
            self._said.append(ToolOutputDelta(call=job.call, content=event.content))
        else:
            self._said.append(ToolProgress(call=job.call, message=event.message))
        if threading.get_ident() == self._thread:
            self._wake()
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _cancel_from_anywhere(self) -> None:
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
