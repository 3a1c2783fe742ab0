"""Tools that are loaded for a user's message without a search of the model.

The message is ranked as a query, before the first request of its turn (a preload) or after an
answer that says there is no tool for it (a second chance). The tools that it surely needs are
discovered at once, and shown in a search exchange at the end of the history: everything that
earlier requests sent stays as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import MessageLog
from tool_search.core.conversation.record import ShadowTurn, message_digest
from tool_search.core.conversation.synthetic_searches import SyntheticSearches
from tool_search.core.conversation.tools import ToolState
from tool_search.core.discoveries import Discovery, DiscoveryState
from tool_search.core.messages import Message
from tool_search.core.services import SearchMatch
from tool_search.core.settings import ConversationSettings
from tool_search.core.values.redaction import log_failure
from tool_search.runner.session.missing_tool import says_tool_is_missing

__all__ = ["Preloading"]

# Users paste whole documents; an engine takes time in proportion to the words.
_MAX_QUERY_CHARS = 2_000
_MAX_SECOND_CHANCE = 3
# Of one conversation; a record is written as a whole.
_MAX_SHADOW_TURNS = 500
Check = Callable[[Tool], bool]
Denied = Callable[[Iterable[Tool]], frozenset[str]]
LoadedBy = Literal["preload", "second_chance"]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Preloading:
    """Loads what the messages of one conversation surely need.

    Attributes:
        config: The settings; `preload` is the largest number of tools for one message.
        tools: The tools of the conversation.
        discoveries: Its discoveries.
        searches: Its synthetic searches.
        log: Its history, which has a message of the user.
        shadow: What searches would have offered, in the mode `shadow`.
    """

    config: ConversationSettings
    tools: ToolState
    discoveries: DiscoveryState
    searches: SyntheticSearches
    log: MessageLog
    shadow: tuple[ShadowTurn, ...] = ()

    def run(self, *, denied: Denied, may_ask: Check) -> tuple[Discovery, ...]:
        """Load tools for the user's last message, and return them as new discoveries.

        Args:
            denied: Returns the names of those tools that this turn's user may not call.
            may_ask: Returns True for a tool some call of which asks for permission.
        """
        if self.config.tool_schema_mode == "shadow" and self.log.last_user is not None:
            self._keep_shadow(self.log.messages[self.log.last_user].text, denied)
        return self._load(self.config.preload, denied, may_ask, via="preload")

    def _keep_shadow(self, message: str, denied: Denied) -> None:
        """Keep what a search with the message would have offered."""
        limit = max(self.config.max_results, self.config.max_results_total)
        found = self._rank(message, limit, denied)
        turn = ShadowTurn(message_digest(message), tuple(match.name for match in found))
        self.shadow = (*self.shadow[1 - _MAX_SHADOW_TURNS :], turn)

    def second_chance(
        self, reply: Message, *, denied: Denied, may_ask: Check
    ) -> tuple[Discovery, ...]:
        """Load tools for the same message after a reply that says it has none.

        Args:
            reply: The reply, which is not in the history.
            denied: As in `run`.
            may_ask: As in `run`.
        """
        if not self.config.second_chance or reply.tool_calls or self.log.last_user is None:
            return ()
        # A reply that goes on from a paused one belongs to it; a search of the provider's own
        # has found what the next request may use.
        if self.log.last.role == "assistant" or (reply.native and reply.native.found):
            return ()
        if self.log.unanswered_calls or not says_tool_is_missing(reply.text):
            return ()
        return self._load(_MAX_SECOND_CHANCE, denied, may_ask, via="second_chance")

    def _load(
        self, limit: int, denied: Denied, may_ask: Check, *, via: LoadedBy
    ) -> tuple[Discovery, ...]:
        """Discover tools for the last message, and show them at the end of the history."""
        place = self.log.last_user
        if not limit or place is None or self.tools.mode != "tool_search":
            return ()
        core, history = self.tools.tool_order.core, self.log.messages
        new = [
            tool
            for tool in self._find_needed(history[place].text, limit, denied)
            if tool.name not in core
            and tool.name not in self.discoveries
            and not may_ask(self.tools.catalog.executable(tool))
        ]
        if not new:
            return ()
        before = len(self.discoveries)
        self.discoveries.commit(new, via=via)
        self.tools.tool_order.append(tool.name for tool in new)
        for message in self.searches.write_after(
            new, history, place=place, total_tools=self.tools.open_tools, prefix=via
        ):
            self.log.append(message)
        self.tools.notice_schemas(new)
        return self.discoveries.entries[before:]

    def _find_needed(self, message: str, limit: int, denied: Denied) -> list[Tool]:
        """Return the best tools for a message that score enough."""
        matches = self._rank(message, limit, denied)
        wanted = (match for match in matches if match.score >= self.config.preload_score)
        return [self.tools.catalog[match.name] for match in wanted]

    def _rank(self, message: str, limit: int, denied: Denied) -> Sequence[SearchMatch]:
        """Return the best tools for a message."""
        query, catalog = message[:_MAX_QUERY_CHARS], self.tools.catalog
        if not any(char.isalnum() for char in query):
            return []
        index = self.tools.searched_index
        if index is None:
            return []
        try:
            # A user's words choose tools by their meaning, never by operators.
            hidden = denied(catalog.active)
            allowed = (lambda name: name not in hidden) if hidden else None
            found = self.tools.search.rank(index, catalog, query, limit=limit, allowed=allowed)
        except Exception:  # noqa: BLE001  # engines are pluggable; the model can still search
            log_failure(_log, "no tools can be loaded for a message")
            return []
        return found.matches
