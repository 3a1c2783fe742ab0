"""Tool search for chatbots: the model finds its tools when it needs them.

>>> from tool_search import Tool, build_index
>>> index = build_index([Tool(name="get_forecast", description="Weather for a city.")])
>>> [match.name for match in index.search("weather in Paris", limit=5).matches]
['get_forecast']

Names are imported when they are first used: a bot that only reads a catalog loads
no agent loop, and `import tool_search` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tool_search.catalog.catalog import CorePolicy, Tool, ToolCatalog
    from tool_search.catalog.tokens import estimate_tokens
    from tool_search.config.bot import (
        BotConfig,
        HistorySettings,
        PermissionSettings,
        ProfileSettings,
        ProviderConfig,
        SearchSettings,
        ToolSearchConfig,
        load_config,
    )
    from tool_search.conversation.calls import AnsweredCall, CallDecision, RunCall
    from tool_search.conversation.record import ConversationRecord
    from tool_search.conversation.session import CallResult, ToolSearchSession
    from tool_search.discovery.modes import ModeDecision, resolve_mode
    from tool_search.discovery.search_tool import ToolSearchTool
    from tool_search.discovery.state import Discovery, DiscoveryState
    from tool_search.errors import (
        AllProvidersFailedError,
        CatalogError,
        ConfigurationError,
        DuplicateToolError,
        InvalidToolError,
        ProviderError,
        SearchError,
        SessionError,
        StoreError,
        ToolCallError,
        ToolSearchError,
        UnreadableRecordError,
        UnsupportedStrategyError,
    )
    from tool_search.events import (
        ContentLeftOut,
        Done,
        ProviderSwitched,
        RunnerEvent,
        TextDelta,
        ToolCallStarted,
        ToolFinished,
        ToolPartial,
        ToolProgress,
        ToolsDiscovered,
        Warning,
    )
    from tool_search.execution import (
        CallBatch,
        CallLimits,
        CallOptions,
        CallOutcome,
        CallPartial,
        CallProgress,
        CallRunner,
        Cancellation,
        ExecutableTool,
        ExecutionResult,
        FunctionExecutor,
        HookAnswer,
        HookedCall,
        PermissionAnswer,
        PermissionRequest,
        Permissions,
        ToolContext,
        ToolError,
        ToolExecution,
        ToolExecutor,
        ToolHook,
        stateful_tool,
        tool_from_function,
    )
    from tool_search.messages import (
        ImagePart,
        Message,
        Notice,
        ReferencePart,
        RequestPlan,
        TextPart,
        ToolCall,
    )
    from tool_search.providers.base import ChatProvider, Usage
    from tool_search.providers.profiles import ProviderProfile, profile_for
    from tool_search.providers.prompt_cache import CachePlan, cache_plan
    from tool_search.runner.runner import ToolSearchRunner
    from tool_search.search import (
        Embedder,
        SearchMatch,
        SearchResult,
        ToolSearchIndex,
        VectorCache,
        VectorStore,
        build_index,
    )
    from tool_search.stores import ConversationStore, EvidenceStore, MemoryStore, SQLiteStore
    from tool_search.strategies import (
        BridgeToolSearchStrategy,
        ClaudeToolSearchStrategy,
        Conversation,
        GenericToolSearchStrategy,
        LateToolsToolSearchStrategy,
        OpenAIResponsesToolSearchStrategy,
        ToolsAssembler,
        ToolSearchStrategy,
    )

__all__ = [
    "AllProvidersFailedError",
    "AnsweredCall",
    "BotConfig",
    "BridgeToolSearchStrategy",
    "CachePlan",
    "CallBatch",
    "CallDecision",
    "CallLimits",
    "CallOptions",
    "CallOutcome",
    "CallPartial",
    "CallProgress",
    "CallResult",
    "CallRunner",
    "Cancellation",
    "CatalogError",
    "ChatProvider",
    "ClaudeToolSearchStrategy",
    "ConfigurationError",
    "ContentLeftOut",
    "Conversation",
    "ConversationRecord",
    "ConversationStore",
    "CorePolicy",
    "Discovery",
    "DiscoveryState",
    "Done",
    "DuplicateToolError",
    "Embedder",
    "EvidenceStore",
    "ExecutableTool",
    "ExecutionResult",
    "FunctionExecutor",
    "GenericToolSearchStrategy",
    "HistorySettings",
    "HookAnswer",
    "HookedCall",
    "ImagePart",
    "InvalidToolError",
    "LateToolsToolSearchStrategy",
    "MemoryStore",
    "Message",
    "ModeDecision",
    "Notice",
    "OpenAIResponsesToolSearchStrategy",
    "PermissionAnswer",
    "PermissionRequest",
    "PermissionSettings",
    "Permissions",
    "ProfileSettings",
    "ProviderConfig",
    "ProviderError",
    "ProviderProfile",
    "ProviderSwitched",
    "ReferencePart",
    "RequestPlan",
    "RunCall",
    "RunnerEvent",
    "SQLiteStore",
    "SearchError",
    "SearchMatch",
    "SearchResult",
    "SearchSettings",
    "SessionError",
    "StoreError",
    "TextDelta",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolCallError",
    "ToolCallStarted",
    "ToolCatalog",
    "ToolContext",
    "ToolError",
    "ToolExecution",
    "ToolExecutor",
    "ToolFinished",
    "ToolHook",
    "ToolPartial",
    "ToolProgress",
    "ToolSearchConfig",
    "ToolSearchError",
    "ToolSearchIndex",
    "ToolSearchRunner",
    "ToolSearchSession",
    "ToolSearchStrategy",
    "ToolSearchTool",
    "ToolsAssembler",
    "ToolsDiscovered",
    "UnreadableRecordError",
    "UnsupportedStrategyError",
    "Usage",
    "VectorCache",
    "VectorStore",
    "Warning",
    "build_index",
    "cache_plan",
    "estimate_tokens",
    "load_config",
    "profile_for",
    "resolve_mode",
    "stateful_tool",
    "tool_from_function",
]

# Where each name lives: the imports above say the same to type checkers.
_HOMES = {
    "tool_search.providers.prompt_cache": "CachePlan cache_plan",
    "tool_search.conversation.calls": "AnsweredCall CallDecision RunCall",
    "tool_search.catalog.catalog": "CorePolicy Tool ToolCatalog",
    "tool_search.config.bot": """
        BotConfig HistorySettings PermissionSettings ProfileSettings ProviderConfig
        SearchSettings ToolSearchConfig load_config
    """,
    "tool_search.discovery.state": "Discovery DiscoveryState",
    "tool_search.errors": """
        AllProvidersFailedError CatalogError ConfigurationError DuplicateToolError
        InvalidToolError ProviderError SearchError SessionError StoreError ToolCallError
        ToolSearchError UnreadableRecordError UnsupportedStrategyError
    """,
    "tool_search.events": """
        ContentLeftOut Done ProviderSwitched RunnerEvent TextDelta ToolCallStarted ToolFinished
        ToolPartial ToolProgress ToolsDiscovered Warning
    """,
    "tool_search.execution": """
        CallBatch CallLimits CallOptions CallOutcome CallPartial CallProgress CallRunner
        Cancellation ExecutableTool ExecutionResult FunctionExecutor HookAnswer HookedCall
        PermissionAnswer PermissionRequest Permissions ToolContext ToolError ToolExecution
        ToolExecutor ToolHook stateful_tool tool_from_function
    """,
    "tool_search.messages": "ImagePart Message Notice ReferencePart RequestPlan TextPart ToolCall",
    "tool_search.discovery.modes": "ModeDecision resolve_mode",
    "tool_search.providers.profiles": "ProviderProfile profile_for",
    "tool_search.providers.base": "ChatProvider Usage",
    "tool_search.conversation.record": "ConversationRecord",
    "tool_search.runner.runner": "ToolSearchRunner",
    "tool_search.search": """
        Embedder SearchMatch SearchResult ToolSearchIndex VectorCache VectorStore build_index
    """,
    "tool_search.discovery.search_tool": "ToolSearchTool",
    "tool_search.conversation.session": "CallResult ToolSearchSession",
    "tool_search.stores": "ConversationStore EvidenceStore MemoryStore SQLiteStore",
    "tool_search.strategies": """
        BridgeToolSearchStrategy ClaudeToolSearchStrategy Conversation
        GenericToolSearchStrategy LateToolsToolSearchStrategy
        OpenAIResponsesToolSearchStrategy ToolSearchStrategy ToolsAssembler
    """,
    "tool_search.catalog.tokens": "estimate_tokens",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
