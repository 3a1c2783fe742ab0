"""How each provider family is told which tools there are."""

from __future__ import annotations

from tool_search.strategies.base import Conversation, ToolSearchStrategy
from tool_search.strategies.claude import ClaudeToolSearchStrategy
from tool_search.strategies.generic import BridgeToolSearchStrategy, GenericToolSearchStrategy
from tool_search.strategies.openai_responses import (
    LateToolsToolSearchStrategy,
    OpenAIResponsesToolSearchStrategy,
)
from tool_search.strategies.table import strategies_by_name
from tool_search.strategies.tool_lists import ToolsAssembler

__all__ = [
    "BridgeToolSearchStrategy",
    "ClaudeToolSearchStrategy",
    "Conversation",
    "GenericToolSearchStrategy",
    "LateToolsToolSearchStrategy",
    "OpenAIResponsesToolSearchStrategy",
    "ToolSearchStrategy",
    "ToolsAssembler",
    "strategies_by_name",
]
