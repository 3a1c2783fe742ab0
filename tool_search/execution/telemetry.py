"""The protocols of traces: of calls, and of whole turns.

`tool_search.adapters.opentelemetry` implements them. Nothing here imports a tracer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.events import Done, RequestFinished, RequestStarted, TurnEvent
from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionResult, FinishedCall

__all__ = ["CallSpan", "CallTelemetry", "RequestSpan", "TurnSpan", "TurnTelemetry"]


class CallSpan(Protocol):
    """The trace of one call; current until it ends."""

    def end(self, result: ExecutionResult, duration_s: float) -> None:
        """End the span when the call has ended."""
        ...


class CallTelemetry(Protocol):
    """A tracer of calls."""

    def start(self, tool: Tool, call: ToolCall, context: ToolContext) -> CallSpan:
        """Start a span when a call begins, in the task that runs it."""
        ...


class TurnSpan(Protocol):
    """The trace of one turn."""

    def current(self) -> AbstractContextManager[object]:
        """Make the span the current one for one step of the turn."""
        ...

    def end(self, done: Done | None, error: BaseException | None) -> None:
        """End the span.

        Args:
            done: The last event; None: the turn has none.
            error: The exception that ended the turn; `GeneratorExit` if its consumer stopped.
        """
        ...


class RequestSpan(Protocol):
    """The trace of one request to a model."""

    def current(self) -> AbstractContextManager[object]:
        """Make the span the current one for one step of the reply."""
        ...

    def end(self, finished: RequestFinished, reply: Message | None) -> None:
        """End the span; without a reply, the request failed or was cancelled."""
        ...


@runtime_checkable
class TurnTelemetry(CallTelemetry, Protocol):
    """A tracer of turns, with their requests, searches and calls."""

    def turn(self, conversation: str, message: Message) -> TurnSpan:
        """Start a span when a turn is asked for."""
        ...

    def request(self, started: RequestStarted, plan: RequestPlan, conversation: str) -> RequestSpan:
        """Start a span when a request is sent."""
        ...

    def answered(self, finished: FinishedCall, context: ToolContext) -> None:
        """Record a call that ran no tool: a search, or a call that was refused."""
        ...

    def on_turn(self, seen: TurnEvent) -> None:
        """Measure an event of a turn."""
        ...
