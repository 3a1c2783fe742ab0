"""The seam between a call that is decided and the one result it comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from tool_search.i18n import Language
from tool_search.messages import ToolCall

__all__ = ["CallProgress", "ExecutionEvent", "ExecutionResult", "ToolContext", "ToolExecutor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know about where it is called.

    Attributes:
        conversation: The conversation's key.
        language: Of what the user reads.
        user: Who asked, where the bot tells.
    """

    conversation: str
    language: Language
    user: str | None = None


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call is, for people."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """What a call came to; always the last event, and exactly one.

    Attributes:
        content: As the model reads it.
        is_error: Whether it reports a failure.
    """

    content: str
    is_error: bool = False


ExecutionEvent = CallProgress | ExecutionResult


class ToolExecutor(Protocol):
    """Runs tools, by canonical name."""

    def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Runs one call whose arguments fit its tool's schema.

        A tool's failure is a result with `is_error`, never an exception; cancelling
        the iteration cancels the tool.
        """
        ...
