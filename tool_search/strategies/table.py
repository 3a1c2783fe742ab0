"""Every strategy by its name, as a profile names it."""

from __future__ import annotations

from collections.abc import Mapping

from tool_search.messages import StrategyName
from tool_search.strategies.base import ToolSearchStrategy
from tool_search.strategies.claude import ClaudeToolSearchStrategy
from tool_search.strategies.generic import BridgeToolSearchStrategy, GenericToolSearchStrategy
from tool_search.strategies.openai_responses import (
    OpenAIResponsesToolSearchStrategy,
    ToolsInMessagesToolSearchStrategy,
)
from tool_search.strategies.tool_lists import ToolsAssembler

__all__ = ["strategies_by_name"]


def strategies_by_name(assembler: ToolsAssembler) -> Mapping[StrategyName, ToolSearchStrategy]:
    """One strategy of each kind, all with this assembler."""
    made = (
        GenericToolSearchStrategy(assembler),
        ClaudeToolSearchStrategy(assembler),
        OpenAIResponsesToolSearchStrategy(assembler),
        BridgeToolSearchStrategy(assembler),
        ToolsInMessagesToolSearchStrategy(assembler),
    )
    return {strategy.name: strategy for strategy in made}
