"""The core, `tool_search` and `call_tool`, and no other list ever.

Chosen by configuration alone: for a provider that caches prefixes and takes no late
tools, where a list that grows would cost the cached conversation behind it. The price is
that the provider no longer holds a call's arguments to the tool's schema; we do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tool_search.discovery.search_tool import clean_match
from tool_search.messages import Message, StrategyName, ToolList
from tool_search.search.index.result import SearchMatch, SearchResult
from tool_search.strategies.base import Conversation, DeclaredNames, read_result
from tool_search.strategies.generic import GenericToolSearchStrategy

__all__ = ["BridgeToolSearchStrategy"]


class BridgeToolSearchStrategy(GenericToolSearchStrategy):
    """Declares what never changes; a search result is JSON text with every schema.

    What was found is called through `call_tool`. A search for what is found already
    brings its schema again, since nothing else in the request has to show it.
    """

    name: ClassVar[StrategyName] = "bridge"

    def declare(self, conversation: Conversation) -> ToolList:
        """The core and our two tools; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.bridged(conversation)
        return self._assembler.full(conversation)

    def _show_result(
        self, message: Message, conversation: Conversation, tools: DeclaredNames
    ) -> Message:
        result = read_result(message.text)
        if result is None or not result.loaded:
            return super()._show_result(message, conversation, tools)
        again = _found_again(result, conversation, tools)
        shown = super()._show_result(replace(message, content=again.to_json()), conversation, tools)
        return replace(shown, content=shown.text)


def _found_again(
    result: SearchResult, conversation: Conversation, tools: DeclaredNames
) -> SearchResult:
    """The result with what it calls available as matches, but for what can be called so."""
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
