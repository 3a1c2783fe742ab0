"""Tools that are loaded for a user's message before the first request of its turn.

The message is ranked as a query. The tools that it surely needs are discovered at once, and
shown in a search exchange after the message: everything that earlier requests sent stays
as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tool_search.catalog.tool import Tool
from tool_search.config.bot import ToolSearchConfig
from tool_search.conversation.history import MessageLog
from tool_search.conversation.synthetic_searches import SyntheticSearches
from tool_search.conversation.tools import ToolState
from tool_search.discovery.state import Discovery, DiscoveryState
from tool_search.search.index.older_first import search_older_first
from tool_search.search.text.query_language import parse_query, selected_names
from tool_search.values.redaction import log_failure

__all__ = ["Preloading"]

# Users paste whole documents; an engine takes time in proportion to the words.
_MAX_QUERY_CHARS = 2_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preloading:
    """Loads what the messages of one conversation surely need.

    Attributes:
        config: The settings; `preload` is the largest number of tools for one message.
        tools: The tools of the conversation.
        discoveries: Its discoveries.
        searches: Its synthetic searches.
        log: Its history, which ends with the user's message.
    """

    config: ToolSearchConfig
    tools: ToolState
    discoveries: DiscoveryState
    searches: SyntheticSearches
    log: MessageLog

    def run(
        self, *, permits: Callable[[Tool], bool], may_ask: Callable[[Tool], bool]
    ) -> tuple[Discovery, ...]:
        """Load tools for the last message, and return them as new discoveries.

        Args:
            permits: Returns True for a tool that this turn's user may call.
            may_ask: Returns True for a tool some call of which asks for permission.
        """
        if not self.config.preload or self.tools.mode != "tool_search":
            return ()
        core = self.tools.tool_order.core
        new = [
            tool
            for tool in self._needed(permits)
            if tool.name not in core
            and tool.name not in self.discoveries
            and not may_ask(self.tools.catalog.executable(tool))
        ]
        if not new:
            return ()
        before = len(self.discoveries)
        history = self.log.messages
        self.discoveries.commit(new, via="preload")
        self.tools.tool_order.append(tool.name for tool in new)
        for message in self.searches.write_after(new, history, total_tools=self.tools.open_tools):
            self.log.append(message)
        self.tools.notice_schemas(new)
        return self.discoveries.entries[before:]

    def _needed(self, permits: Callable[[Tool], bool]) -> list[Tool]:
        """Return the best tools for the message that score enough."""
        query, catalog = self.log.last.text[:_MAX_QUERY_CHARS], self.tools.catalog
        if not any(char.isalnum() for char in query):
            return []
        # A user's words choose tools by their meaning, never by operators.
        if selected_names(query) or parse_query(query) is not None:
            return []
        index = self.tools.searched_index
        if index is None:
            return []
        try:
            found = search_older_first(
                index,
                query,
                limit=self.config.preload,
                allowed=lambda name: permits(catalog[name]),
                copies=catalog.copies,
                tools=catalog,
            )
        except Exception:  # noqa: BLE001  # engines are pluggable; the model can still search
            log_failure(_log, "tools cannot be preloaded for a message")
            return []
        wanted = (match for match in found.matches if match.score >= self.config.preload_score)
        return [catalog[match.name] for match in wanted]
