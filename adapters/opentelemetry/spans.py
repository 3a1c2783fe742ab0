"""The spans of turns, requests and calls, until they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Token

from opentelemetry import context as context_api
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from tool_search.adapters.opentelemetry.content import output_messages
from tool_search.adapters.opentelemetry.conventions import finish_reason, turn_error
from tool_search.core.messages import Message
from tool_search.events import Done, RequestFinished
from tool_search.execution.results import ExecutionResult
from tool_search.values.redaction import redacted_text

__all__ = ["OpenCall", "OpenRequest", "OpenTurn", "call_error", "fail"]


def fail(span: Span, kind: str, description: str = "") -> None:
    """Mark a span as failed. No message of an error is in it, which may quote anything."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, description or None))


def call_error(result: ExecutionResult) -> str:
    """Return the kind of a call's failure, or nothing."""
    if not result.is_error:
        return ""
    return type(result.error).__name__ if result.error else result.failure or "failed"


class _Current:
    """The state in which a span is the current one, entered for each step of its work."""

    __slots__ = ("_inside", "_token")

    def __init__(self, span: Span) -> None:
        # Without an SDK, nothing can be inside the span.
        is_span = span.get_span_context().is_valid
        self._inside = set_span_in_context(span) if is_span else None
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._inside is not None:
            self._token = context_api.attach(self._inside)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            context_api.detach(self._token)


class OpenTurn:
    """The span of a turn."""

    def __init__(self, span: Span, *, record_content: bool, ended: Callable[[], None]) -> None:
        self._span = span
        self._current = _Current(span)
        self._record_content = record_content
        self._ended = ended

    def current(self) -> _Current:
        """Make the span the current one for one step."""
        return self._current

    def end(self, done: Done | None, error: BaseException | None) -> None:
        """End the span with the turn's last event, or the exception in its place."""
        span = self._span
        if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            fail(span, "cancelled")
        elif error is not None:
            fail(span, type(error).__name__)
        if done is not None:
            self._finish(done)
        self._ended()
        span.end()

    def _finish(self, done: Done) -> None:
        span, usage = self._span, done.usage
        # Not `gen_ai.usage`: services add up the spans of a trace, and would count twice.
        span.set_attributes(
            {
                "gen_ai.response.finish_reasons": (finish_reason(done.stop_reason),),
                "tool_search.turn.provider": done.provider,
                "tool_search.turn.requests": done.steps,
                "tool_search.turn.input_tokens": usage.input_tokens,
                "tool_search.turn.output_tokens": usage.output_tokens,
                "tool_search.turn.cache_read_tokens": usage.cache_read_tokens,
            }
        )
        if kind := turn_error(done):
            fail(span, kind)
        if self._record_content and span.is_recording():
            answer = Message(role="assistant", content=done.answer)
            written = output_messages(answer, finish_reason(done.stop_reason))
            span.set_attribute("gen_ai.output.messages", written)


class OpenRequest:
    """The span of a request."""

    def __init__(self, span: Span, *, record_content: bool) -> None:
        self._span = span
        self._current = _Current(span)
        self._record_content = record_content

    def current(self) -> _Current:
        """Make the span the current one for one step."""
        return self._current

    def end(self, finished: RequestFinished, reply: Message | None) -> None:
        """End the span with the reply, or with the failure in its place."""
        span, usage = self._span, finished.usage
        if finished.first_s is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", finished.first_s)
        if finished.error:
            fail(span, finished.error)
        if finished.stop_reason is not None:
            span.set_attributes(
                {
                    "gen_ai.response.finish_reasons": (finish_reason(finished.stop_reason),),
                    "gen_ai.usage.input_tokens": usage.input_tokens,
                    "gen_ai.usage.output_tokens": usage.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                }
            )
        if finished.response_model:
            span.set_attribute("gen_ai.response.model", finished.response_model)
        if finished.response_id:
            span.set_attribute("gen_ai.response.id", finished.response_id)
        if self._record_content and reply is not None and span.is_recording():
            written = output_messages(reply, finish_reason(finished.stop_reason or ""))
            span.set_attribute("gen_ai.output.messages", written)
        span.end()


class OpenCall:
    """The span of a call; current in the call's task until it ends."""

    def __init__(
        self,
        span: Span,
        token: Token[Context],
        durations: Histogram,
        shared: dict[str, str],
        *,
        record_content: bool,
    ) -> None:
        self._span = span
        self._token = token
        self._durations = durations
        self._shared = shared
        self._record_content = record_content

    def end(self, result: ExecutionResult, duration_s: float) -> None:
        """End the span with the call's outcome, and record its duration."""
        shared = self._shared
        if kind := call_error(result):
            shared = {**shared, "error.type": kind}
            fail(self._span, kind, result.outcome)
        if self._record_content and self._span.is_recording():
            self._span.set_attribute("gen_ai.tool.call.result", redacted_text(result.content))
        self._durations.record(duration_s, attributes=shared)
        context_api.detach(self._token)
        self._span.end()
