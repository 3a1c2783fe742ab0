"""`ToolSearchSession`: a conversation with this package's search, which runs its calls too."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from tool_search.config.conversation import HistorySettings, ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import CallDecision, CallResult
from tool_search.core.conversation.history import MessageLog
from tool_search.core.conversation.record import ShadowTurn, message_digest
from tool_search.core.conversation.session import Session
from tool_search.core.conversation.synthetic_searches import SyntheticSearches
from tool_search.core.conversation.tools import ToolState
from tool_search.core.discoveries import Discovery, DiscoveryState
from tool_search.core.messages import Message, Notice, ToolCall
from tool_search.core.services import SearchesCatalogs, SearchMatch
from tool_search.core.settings import ConversationSettings, HistoryLimits
from tool_search.core.strategies import ToolsAssembler, ToolSearchStrategy
from tool_search.core.values.redaction import log_failure
from tool_search.errors import ConfigurationError, SessionError
from tool_search.i18n import LANGUAGES, text
from tool_search.runner.execution.call_runner import CallRunner
from tool_search.runner.session.sent_history import SentHistory
from tool_search.search.discovery.search_services import SearchServices
from tool_search.stores.record import ConversationRecord

__all__ = ["Compact", "Preloading", "ToolSearchSession", "compacted", "says_tool_is_missing"]

# Answers in which a model says that it has no tool for what the user wants.


# An answer may be long; what it cannot do comes first or last. Of hostile text 2,000 letters take
# 20 ms of the event loop.
_MAX_CHARS = 1_000
# The words that a gap of a phrase may have, within a sentence.
_GAP = r"[^.!?。！？\n]{0,40}?"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def says_tool_is_missing(answer: str) -> bool:
    """True if an answer has a phrase of some language that says so.

    The phrases are `phrases.no_tool` of each locale, with `|` between them; `…` is a gap of at
    most 40 characters in a sentence.

    >>> says_tool_is_missing("Sorry, I don’t have a tool for sending mail.")
    True
    >>> says_tool_is_missing("A screwdriver is a tool for screws.")
    False
    """
    parts = answer[:_MAX_CHARS], answer[_MAX_CHARS:][-_MAX_CHARS:]
    return any(_pattern().search(part.translate(_APOSTROPHES).lower()) for part in parts)


@cache
def _pattern() -> re.Pattern[str]:
    phrases = [
        phrase.strip() for name in LANGUAGES for phrase in text("phrases.no_tool", name).split("|")
    ]
    return re.compile("|".join(map(_phrase_pattern, phrases)))


def _phrase_pattern(phrase: str) -> str:
    pieces = (
        re.escape(piece.strip()).replace(r"\ ", r"\s+") for piece in phrase.lower().split("…")
    )
    # A phrase of letters begins at a word; Chinese has no spaces between words.
    start = r"\b" if phrase[0] < "\u2e80" else ""
    return start + _GAP.join(pieces)


# Tools that are loaded for a user's message without a search of the model.
#
# The message is ranked as a query, before the first request of its turn (a preload) or after an
# answer that says there is no tool for it (a second chance). The tools that it surely needs are
# discovered at once, and shown in a search exchange at the end of the history: everything that
# earlier requests sent stays as it was.


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


_CONVERSATION = "default"


class ToolSearchSession(Session):
    """The state of one conversation, the plan of its next request, and the run of its calls.

    The first turn freezes the language, the mode, the core's order and the search tool's
    description. A mode other than `auto`, a language or a search tool's name that the
    configuration of a stored conversation has changed takes effect at the next user turn.

    Args:
        catalog: The tools.
        tools: Functions and `ExecutableTool`s that `run` executes; instead of a catalog.
        config: The settings.
        system_prompt: The system prompt of the bot's owner.
        max_tools: The longest tool list that every provider of the bot takes.
        assembler: Makes tool lists; one for all conversations saves work.
        record: A conversation to go on with, as `record()` returned it.
        history: The limits of what requests carry of the history.
        strategies: Strategies of this session; they win over registered ones of their name.
        search: What searches the catalog; None: the engine of the settings.

    Raises:
        ConfigurationError: A catalog and functions are given at the same time.
    """

    def __init__(
        self,
        catalog: ToolCatalog | None = None,
        *,
        tools: Iterable[Any] = (),
        config: ToolSearchConfig | None = None,
        system_prompt: str = "",
        max_tools: int | None = None,
        assembler: ToolsAssembler | None = None,
        record: ConversationRecord | None = None,
        history: HistorySettings | None = None,
        strategies: Iterable[ToolSearchStrategy] = (),
        search: SearchesCatalogs | None = None,
    ) -> None:
        self._runner: CallRunner | None = None
        if catalog is None:
            self._runner = CallRunner(tools)
            catalog = self._runner.catalog
        elif not isinstance(tools, Sized) or len(tools):
            raise ConfigurationError(
                "a session takes a catalog or tools, not both: the catalog of tools is made of "
                "them; leave the catalog out"
            )
        config = config or ToolSearchConfig()
        super().__init__(
            catalog,
            search=search or SearchServices(config),
            config=config,
            system_prompt=system_prompt,
            max_tools=max_tools,
            assembler=assembler,
            record=record,
            strategies=strategies,
        )
        self._had_second_chance = False
        parts = self._tools, self._discoveries, self._searches, self._log
        self._preloading = Preloading(config, *parts, record.shadow if record else ())
        self.sent: SentHistory = SentHistory(
            self._log,
            tools=self._tools,
            searches=self._searches,
            discoveries=self._discoveries,
            limits=history or HistoryLimits(),
            omissions=record.omissions if record else (),
        )

    def record(self) -> ConversationRecord:
        """Return the state as a store keeps it.

        Raises:
            SessionError: No turn has begun yet.
        """
        state = replace(
            super().record(), omissions=self.sent.omissions, shadow=self._preloading.shadow
        )
        return ConversationRecord.of(state)

    def _preload(self) -> tuple[Discovery, ...]:
        self._had_second_chance = False
        return self._preloading.run(denied=self.denied, may_ask=self._may_ask())

    def _may_ask(self) -> Callable[[Tool], bool]:
        """Return a function that says if some call of a tool asks for permission."""
        turn, runner = self._turn, self._runner
        if turn.may_ask is not None:
            return turn.may_ask
        if runner is None:
            return lambda _: False
        return runner.may_ask(
            lambda: runner.context(_CONVERSATION, self.language, roles=turn.roles)
        )

    def second_chance(self, reply: Message) -> tuple[Discovery, ...]:
        """Return tools for a reply that says it has none, found by one search of ours.

        Call it before `accept`. If it returns tools, leave the reply out and plan once more:
        the tools are shown at the end of the history. There are none unless `second_chance`
        is on, and at most once a turn.

        Args:
            reply: A complete reply; one with calls has no second chance.
        """
        if self._had_second_chance or not (self._asked and self._asked.takes_tools):
            return ()
        may_ask = self._may_ask()
        new = self._preloading.second_chance(reply, denied=self.denied, may_ask=may_ask)
        self._had_second_chance = bool(new)
        return new

    async def run(
        self, call: ToolCall, *, runner: CallRunner | None = None, context: Any = None
    ) -> CallResult:
        """Decide, execute and commit a call that `accept` returned; return its result.

        A decision that may wait for an embedder is made in another thread. A call that is
        cancelled is committed as such, so that the history stays valid.

        Args:
            call: The call.
            runner: What runs the call; None: that of the session's `tools`.
            context: The `ToolContext` for tools; None: the turn's language and roles.

        Raises:
            SessionError: Nothing runs calls, or the call has its result already.
        """
        self._check_awaited(call)
        runner = runner or self._runner
        if runner is None:
            raise SessionError(
                f"nothing can run the call of {call.name!r}: the session has a catalog of "
                "definitions alone; give it tools=[functions], or runner=CallRunner(...), or "
                "execute the call yourself with decide() and commit()"
            )
        if context is None:
            context = runner.context(_CONVERSATION, self.language, roles=self._turn.roles)

        async def decide_aside(call: ToolCall) -> CallDecision:
            return await asyncio.to_thread(self.decide, call)

        waits = call.name == self.search_tool_name and self._tools.embeds
        batch = runner.batch((call,), context, decide=decide_aside if waits else self.decide)
        committed: list[CallResult] = []
        try:
            async with aclosing(batch.events()) as events:
                async for event in events:
                    if hasattr(event, "to_commit"):
                        committed.append(event.to_commit())
                        self.commit(committed)
        finally:
            self.commit(finished.to_commit() for finished in batch.undelivered())
        return committed[0]


# A bot's own compaction: its summary of turns that requests leave out.


Compact = Callable[[Sequence[Message]], Awaitable[Iterable[Message] | None]]
"""A function from the turns before the last one to the messages that replace them.

It is called when requests would carry more than the settings or a provider allow. After None
or an exception, the library leaves old turns out itself.
"""


async def compacted(session: ToolSearchSession, compact: Compact) -> tuple[bool, Notice | None]:
    """Shorten the turns before the current one by a bot's own compaction.

    If it fails, the conversation goes on: the library leaves old turns out itself.

    Returns:
        True if the history was replaced, and a notice for the operator.
    """
    past = session.past
    if not past:
        return False, None
    try:
        made = await compact(past)
        if made is None:
            return False, None
        session.replace_past(made)
    except Exception as exc:  # noqa: BLE001  # the bot's own code must not end the turn
        _log.exception("the bot's compaction failed")
        what = f"the bot's compaction failed ({type(exc).__name__}: {exc}); old turns are left out"
        return False, Notice("compaction_failed", what)
    return True, Notice(
        "history_compacted",
        f"the bot's compaction made {len(session.past)} messages of {len(past)}",
    )
