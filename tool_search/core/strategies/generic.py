"""Strategies for every provider: a filtered tool list, and one that never changes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tool_search.core.messages import Message, ResultPart, StrategyName, TextPart, ToolList
from tool_search.core.services import SearchMatch, SearchResult, clean_match
from tool_search.core.strategies.base import ToolSearchStrategy, register_strategy
from tool_search.core.strategies.history import DeclaredNames, PlanInput, read_result

__all__ = [
    "BridgeToolSearchStrategy",
    "GenericToolSearchStrategy",
]


@register_strategy
class GenericToolSearchStrategy(ToolSearchStrategy):
    """Declare the core and what was discovered; a search result is JSON text.

    Discoveries are appended in the order they came. Tools for which a limited list has no
    room are called through `call_tool`; their matches carry the schema, because nothing
    else in the request does.
    """

    name: ClassVar[StrategyName] = "generic"
    # Providers cache prefixes, and most render tools first: a list grows only at its end.
    list_grows = True

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the filtered list; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.filtered(conversation)
        return self._assembler.full(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return the result's JSON."""
        return TextPart(result.to_json())


@register_strategy
class BridgeToolSearchStrategy(GenericToolSearchStrategy):
    """Declare the core and our two tools; a search result is JSON text with every schema.

    Discoveries are called through `call_tool`. A search for a tool that was found before
    returns its schema again, since nothing else in the request has to show it.
    """

    # For a provider that caches prefixes and takes no definitions in messages: a list that
    # grows would cost the cached conversation after it (docs/cost.md). In return the provider
    # no longer holds a call's arguments to the tool's schema.
    name: ClassVar[StrategyName] = "bridge"
    list_grows = False

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the core, the search tool and `call_tool`; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.bridged(conversation)
        return self._assembler.full(conversation)

    def show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """Return a search result with the schemas of tools that were found before, too."""
        result = read_result(message.text)
        if result is None or not result.loaded:
            return super().show_result(message, conversation, tools)
        again = _with_loaded_as_matches(result, conversation, tools)
        shown = super().show_result(replace(message, content=again.to_json()), conversation, tools)
        return replace(shown, content=shown.text)


def _with_loaded_as_matches(
    result: SearchResult, conversation: PlanInput, tools: DeclaredNames
) -> SearchResult:
    """Return a result whose loaded tools are matches, except for those that are declared."""
    hidden = [n for n in result.loaded if not tools.declares(n) and conversation.definition(n)]
    found = tuple(
        clean_match(SearchMatch(name=tool.name, description=tool.description, server=tool.server))
        for tool in conversation.definitions(tuple(hidden))
    )
    return replace(
        result,
        matches=(*result.matches, *found),
        loaded=tuple(name for name in result.loaded if name not in hidden),
        hint=result.hint if not found else None,
    )
