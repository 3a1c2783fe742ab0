"""Strategies: present tool definitions in one provider family's format."""

from __future__ import annotations

from tool_search.strategies.base import ToolSearchStrategy
from tool_search.strategies.claude import ClaudeToolSearchStrategy
from tool_search.strategies.generic import BridgeToolSearchStrategy, GenericToolSearchStrategy
from tool_search.strategies.history import DeclaredNames
from tool_search.strategies.openai_responses import (
    OpenAIResponsesToolSearchStrategy,
    ToolsInMessagesToolSearchStrategy,
)
from tool_search.strategies.plan_input import PlanInput
from tool_search.strategies.planning import StrategySet
from tool_search.strategies.registry import (
    STRATEGY_GROUP,
    register_strategy,
    strategy_class,
    strategy_names,
)
from tool_search.strategies.tool_lists import ToolsAssembler

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
