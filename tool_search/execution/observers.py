"""What a bot can be told of its calls, beside the events of a turn."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from tool_search.catalog.tool import Tool
from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionResult
from tool_search.messages import ToolCall
from tool_search.values.redaction import log_failure

__all__ = ["CallObserver", "CallSpan", "CallTelemetry", "ToolFailure", "ToolRun", "report"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A call is over.

    Attributes:
        tool: The canonical name.
        duration: Seconds.
        success: True only where the tool gave its result.
    """

    name: ClassVar[str] = "tool_execution"
    tool: str
    duration: float
    success: bool

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A call has failed, been denied or been cancelled.

    Attributes:
        tool: The canonical name.
        error: What the model reads.
        stack: Where the tool's exception was raised; empty where there was none.
    """

    name: ClassVar[str] = "tool_error"
    tool: str
    error: str
    stack: str

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


CallObserver = Callable[[ToolRun | ToolFailure], None]


class CallSpan(Protocol):
    """The trace of one call; what the call does is part of it until it ends."""

    def end(self, result: ExecutionResult, duration_s: float) -> None:
        """The call is over."""
        ...


class CallTelemetry(Protocol):
    """Traces calls."""

    def start(self, tool: Tool, call: ToolCall, context: ToolContext) -> CallSpan:
        """A call begins, in the task that will run it."""
        ...


def report(
    observers: Iterable[CallObserver], tool: str, result: ExecutionResult, duration_s: float
) -> None:
    """Tells everybody of one call; an observer that fails is logged, and stops nothing."""
    events: list[ToolRun | ToolFailure] = [
        ToolRun(tool=tool, duration=duration_s, success=not result.is_error)
    ]
    if result.is_error:
        stack = "".join(traceback.format_exception(result.error)) if result.error else ""
        events.append(ToolFailure(tool=tool, error=result.content, stack=stack))
    for observer in observers:
        for event in events:
            try:
                observer(event)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end a call
                log_failure(_log, "an observer of calls failed")
