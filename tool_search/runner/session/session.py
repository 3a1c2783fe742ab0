"""`ToolSearchSession`: a conversation with this package's search, which runs its calls too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sized
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from tool_search.config.conversation import HistorySettings, ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import CallDecision, CallResult
from tool_search.core.conversation.session import Session
from tool_search.core.discoveries import Discovery
from tool_search.core.messages import Message, ToolCall
from tool_search.core.services import SearchesCatalogs
from tool_search.core.settings import HistoryLimits
from tool_search.core.strategies import ToolsAssembler, ToolSearchStrategy
from tool_search.errors import ConfigurationError, SessionError
from tool_search.runner.execution.call_runner import CallRunner
from tool_search.runner.session.preloading import Preloading
from tool_search.runner.session.sent_history import SentHistory
from tool_search.search.discovery.search_services import SearchServices
from tool_search.stores.record import ConversationRecord

__all__ = ["ToolSearchSession"]

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
