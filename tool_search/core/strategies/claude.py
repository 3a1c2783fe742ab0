"""The whole catalog with `defer_loading`, and search results as `tool_reference`s.

Source: Anthropic, "Tool search tool", section "Custom tool search implementation": a
client's search tool answers with references, and the service expands their definitions in
place. `tools` stays byte for byte as it was, and the prompt cache holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import ClassVar

from tool_search.core.messages import (
    Message,
    ReferencePart,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.core.services import SearchResult
from tool_search.core.strategies.base import ToolSearchStrategy, register_strategy
from tool_search.core.strategies.history import MessageRenderer, PlanInput

__all__ = ["ClaudeToolSearchStrategy"]


@register_strategy
class ClaudeToolSearchStrategy(ToolSearchStrategy):
    """Declare the whole catalog with deferred tools; a search result is references.

    A result has references alone or text alone: the service refuses both in one. Text
    that belongs to references follows the result.
    """

    name: ClassVar[StrategyName] = "claude"
    dialect = "anthropic"
    requires = "a model with tool search (Claude Sonnet 4.5, Opus 4.5 or later)"
    uses_limits = True

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the whole catalog; in `full` mode no tool is deferred."""
        return self._assembler.deferring(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return references to all that the result makes callable; without any, its JSON."""
        return ReferencePart(result.names) if result.names else TextPart(result.to_json())

    def _renderer(self, conversation: PlanInput, tools: ToolList) -> MessageRenderer:
        if not conversation.text_after_references:
            return super()._renderer(conversation, tools)
        return _BoundedRenderer(conversation, tools, self.show_result)


class _BoundedRenderer(MessageRenderer):
    """Puts a line of text after the last references of each exchange."""

    # If expanded definitions are the very end of a prompt, Claude now and then ends its
    # turn without a word; three clients report it, and this as the remedy.

    def render(self, history: Sequence[Message], index: int) -> Message:
        """Return the message of a history at an index, with the line if it is the last."""
        message = super().render(history, index)
        if not _refers(message):
            return message
        results = takewhile(lambda i: history[i].role == "tool", range(index + 1, len(history)))
        if any(_refers(super(_BoundedRenderer, self).render(history, later)) for later in results):
            return message
        content = (*message.content, TextPart(self._conversation.text_after_references))
        return replace(message, content=content)


def _refers(message: Message) -> bool:
    """True if a message is a result that refers to tools."""
    if message.role != "tool" or isinstance(message.content, str):
        return False
    return any(isinstance(part, ReferencePart) for part in message.content)
