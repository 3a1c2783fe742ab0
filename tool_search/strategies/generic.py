"""A physically filtered tool list: works with every provider.

Chosen for every provider that has no tool search of its own. The list holds the
core, the search tool and what was discovered, in the order it came, and grows
only at its end: providers cache prefixes, and most render tools first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tool_search.catalog.names import wire_name
from tool_search.discovery.search_tool import clean_match
from tool_search.messages import (
    Message,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.search.index.protocol import SearchMatch, SearchResult
from tool_search.strategies.base import DeclaredNames, PlanInput, ToolSearchStrategy, read_result

__all__ = [
    "BridgeToolSearchStrategy",
    "GenericToolSearchStrategy",
]


class GenericToolSearchStrategy(ToolSearchStrategy):
    """Declares what is core or discovered; a search result is JSON text.

    What a limited list has no room for is called through `call_tool`; its search
    results carry the schema, because nothing else in the request does.
    """

    name: ClassVar[StrategyName] = "generic"

    def declare(self, conversation: PlanInput) -> ToolList:
        """The filtered list; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.filtered(conversation)
        return self._assembler.full(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """The result's JSON."""
        return TextPart(result.to_json())

    def _show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """The result with the names and schemas that this very request calls by."""
        result = read_result(message.text)
        if result is None or not result.names:
            return message
        shown = replace(
            result,
            matches=tuple(_callable_match(m, conversation, tools) for m in result.matches),
            loaded=tuple(wire_name(n, conversation.profile.name_rule) for n in result.loaded),
        )
        return (
            message if shown == result else replace(message, content=(self.format_result(shown),))
        )


def _callable_match(
    match: SearchMatch, conversation: PlanInput, tools: DeclaredNames
) -> SearchMatch:
    """The match under its declared name, with its schema where the request declares none.

    Under bound thinking every match carries it: the list lags behind by a turn, and
    a message must not change when the tool enters the list.
    """
    name = wire_name(match.name, conversation.profile.name_rule)
    needed = conversation.profile.thinking_bound_to_prefix or not tools.declares(match.name)
    tool = conversation.definition(match.name)
    if not needed or tool is None:
        return match if name == match.name else replace(match, name=name)
    return replace(match, name=name, parameters=tool.declared_schema.schema)


# The core, `tool_search` and `call_tool`, and no other list ever.
#
# Chosen by configuration alone: for a provider that caches prefixes and takes no late
# tools, where a list that grows would cost the cached conversation behind it. The price is
# that the provider no longer holds a call's arguments to the tool's schema; we do.


class BridgeToolSearchStrategy(GenericToolSearchStrategy):
    """Declares what never changes; a search result is JSON text with every schema.

    What was found is called through `call_tool`. A search for what is found already
    brings its schema again, since nothing else in the request has to show it.
    """

    name: ClassVar[StrategyName] = "bridge"

    def declare(self, conversation: PlanInput) -> ToolList:
        """The core and our two tools; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.bridged(conversation)
        return self._assembler.full(conversation)

    def _show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        result = read_result(message.text)
        if result is None or not result.loaded:
            return super()._show_result(message, conversation, tools)
        again = _found_again(result, conversation, tools)
        shown = super()._show_result(replace(message, content=again.to_json()), conversation, tools)
        return replace(shown, content=shown.text)


def _found_again(
    result: SearchResult, conversation: PlanInput, tools: DeclaredNames
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
