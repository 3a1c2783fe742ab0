"""A turn as its observers, its trace and its log see it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import Token
from functools import partial
from types import TracebackType

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, ReferencePart, RequestPlan
from tool_search.errors import ProviderError
from tool_search.events import Done, RequestFinished, RequestStarted, RunnerEvent, TurnEvent
from tool_search.execution import CallOptions
from tool_search.execution.tasks import closing
from tool_search.execution.telemetry import RequestSpan, TurnSpan, TurnTelemetry
from tool_search.providers.base import ChatProvider, ReplyEnd, ReplyEvent, Usage
from tool_search.runner.observers import TurnObservers
from tool_search.runner.observing import current_conversation, log_request

__all__ = ["ObservedTurn", "TurnObservation"]

_requests = logging.getLogger("tool_search.requests")


class TurnObservation:
    """The observers and the telemetry of one runner's turns.

    Args:
        options: The options of calls, with observers and telemetry.
    """

    def __init__(self, options: CallOptions) -> None:
        telemetry = options.telemetry
        self.telemetry = telemetry if isinstance(telemetry, TurnTelemetry) else None
        observers = list(options.turn_observers)
        # A bound method is equal to another of the same object: nothing is measured twice.
        if self.telemetry is not None and self.telemetry.on_turn not in observers:
            observers.append(self.telemetry.on_turn)
        self.observers = TurnObservers(observers)

    def turn(self, conversation: str, message: Message) -> ObservedTurn:
        """Return the observation of one turn."""
        return ObservedTurn(self, conversation, message)

    async def aclose(self) -> None:
        """Wait a few seconds for observers that are late, then end them."""
        await self.observers.aclose()


class ObservedTurn:
    """One turn: its events go to observers, its steps run in its span.

    A span is current only while the turn works, not while its consumer does: whatever the
    consumer traces between two events is not inside the turn.

    Args:
        observation: The observers and the telemetry of the runner.
        conversation: The key of the conversation.
        message: The user's message.
    """

    def __init__(self, observation: TurnObservation, conversation: str, message: Message) -> None:
        self._observers = observation.observers
        self._is_observed = bool(observation.observers)
        self._telemetry = observation.telemetry
        self._conversation = conversation
        self._message = message
        self._start = time.monotonic()
        self._span: TurnSpan | None = None
        self._token: Token[str] | None = None
        self._current: AbstractContextManager[object] | None = None

    def begin(self) -> None:
        """Start the span of the turn."""
        if self._telemetry is not None:
            self._span = self._telemetry.turn(self._conversation, self._message)

    # A reply has hundreds of events: without a span, a step costs a microsecond.
    def __enter__(self) -> None:
        """Begin one step of the turn, in its span."""
        self._token = current_conversation.set(self._conversation)
        if self._span is not None:
            self._current = self._span.current()
            self._current.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._current is not None:
            self._current.__exit__(kind, error, trace)
            self._current = None
        if self._token is not None:
            current_conversation.reset(self._token)

    def notify(self, event: RunnerEvent | None) -> None:
        """Give an event to each observer."""
        if event is not None and self._is_observed:
            elapsed = time.monotonic() - self._start
            self._observers.notify(
                TurnEvent(conversation=self._conversation, elapsed_s=elapsed, event=event)
            )

    async def see(self, event: RunnerEvent) -> None:
        """Give an event to each observer; the last event ends the span."""
        if self._is_observed:
            self.notify(event)
            await self._observers.catch_up()
        if isinstance(event, Done):
            # A consumer may stop at the last event, and never come back.
            self.end(event)

    def end(self, done: Done | None, error: BaseException | None = None) -> None:
        """End the span with the last event, or the exception that is raised in its place."""
        if self._span is not None:
            self._span.end(done, error)
            self._span = None

    @asynccontextmanager
    async def request(
        self,
        name: str,
        provider: ChatProvider,
        plan: RequestPlan,
        catalog: ToolCatalog,
        *,
        is_prefix_kept: bool | None,
    ) -> AsyncGenerator[Callable[[], Awaitable[ReplyEvent | None]], None]:
        """Send a request, with its trace and its log if anything observes it.

        Gives what returns the next event of the reply, or None at its end.
        """
        events = provider.stream(plan)
        if not (self._is_observed or self._telemetry or _requests.isEnabledFor(logging.INFO)):
            async with closing(events):
                yield partial(_next, events, None, None)
            return
        deferred, tokens = plan.tools.sizes
        tokens += _referenced_tokens(plan, catalog)
        # A definition takes about 0.1 ms, and is estimated once: those of a new catalog aside.
        if not catalog.has_computed(_all_tokens):
            await asyncio.to_thread(catalog.once, _all_tokens)
        started = RequestStarted(
            provider=name,
            model=provider.profile.model,
            origin=provider.profile.origin,
            strategy=plan.strategy,
            phase=plan.phase,
            tools=len(plan.tools),
            deferred=deferred,
            tool_tokens=tokens,
            saved_tokens=catalog.once(_all_tokens) - tokens,
            is_prefix_kept=is_prefix_kept,
        )
        self.notify(started)
        seen = _Reply(started)
        tracer = self._telemetry
        span = tracer.request(started, plan, self._conversation) if tracer else None
        try:
            async with closing(events):
                yield partial(_next, events, seen, span)
        except BaseException as error:
            seen.failed(error)
            raise
        finally:
            self._finish(seen, span)

    def _finish(self, seen: _Reply, span: RequestSpan | None) -> None:
        finished = seen.finished()
        if span is not None:
            span.end(finished, seen.end.message if seen.end else None)
        log_request(finished, self._conversation)
        self.notify(finished)


async def _next(
    events: AsyncIterator[ReplyEvent], seen: _Reply | None, span: RequestSpan | None
) -> ReplyEvent | None:
    """Return the next event, or None at the end; it is waited for in the request's span."""
    if span is None:
        event = await anext(events, None)
    else:
        with span.current():
            event = await anext(events, None)
    if seen is not None and event is not None:
        seen.take(event)
    return event


