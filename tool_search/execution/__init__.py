"""One tool call, from the model's words to its one result."""

from __future__ import annotations

from tool_search.execution.batch import CallBatch
from tool_search.execution.call_runner import CallOptions, CallRunner
from tool_search.execution.context import Cancellation, ToolContext, ToolExecutor
from tool_search.execution.function_executor import FunctionExecutor
from tool_search.execution.functions import (
    ExecutableTool,
    ToolFunction,
    executable_tools,
    named_tools,
    stateful_tool,
    tool_from_function,
)
from tool_search.execution.hooks import HookAnswer, HookedCall, ToolHook
from tool_search.execution.limits import CallLimits
from tool_search.execution.observers import ToolFailure, ToolRun
from tool_search.execution.permissions.check import (
    AskUser,
    PermissionAnswer,
    PermissionRequest,
    Permissions,
)
from tool_search.execution.permissions.grants import Grant, GrantBook, GrantFile, GrantStore
from tool_search.execution.replay import RememberedResults, ResultMemory, TurnCalls
from tool_search.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    FinishedCall,
)

__all__ = [
    "AskUser",
    "CallBatch",
    "CallLimits",
    "CallOptions",
    "CallOutputDelta",
    "CallProgress",
    "CallRunner",
    "Cancellation",
    "ExecutableTool",
    "ExecutionEvent",
    "ExecutionResult",
    "FinishedCall",
    "FunctionExecutor",
    "Grant",
    "GrantBook",
    "GrantFile",
    "GrantStore",
    "HookAnswer",
    "HookedCall",
    "PermissionAnswer",
    "PermissionRequest",
    "Permissions",
    "RememberedResults",
    "ResultMemory",
    "ToolContext",
    "ToolExecutor",
    "ToolFailure",
    "ToolFunction",
    "ToolHook",
    "ToolRun",
    "TurnCalls",
    "executable_tools",
    "named_tools",
    "stateful_tool",
    "tool_from_function",
]
