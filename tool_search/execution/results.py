"""What a running call says, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tool_search.events import CallStep, Outcome
from tool_search.messages import ContentPart

__all__ = [
    "CallPartial",
    "CallProgress",
    "CallStep",
    "ExecutionEvent",
    "ExecutionResult",
    "Failure",
    "Outcome",
]

Failure = Literal["invalid", "blocked", "denied", "failed", "timed_out", "cancelled"]
"""Why a call has no result of its tool's."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call is, for people."""

    message: str


@dataclass(frozen=True, slots=True)
class CallPartial:
    """A piece of the result before the rest, for people.

    The model reads the final result alone; where there is none, because the call
    failed or was cancelled, it reads the pieces there were.
    """

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """What a call came to; always the last event, and exactly one.

    A tool may give it itself, where what it returns and what the model reads differ.

    Attributes:
        content: As the model reads it.
        is_error: Whether it reports a failure.
        parts: The same with pictures; empty: the text is all.
        data: What the tool returned, for other tools and for the bot.
        failure: Of which kind a failure is.
        error: The exception behind it.
    """

    content: str
    is_error: bool = False
    parts: tuple[ContentPart, ...] = ()
    data: Any = field(default=None, compare=False)
    failure: Failure | None = field(default=None, compare=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def outcome(self) -> Outcome:
        """How the call ended."""
        if not self.is_error:
            return "finished"
        if self.failure in ("denied", "blocked"):
            return "denied"
        return "cancelled" if self.failure == "cancelled" else "failed"


ExecutionEvent = CallProgress | CallPartial | ExecutionResult
