"""One tool call, from arguments that fit to its one result."""

from __future__ import annotations

from tool_search.execution.base import (
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    ToolContext,
    ToolExecutor,
)
from tool_search.execution.functions import (
    ExecutableTool,
    FunctionExecutor,
    executable_tools,
    tool_from_function,
)

__all__ = [
    "CallProgress",
    "ExecutableTool",
    "ExecutionEvent",
    "ExecutionResult",
    "FunctionExecutor",
    "ToolContext",
    "ToolExecutor",
    "executable_tools",
    "tool_from_function",
]
