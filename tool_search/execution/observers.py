"""Observers of calls, in addition to the events of a turn."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from tool_search.execution.results import ExecutionResult
from tool_search.values.redaction import log_failure

__all__ = ["CallObserver", "ToolFailure", "ToolRun", "report"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """The end of a call.

    Attributes:
        tool: The canonical name.
        duration: Seconds from start to end.
        success: True if the tool returned a result.
    """

    name: ClassVar[str] = "tool_execution"
    tool: str
    duration: float
    success: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """The failure, denial or cancellation of a call.

    Attributes:
        tool: The canonical name.
        error: The text that the model reads.
        stack: The traceback of the tool's exception; empty if there was none.
    """

    name: ClassVar[str] = "tool_error"
    tool: str
    error: str
    stack: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


CallObserver = Callable[[ToolRun | ToolFailure], None]


def report(
    observers: Iterable[CallObserver], tool: str, result: ExecutionResult, duration_s: float
) -> None:
    """Call all observers with the records of one call; log those that fail."""
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
