# bot
from tool_search.adapters import build_provider as build_provider
from tool_search.bot import Bot as Bot
from tool_search.bot import open_bot as open_bot
from tool_search.config.bot import BotConfig as BotConfig
from tool_search.config.bot import ProviderConfig as ProviderConfig
from tool_search.config.conversation import ToolSearchConfig as ToolSearchConfig
from tool_search.config.loading import load_config as load_config
from tool_search.runner.runner import ToolSearchRunner as ToolSearchRunner

# tools
from tool_search.core.catalog.tool import Tool as Tool
from tool_search.core.catalog.catalog import ToolCatalog as ToolCatalog
from tool_search.catalog.formats import tool_from_definition as tool_from_definition
from tool_search.runner.execution.context import ToolContext as ToolContext
from tool_search.runner.execution.functions import ExecutableTool as ExecutableTool
from tool_search.runner.execution.functions import stateful_tool as stateful_tool
from tool_search.runner.execution.functions import tool_from_function as tool_from_function

# own loop
from tool_search.core.conversation.calls import RunCall as RunCall
from tool_search.core.conversation.session import CallResult as CallResult
from tool_search.runner.session.session import ToolSearchSession as ToolSearchSession
from tool_search.runner.execution.call_runner import CallOptions as CallOptions
from tool_search.runner.execution.call_runner import CallRunner as CallRunner
from tool_search.core.messages import ToolCall as ToolCall
from tool_search.core.profiles import ProviderProfile as ProviderProfile
from tool_search.providers.profile_choice import profile_for as profile_for

# hosts
from tool_search.adapters.hosts.view import ToolView as ToolView
from tool_search.core.conversation.view import append_instructions as append_instructions
from tool_search.adapters.hosts.tool_search import ToolSearch as ToolSearch

# strategies
from tool_search.core.messages import RequestPlan as RequestPlan
from tool_search.core.strategies.base import ToolSearchStrategy as ToolSearchStrategy
from tool_search.core.strategies.claude import ClaudeToolSearchStrategy as ClaudeToolSearchStrategy
from tool_search.core.strategies.generic import (
    GenericToolSearchStrategy as GenericToolSearchStrategy,
)
from tool_search.core.strategies.openai_responses import (
    OpenAIResponsesToolSearchStrategy as OpenAIResponsesToolSearchStrategy,
)
from tool_search.core.strategies.base import register_strategy as register_strategy

# search
from tool_search.config.search import SearchSettings as SearchSettings
from tool_search.search.build import build_index as build_index
from tool_search.search.evaluation import evaluate as evaluate
from tool_search.core.services import SearchResult as SearchResult
from tool_search.core.services import ToolSearchIndex as ToolSearchIndex
from tool_search.search.vectors.embedder import Embedder as Embedder

# events
from tool_search.runner.events import Done as Done
from tool_search.runner.events import ProviderSwitched as ProviderSwitched
from tool_search.runner.events import RunnerWarning as RunnerWarning
from tool_search.runner.events import TextDelta as TextDelta
from tool_search.runner.events import ToolCallStarted as ToolCallStarted
from tool_search.runner.events import ToolFinished as ToolFinished
from tool_search.runner.events import ToolsDiscovered as ToolsDiscovered

# stores
from tool_search.stores.base import ConversationStore as ConversationStore
from tool_search.stores.memory import MemoryStore as MemoryStore
from tool_search.stores.sqlite.store import SQLiteStore as SQLiteStore

# errors
from tool_search.errors import AllProvidersFailedError as AllProvidersFailedError
from tool_search.errors import CatalogError as CatalogError
from tool_search.errors import ConfigurationError as ConfigurationError
from tool_search.errors import NoAnswerError as NoAnswerError
from tool_search.errors import ProviderError as ProviderError
from tool_search.errors import SearchError as SearchError
from tool_search.errors import SessionError as SessionError
from tool_search.errors import StoreError as StoreError
from tool_search.errors import ToolSearchError as ToolSearchError
from tool_search.errors import UnsupportedStrategyError as UnsupportedStrategyError

# Reachable, not in `__all__`
from tool_search.config.permissions import PermissionSettings as PermissionSettings
from tool_search.core.conversation.calls import CallDecision as CallDecision
from tool_search.stores.record import ConversationRecord as ConversationRecord
from tool_search.core.discoveries import ModeDecision as ModeDecision
from tool_search.search.discovery.search_tool import ToolSearchTool as ToolSearchTool
from tool_search.core.discoveries import Discovery as Discovery
from tool_search.core.discoveries import DiscoveryState as DiscoveryState
from tool_search.errors import DuplicateToolError as DuplicateToolError
from tool_search.errors import InvalidToolError as InvalidToolError
from tool_search.errors import ToolCallError as ToolCallError
from tool_search.runner.events import RunnerEvent as RunnerEvent
from tool_search.runner.events import Warning as Warning
from tool_search.runner.execution.context import ToolExecutor as ToolExecutor
from tool_search.runner.execution.permissions.check import PermissionAnswer as PermissionAnswer
from tool_search.runner.execution.permissions.check import Permissions as Permissions
from tool_search.core.messages import ImagePart as ImagePart
from tool_search.core.messages import Message as Message
from tool_search.core.messages import TextPart as TextPart
from tool_search.core.messages import ToolList as ToolList
from tool_search.providers.base import ChatProvider as ChatProvider
from tool_search.providers.base import Usage as Usage
from tool_search.core.services import SearchMatch as SearchMatch
from tool_search.stores.base import EvidenceStore as EvidenceStore
from tool_search.core.strategies.tool_lists import ToolsAssembler as ToolsAssembler

__version__: str
