"""Strategies: present tool definitions in one provider family's format."""

from __future__ import annotations

from tool_search.core.strategies.base import (
    STRATEGY_GROUP,
    StrategySet,
    ToolSearchStrategy,
    register_strategy,
    strategy_class,
    strategy_names,
)
from tool_search.core.strategies.claude import ClaudeToolSearchStrategy
from tool_search.core.strategies.generic import BridgeToolSearchStrategy, GenericToolSearchStrategy
from tool_search.core.strategies.history import DeclaredNames, PlanInput
from tool_search.core.strategies.openai_responses import (
    OpenAIResponsesToolSearchStrategy,
    ToolsInMessagesToolSearchStrategy,
)
from tool_search.core.strategies.tool_lists import ToolsAssembler

__all__ = [
    "STRATEGY_GROUP",
    "BridgeToolSearchStrategy",
    "ClaudeToolSearchStrategy",
    "DeclaredNames",
    "GenericToolSearchStrategy",
    "OpenAIResponsesToolSearchStrategy",
    "PlanInput",
    "StrategySet",
    "ToolSearchStrategy",
    "ToolsAssembler",
    "ToolsInMessagesToolSearchStrategy",
    "register_strategy",
    "strategy_class",
    "strategy_names",
]
