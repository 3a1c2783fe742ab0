"""How each provider family is told which tools there are."""

from __future__ import annotations

from tool_search.strategies.base import PlanInput, ToolSearchStrategy
from tool_search.strategies.claude import ClaudeToolSearchStrategy
from tool_search.strategies.generic import BridgeToolSearchStrategy, GenericToolSearchStrategy
from tool_search.strategies.openai_responses import (
    OpenAIResponsesToolSearchStrategy,
    ToolsInMessagesToolSearchStrategy,
)
from tool_search.strategies.table import strategies_by_name
from tool_search.strategies.tool_lists import ToolsAssembler

__all__ = [
    "BridgeToolSearchStrategy",
    "ClaudeToolSearchStrategy",
    "GenericToolSearchStrategy",
    "OpenAIResponsesToolSearchStrategy",
    "PlanInput",
    "ToolSearchStrategy",
    "ToolsAssembler",
    "ToolsInMessagesToolSearchStrategy",
    "strategies_by_name",
]