class _Reply:
    """The reply to one request, as far as it came."""

    def __init__(self, started: RequestStarted) -> None:
        self._started = started
        self._start = time.monotonic()
        self._first_s: float | None = None
        self._error = ""
        self.end: ReplyEnd | None = None

    def take(self, event: ReplyEvent) -> None:
        if self._first_s is None:
            self._first_s = time.monotonic() - self._start
        if isinstance(event, ReplyEnd):
            self.end = event

    def failed(self, error: BaseException) -> None:
        """Record the end of a reply that is not whole; an error after its end is not its own."""
        if self.end is None:
            self._error = _kind_of(error)

    def finished(self) -> RequestFinished:
        end = self.end
        return RequestFinished(
            request=self._started,
            duration_s=time.monotonic() - self._start,
            first_s=self._first_s,
            usage=end.usage if end else Usage(),
            stop_reason=end.stop_reason if end else None,
            error="" if end else self._error or "no_end",
            response_id=end.id if end else "",
            response_model=end.model if end else "",
        )


def _kind_of(error: BaseException) -> str:
    """Return the kind of an error in one word: few values, none of them anybody's text."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    if isinstance(error, ProviderError) and error.status is not None:
        return str(error.status)
    # Without an answer, the SDK's exception says more: a time-out or no connection.
    return type(error.__cause__ or error).__name__


def _all_tokens(catalog: ToolCatalog) -> int:
    return sum(tool.estimated_tokens for tool in catalog.active)


def _referenced_tokens(plan: RequestPlan, catalog: ToolCatalog) -> int:
    """Return the tokens of the definitions that references in messages load, each once."""
    shown: dict[str, Tool] = {}
    for message in plan.messages:
        for part in () if isinstance(message.content, str) else message.content:
            if isinstance(part, ReferencePart):
                shown |= {name: catalog[name] for name in part.names if name in catalog}
                shown |= {tool.name: tool for tool in part.tools}
    return sum(tool.estimated_tokens for tool in shown.values())
