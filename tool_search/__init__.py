"""Tool search for chatbots: the model finds its tools when it needs them.

>>> from tool_search import Tool, build_index
>>> index = build_index([Tool(name="get_forecast", description="Weather for a city.")])
>>> [match.name for match in index.search("weather in Paris", limit=5).matches]
['get_forecast']

Names are imported when they are first used: a bot that only reads a catalog loads
no agent loop, and `import tool_search` costs next to nothing.
"""

from os.path import isfile

from tool_search.core.exports import explain_missing_links, exports, find_moved_modules

__version__ = "0.1.0"

__all__, __getattr__ = exports(
    __name__,
    __file__,
    moved={
        "AnsweredCall": "tool_search.core.conversation.calls.AnsweredCall",
        "BridgeToolSearchStrategy": "tool_search.core.strategies.BridgeToolSearchStrategy",
        "CachePlan": "tool_search.providers.prompt_cache.CachePlan",
        "CallBatch": "tool_search.runner.execution.CallBatch",
        "CallLimits": "tool_search.runner.execution.CallLimits",
        "CallOutcome": "tool_search.runner.execution.FinishedCall",
        "CallPartial": "tool_search.runner.execution.CallOutputDelta",
        "CallProgress": "tool_search.runner.execution.CallProgress",
        "Cancellation": "tool_search.runner.execution.Cancellation",
        "ContentLeftOut": "tool_search.runner.events.ContentLeftOut",
        "Conversation": "tool_search.core.strategies.PlanInput",
        "CorePolicy": "tool_search.catalog.CorePolicy",
        "ExecutionResult": "tool_search.runner.execution.ExecutionResult",
        "FunctionExecutor": "tool_search.runner.execution.FunctionExecutor",
        "HistorySettings": "tool_search.config.HistorySettings",
        "HookAnswer": "tool_search.runner.execution.HookAnswer",
        "HookedCall": "tool_search.runner.execution.HookedCall",
        "LateToolsToolSearchStrategy": (
            "tool_search.core.strategies.ToolsInMessagesToolSearchStrategy"
        ),
        "Notice": "tool_search.core.messages.Notice",
        "PermissionRequest": "tool_search.runner.execution.PermissionRequest",
        "ProfileSettings": "tool_search.config.ProfileSettings",
        "ReferencePart": "tool_search.core.messages.ReferencePart",
        "ToolError": "tool_search.runner.execution.ToolFailure",
        "ToolExecution": "tool_search.runner.execution.ToolRun",
        "ToolHook": "tool_search.runner.execution.ToolHook",
        "ToolPartial": "tool_search.runner.events.ToolOutputDelta",
        "ToolProgress": "tool_search.runner.events.ToolProgress",
        "UnreadableRecordError": "tool_search.errors.UnreadableRecordError",
        "VectorCache": "tool_search.search.VectorCache",
        "VectorStore": "tool_search.search.VectorStore",
        "cache_plan": "tool_search.providers.prompt_cache.cache_plan",
        "estimate_tokens": "tool_search.catalog.estimate_tokens",
        "open_runner": "tool_search.open_bot",
        "resolve_mode": "tool_search.search.discovery.resolve_mode",
    },
)

if __name__ == "tool_search":  # a copy under another name has no former names
    find_moved_modules()

if isfile(f"{__file__.rpartition('__init__')[0]}adapters"):  # noqa: PTH113 - `pathlib` is slow
    explain_missing_links()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
