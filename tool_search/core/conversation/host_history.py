"""A host's history as requests carry it: calls are answered, discoveries shown again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import (
    checked,
    pair_results,
    search_results,
    visible_names,
)
from tool_search.core.conversation.record import ConversationState
from tool_search.core.conversation.synthetic_searches import InsertionPoint, SyntheticSearches
from tool_search.core.conversation.tools import ToolState
from tool_search.core.discoveries import DiscoveryState
from tool_search.core.messages import Message
from tool_search.i18n import text

__all__ = ["HostHistory"]


class HostHistory:
    """A host's history as requests carry it: calls are answered, discoveries shown again.

    The host keeps the messages. Kept here are the places of inserted searches, so that each
    request has them where the one before had them.

    Args:
        tools: The tools of the conversation; its settings are frozen.
        discoveries: The discoveries of the conversation.
        permits: Returns True if this caller may call a tool.
        record: A conversation to go on with.
    """

    def __init__(
        self,
        tools: ToolState,
        discoveries: DiscoveryState,
        permits: Callable[[Tool], bool],
        record: ConversationState | None = None,
    ) -> None:
        self._tools = tools
        self._discoveries = discoveries
        self._permits = permits
        self._searches = SyntheticSearches(
            record.search_tool.name if record else tools.search_tool_name,
            record.insertion_points if record else (),
            former=record.former_search_names if record else (),
        )
        self.follow_name()

    def follow_name(self) -> None:
        """Follow another name of the search tool."""
        self._searches.rename(self._tools.search_tool_name)

    @property
    def insertion_points(self) -> tuple[InsertionPoint, ...]:
        """The inserted searches with their places, oldest first."""
        return self._searches.insertion_points

    @property
    def former_search_names(self) -> tuple[str, ...]:
        """Earlier names of the search tool in the conversation, oldest first."""
        return self._searches.former

    def complete(self, history: Iterable[Message]) -> tuple[Message, ...]:
        """Return the history with each call answered once, and discoveries shown again.

        Raises:
            SessionError: It is not made of messages.
        """
        language, tools = self._tools.frozen.language, self._tools
        messages = self._searches.restored(self._pair(history), language)
        place = max((i for i, m in enumerate(messages) if m.role == "user"), default=None)
        if place is None or tools.mode != "tool_search":
            return tuple(messages)
        missing = self._find_missing(messages)
        if missing:
            messages[place:place] = self._searches.write(
                missing,
                before=messages[place],
                history=messages[:place],
                total_tools=tools.open_tools,
                language=language,
            )
        return tuple(messages)

    def found_in(self, history: Iterable[Message]) -> tuple[str, ...]:
        """Return the names that the searches of a history found, in order.

        Raises:
            SessionError: It is not made of messages.
        """
        results = search_results(self._pair(history), self._tools.search_tool_name)
        return tuple(dict.fromkeys(name for result in results for name in result.names))

    def _pair(self, history: Iterable[Message]) -> list[Message]:
        """Return a history with each call answered, its searches under the current name."""
        answer = text("call.cancelled", self._tools.frozen.language, name="tool")
        own = pair_results(checked(history), answer=answer)
        return self._searches.renamed(own, taken=self._tools.catalog)

    def named_in_turn(self, messages: Sequence[Message]) -> frozenset[str]:
        """Return the tools that the last turn found or called by name."""
        place = max((i for i, m in enumerate(messages) if m.role == "user"), default=0)
        by_wire_name = self._tools.catalog.by_wire_name
        called = {call.name for message in messages[place:] for call in message.tool_calls}
        names = {by_wire_name[name].name if name in by_wire_name else name for name in called}
        return visible_names(messages[place:], self._tools.search_tool_name) | names

    def _find_missing(self, messages: Sequence[Message]) -> list[Tool]:
        """Return the discovered tools that no search in the history shows.

        Tools that the last turn called by name wait for the next turn: a search that is
        inserted in the middle of a turn would end the prompt cache.
        """
        shown = visible_names(messages, self._tools.search_tool_name)
        shown |= self.named_in_turn(messages)
        tools = (entry.tool for entry in self._discoveries if entry.name not in shown)
        return [tool for tool in tools if self._is_active(tool.name) and self._permits(tool)]

    def _is_active(self, name: str) -> bool:
        tool = self._tools.catalog.get(name)
        return tool is not None and tool.active
