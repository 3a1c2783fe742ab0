"""Definitions in messages: the core is declared, and definitions follow what found them.

Source: OpenAI, "Tool search": the client answers a `tool_search_call` with the definitions
themselves, and they are callable from there on. `tools` stays byte for byte as it was, and
the prompt cache holds. Models without tool search get them through `additional_tools`.
Source: Moonshot AI, "Dynamic tool loading": a system message with `tools` and no content
makes them callable from its place on.
"""

from __future__ import annotations

import re
from dataclasses import replace
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
from tool_search.core.strategies.history import DeclaredNames, PlanInput, read_result

__all__ = [
    "OpenAIResponsesToolSearchStrategy",
    "ToolsInMessagesToolSearchStrategy",
]


@register_strategy
class OpenAIResponsesToolSearchStrategy(ToolSearchStrategy):
    """Declare the core and a search tool; a search result is the definitions it found.

    Definitions that earlier messages have shown are not repeated, unless a result would
    be empty without them. The definition of a tool that was called without a search comes
    before the call. A profile's `search_form` decides how much more is declared.
    """

    name: ClassVar[StrategyName] = "openai_responses"
    sends_definitions_in_messages = True
    definitions_role = "developer"
    dialect = "openai_responses"
    requires = "a model that takes definitions in messages (gpt-5 or later)"

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the search tool and the core; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.natively_searched(conversation)
        return self._assembler.full(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return references to all that the result makes callable; without any, its JSON."""
        return ReferencePart(result.names) if result.names else TextPart(result.to_json())

    def system_text(self, conversation: PlanInput) -> str:
        """Return the system text, without the listing if the catalog is declared in namespaces."""
        # OpenAI, "Tool search": its models were trained to search namespaces.
        if conversation.profile.search_form in ("deferred", "hosted"):
            return conversation.system
        return super().system_text(conversation)

    def show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """Return a search result as its definitions alone if the search is the service's own."""
        result = read_result(message.text)
        if result is None or message.is_error or not result.names:
            return message
        if conversation.profile.search_form == "additional":
            return super().show_result(message, conversation, tools)
        hidden = conversation.hidden_text(result)
        part = ReferencePart(result.names)
        return replace(message, content=(part, *((hidden,) if hidden else ())))


@register_strategy
class ToolsInMessagesToolSearchStrategy(ToolSearchStrategy):
    """Declare the core and our search tool; definitions come in a message after a result."""

    name: ClassVar[StrategyName] = "tools_in_messages"
    sends_definitions_in_messages = True
    dialect = "openai_chat"
    requires = "a model that takes tools in system messages (kimi-k3)"
    # Moonshot AI, "Dynamic tool loading": a model without it answers `tokenization failed`.
    # Other validators do not know `tools` there, or want the `content` that must be absent.
    rejected_by = re.compile(
        r"tokenization failed|messages\W{1,3}\d+\W{1,4}tools\b"
        r"|\bcontent\b.{0,40}(?:required|missing|null)|(?:missing|required)\b.{0,40}\bcontent\b",
        re.IGNORECASE | re.DOTALL,
    )

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the search tool and the core; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.fixed(conversation)
        return self._assembler.full(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return references to all that the result makes callable; without any, its JSON."""
        return ReferencePart(result.names) if result.names else TextPart(result.to_json())
