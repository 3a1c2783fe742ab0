"""The seam between a call that is decided and the one result it comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionEvent
from tool_search.messages import ToolCall

__all__ = ["ToolExecutor"]


class ToolExecutor(Protocol):
    """Runs tools, by canonical name."""

    def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Runs one call whose arguments fit its tool's schema.

        A tool's failure is a result with `is_error`, never an exception; cancelling
        the iteration cancels the tool.
        """
        ...
