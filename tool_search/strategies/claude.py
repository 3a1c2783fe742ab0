"""The whole catalog with `defer_loading`, and search results as `tool_reference`s.

Chosen for Claude models on endpoints known to support it. Follows Anthropic's
"Tool search tool", section "Custom tool search implementation": a client's search
tool answers with references, and the service expands their definitions in place,
so that `tools` stays byte for byte what it was and the prompt cache holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import ClassVar

from tool_search.messages import (
    Message,
    ReferencePart,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.search.index.protocol import SearchResult
from tool_search.strategies.base import (
    DeclaredNames,
    HistoryShower,
    PlanInput,
    ToolSearchStrategy,
    read_result,
)

__all__ = ["ClaudeToolSearchStrategy"]


class ClaudeToolSearchStrategy(ToolSearchStrategy):
    """Declares everything, deferred tools deferred; a search result is references.

    A result has references alone or text alone: the service refuses both in one. What
    text there is beside references stands behind the result.
    """

    name: ClassVar[StrategyName] = "claude"

    def declare(self, conversation: PlanInput) -> ToolList:
        """The whole catalog; in `full` mode with nothing deferred."""
        return self._assembler.deferring(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """References to all the result makes callable, or its JSON where that is nothing."""
        return ReferencePart(result.names) if result.names else TextPart(result.to_json())

    def _shower(self, conversation: PlanInput, tools: ToolList) -> HistoryShower:
        if not conversation.boundary:
            return super()._shower(conversation, tools)
        return _BoundedShower(conversation, tools, self._show_result)

    def _show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """References to what this very request declares, and never to anything else."""
        result = read_result(message.text)
        if result is None or message.is_error:  # the service takes only text in an error
            return message
        names = tuple(
            name
            for name in dict.fromkeys(result.names)
            if tools.declares(name) and name not in conversation.refused
        )
        if not names:
            return replace(message, content=(TextPart(result.to_json()),))
        hidden = conversation.hidden_text(result)
        return replace(message, content=(ReferencePart(names), *((hidden,) if hidden else ())))


class _BoundedShower(HistoryShower):
    """Shows a history with a line of text after the last references of each exchange.

    Where expanded definitions are the very end of a prompt, Claude now and then
    ends its turn without a word; three clients report it, and this as the remedy.
    """

    def show(self, history: Sequence[Message], index: int) -> Message:
        """The message of a history at an index."""
        message = super().show(history, index)
        if not _refers(message):
            return message
        results = takewhile(lambda i: history[i].role == "tool", range(index + 1, len(history)))
        if any(_refers(super(_BoundedShower, self).show(history, later)) for later in results):
            return message
        content = (*message.content, TextPart(self._conversation.boundary))
        return replace(message, content=content)


def _refers(message: Message) -> bool:
    """True if a message is a result that refers to tools."""
    if message.role != "tool" or isinstance(message.content, str):
        return False
    return any(isinstance(part, ReferencePart) for part in message.content)
