"""One conversation: its messages, its discoveries, and the next request.

Pure: no clock, no network, no disk. A loop of any kind drives it:

1. `begin_turn` with the user's message, 2. `plan` for the current provider,
3. `accept` its reply, 4. `decide` each call, 5. `commit` the results, 6. back to 2
until a reply has no calls. Providers may change between any two plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.base import ToolConversation
from tool_search.core.conversation.calls import (
    CallDecision,
    CallResult,
    RunCall,
    allowed_to_all,
    result_message,
)
from tool_search.core.conversation.history import (
    MessageLog,
    checked,
    pair_results,
    search_results,
    with_own_ids,
    without_blocks,
)
from tool_search.core.conversation.record import ConversationState, shown_tools
from tool_search.core.conversation.synthetic_searches import SyntheticSearches
from tool_search.core.discoveries import Discovery, ModeDecision
from tool_search.core.exports import moved_to_top
from tool_search.core.messages import (
    ContentPart,
    Message,
    Notice,
    Phase,
    RequestPlan,
    ToolCall,
    user_message,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import Lesson, SearchesCatalogs, Votes
from tool_search.core.settings import ConversationSettings, HiddenTools
from tool_search.core.strategies import ToolsAssembler, ToolSearchStrategy
from tool_search.core.values.clean_text import look_alike_keys
from tool_search.errors import SessionError
from tool_search.i18n import text

__all__ = ["CallResult", "Session"]

if not TYPE_CHECKING:
    __getattr__ = moved_to_top(__name__, "ToolSearchSession")


@dataclass(slots=True)
class _UserTurn:
    """The user of the current turn, and what the turn has had.

    Attributes:
        roles: The user's roles.
        may_ask: Returns True for a tool some call of which asks for permission; None: not said.
    """

    roles: frozenset[str] = frozenset()
    may_ask: Callable[[Tool], bool] | None = None


class WholeHistory:
    """The history as requests carry it: whole. A subclass may leave parts out.

    Args:
        log: The history.
    """

    def __init__(self, log: MessageLog) -> None:
        self._log = log

    def to(self, profile: ProviderProfile) -> tuple[Message, ...]:  # noqa: ARG002
        """Return the history as requests to a provider carry it."""
        return self._log.messages

    def keep_within_limits(self) -> None:
        """Leave out what is beyond the limits; a turn begins."""

    def follow_inserted(self, place: int, count: int) -> None:
        """Follow messages that were inserted into the history before one of it."""

    def follow_truncated(self) -> None:
        """Follow a history that lost its last messages."""

    def follow_replaced(self, before: Sequence[Message]) -> None:
        """Follow a history that was replaced, as far as it begins as it did before."""

    def follow_renamed(self) -> None:
        """Follow another name of the search tool."""


class Session(ToolConversation):
    """The state of one conversation, and the plan of its next request.

    The first turn freezes the language, the mode, the core's order and the search tool's
    description. A mode other than `auto`, a language or a search tool's name that the
    configuration of a stored conversation has changed takes effect at the next user turn.

    Args:
        catalog: The tools.
        search: What searches the catalog.
        config: The settings.
        system_prompt: The system prompt of the bot's owner.
        max_tools: The longest tool list that every provider of the bot takes.
        assembler: Makes tool lists; one for all conversations saves work.
        record: A conversation to go on with, as `record()` returned it.
        strategies: Strategies of this session; they win over registered ones of their name.

    Attributes:
        sent: The parts of the history that requests carry.
    """

    _announces_hidden = True

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        search: SearchesCatalogs,
        config: ConversationSettings | None = None,
        system_prompt: str = "",
        max_tools: int | None = None,
        assembler: ToolsAssembler | None = None,
        record: ConversationState | None = None,
        strategies: Iterable[ToolSearchStrategy] = (),
    ) -> None:
        config = config or ConversationSettings()
        super().__init__(
            catalog,
            config=config,
            search=search,
            assembler=assembler or ToolsAssembler(),
            record=record,
            max_tools=max_tools,
            strategies=strategies,
        )
        name = record.search_tool.name if record else config.search_tool_name
        self._system_prompt = system_prompt
        self._log = MessageLog(record.history if record else (), search_tool_name=name)
        self._searches = SyntheticSearches(
            name,
            record.insertion_points if record else (),
            former=record.former_search_names if record else (),
        )
        self.sent = WholeHistory(self._log)
        self._planned = 0
        self._turn = _UserTurn()

    @property
    def history(self) -> tuple[Message, ...]:
        """The neutral history."""
        return self._log.messages

    @property
    def last_message(self) -> Message:
        """The last message of the history, without a copy of all of it."""
        return self._log.last

    @property
    def has_begun(self) -> bool:
        """True if a turn has begun, and so the settings are frozen."""
        return self._tools.is_frozen

    @property
    def decision(self) -> ModeDecision:
        """The conversation's mode, and the reason for it."""
        return self._decision

    def take_notices(self) -> tuple[Notice, ...]:
        """Return the notices for an operator since the last call of this method."""
        return self._tools.take_notices()

    def use_votes(self, votes: Votes | None) -> None:
        """Rank every later search with what was learned; None: without."""
        self._tools.votes = votes

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return what searches have taught since the last call of this method."""
        return self._tools.trail.drain_lessons()

    def record(self) -> ConversationState:
        """Return the state as a store keeps it.

        Raises:
            SessionError: No turn has begun yet.
        """
        kept = self._kept_record(
            insertion_points=self._searches.insertion_points,
            former_search_names=self._searches.former,
        )
        return replace(kept, history=self.history)

    def begin_turn(
        self,
        content: str | Sequence[ContentPart],
        *,
        profile: ProviderProfile,
        catalog: ToolCatalog | None = None,
        roles: Collection[str] = (),
        denial_reason: Callable[[Tool], str | None] = allowed_to_all,
        hidden: HiddenTools = "keep",
        may_ask: Callable[[Tool], bool] | None = None,
        messages: Sequence[Message] = (),
    ) -> tuple[Discovery, ...]:
        """Begin a turn with the user's message; return the tools that `preload` loads for it.

        Args:
            content: Text, or text and pictures.
            profile: The provider that will be asked first.
            catalog: The tools from now on; None: they have not changed.
            roles: The user's roles; a tool with `roles` requires one of them.
            denial_reason: Returns why the user may not call a tool, as the model reads it. Empty
                text: the model does not learn that the tool exists; None: the user may call it.
            hidden: The treatment of tools that the user may not call, but that the
                conversation refers to: as `permissions.hidden`.
            may_ask: Returns True for a tool some call of which asks the user for permission;
                such a tool is not loaded without a search. None: no call does.
            messages: The user's message, and those of an earlier try; instead of `content`.

        Raises:
            SessionError: A tool has the search tool's name; nothing has changed.
        """
        messages = messages or (user_message(content),)
        users = (said.text for said in (*self.history, *messages) if said.role == "user")
        name = self._tools.search_tool_name
        self._tools.begin(catalog, profile, next(users))
        if self._tools.search_tool_name != name:
            self._rename_searches()
        turn = self._turn = _UserTurn(frozenset(roles))
        self._denial_reason = denial_reason
        self._tools.freeze_listing(self.denied)
        self._left_out.begin_turn(hidden)
        self.close_open_calls()
        for message in messages:
            self._log.append(message)
        self._introduce()
        turn.may_ask = may_ask
        preloaded = self._preload()
        self.sent.keep_within_limits()
        self._turn_order = self._tools.tool_order.declared_order
        return preloaded

    def _preload(self) -> tuple[Discovery, ...]:
        """Return tools that are loaded for the user's message without a search: none."""
        return ()

    def plan(
        self, profile: ProviderProfile, *, phase: Phase = "answer", selected: Sequence[str] = ()
    ) -> RequestPlan:
        """Return the next request for a provider.

        Args:
            profile: The provider.
            phase: The purpose of the request.
            selected: In the phase `detail`: the tools that the model picked.

        Raises:
            SessionError: No turn has begun yet, or the strategy failed.
            UnsupportedStrategyError: The provider cannot use the strategy.
        """
        self._asked = profile
        tools = self._tools
        mode, fitted = tools.mode, tools.fit(profile)
        tools.freeze_listing(self.denied)
        if tools.mode != mode:
            self._introduce()
        self._planned = len(self._log)
        history = self.sent.to(fitted)
        conversation = self._plan_input(fitted, history, self._system_prompt, selected=selected)
        return self._request(conversation, phase)

    def accept(self, reply: Message, *, is_paused: bool = False) -> tuple[ToolCall, ...]:
        """Accept a model's reply, and return its calls, each under an id of its own.

        Tools that a search of the provider's own found are discovered. An empty reply is not
        kept: no provider takes it back.

        Args:
            reply: The reply.
            is_paused: True if the service wants the reply back to go on with it (`StopReason`):
                it is kept without text too, if it has blocks of its own.
        """
        self._tools.trail.replied()
        reply = self._record_provider_search(reply)
        reply = with_own_ids(reply, self._log.call_ids)
        if reply.tool_calls:
            reply = self._resolver().under_own_keys(reply)
        if reply.text.strip() or reply.tool_calls or (is_paused and reply.native is not None):
            self._log.append(reply)
        return reply.tool_calls

    def _record_provider_search(self, reply: Message) -> Message:
        """Return the reply after a search that shows what its provider's own search found."""
        if reply.native is None or not reply.native.found:
            return reply
        named = map(self._tools.catalog.get, dict.fromkeys(reply.native.found))
        core = self._tools.tool_order.core
        found = [t for t in named if t and t.name not in core and self.permits(t)]
        self._discoveries.commit(found, via="search")
        self._tools.tool_order.append(tool.name for tool in found)
        *search, reply = self._searches.as_search(
            reply,
            [tool for tool in found if tool.name not in self._log.shown_tools],
            place=len(self._log),
            total_tools=self._tools.open_tools,
        )
        for message in search:
            self._log.append(message)
        return reply

    def decide(self, call: ToolCall) -> CallDecision:
        """Decide how to handle a call; change nothing."""
        return self._resolver().decide(call)

    def _why_not(self, tool: Tool) -> str | None:
        if tool.roles and self._turn.roles.isdisjoint(tool.roles):
            return ""
        return self._denial_reason(self._tools.catalog.executable(tool))

    def commit(self, results: Iterable[CallResult]) -> tuple[Discovery, ...]:
        """Commit the results of a reply's calls, and their discoveries.

        Args:
            results: One for each call, in call order.

        Returns:
            The new discoveries, in order; callable from the next request on.

        Raises:
            SessionError: A call has its result already, or was never made.
        """
        before = len(self._discoveries)
        for result in results:
            self._check_awaited(result.decision.call)
            self._log.append(result_message(result, self.language))
            self._discover(result.decision)
            self._teach(result)
        new = self._discoveries.entries[before:]
        found = [entry.tool for entry in new]
        self._tools.tool_order.append([tool.name for tool in found])
        self._tools.notice_schemas(found)
        return new

    def _teach(self, result: CallResult) -> None:
        """Let a search teach later, and a success teach now."""
        decision, trail = result.decision, self._tools.trail
        if isinstance(decision, RunCall):
            if not result.is_error:
                trail.succeeded(decision.tool)
        elif decision.result is not None:
            trail.searched(decision.result)

    def _check_awaited(self, call: ToolCall) -> None:
        if not self._log.awaits(call.id):
            raise SessionError(
                f"call {call.id!r} of {call.name!r} has its result already, or was not in "
                "the last reply; commit one result for each call that accept() gave"
            )

    def close_open_calls(self) -> None:
        """Answer calls that were cancelled, so that the history stays valid."""
        for call in self._log.unanswered_calls:
            cancelled = text("call.cancelled", self.language, name=call.name)
            self._log.append(call.failed(cancelled))

    def adopt_history(self, history: Iterable[Message]) -> None:
        """Go on with a history of the bot's own: compacted, imported or re-read.

        Results are paired with their calls, synthetic searches return to their places, and
        existing tools that its search results name are discovered.

        Raises:
            SessionError: It is not made of messages, or a native reply is of another dialect
                than its origin; nothing has changed.
        """
        messages = checked(history)
        language = self._tools.frozen.language if self._tools.is_frozen else "en-US"
        answer = text("call.cancelled", language, name="tool")
        own = self._searches.renamed(
            pair_results(messages, answer=answer), taken=self._tools.catalog
        )
        before = self.history
        self._log.replace(self._searches.restored(own, language))
        self.sent.follow_replaced(before)
        deferred = {tool.name: tool for tool in self._tools.catalog.deferred}
        for result in search_results(self.history, self._tools.search_tool_name):
            known = (deferred.get(name) for name in result.names)
            self._discoveries.commit((tool for tool in known if tool is not None), via="search")
        self._tools.tool_order.append(self._discoveries.names)

    def drop_last_turn(self) -> tuple[Message, ...]:
        """Remove the user's last message and everything after it, and return what was removed.

        The turn's discoveries stay. The message may be sent again, or another one.
        """
        history, place = self.history, self._log.last_user
        if place is None:
            return ()
        place = self._searches.take_back(history, place)
        self._thinking.cut_back(max(0, self._planned - place))
        self._planned = min(place, self._planned)
        self._log.replace(history[:place])
        self.sent.follow_truncated()
        return history[place:]

    def forget_work(self) -> None:
        """Drop the encoded parts of the last requests, which save work for the next ones."""
        self._kept.clear()

    @property
    def past(self) -> tuple[Message, ...]:
        """The turns before the one that the user's last message began."""
        return self.history[: self._log.last_user or 0]

    def replace_past(self, past: Iterable[Message]) -> None:
        """Replace the turns before the last one by another account of them: a compaction.

        Their discoveries are shown again before the user's last message.

        Raises:
            SessionError: It is not made of messages; nothing has changed.
        """
        present = self.history[self._log.last_user or 0 :]
        self.adopt_history((*past, *present))
        self._introduce()

    def adopt_discoveries(self, entries: Iterable[Discovery]) -> None:
        """Add discoveries that another process of the bot made in this conversation."""
        held, known = self._tools.catalog.book.owners, set(self._discoveries.names)
        for entry in entries:
            if entry.tool.name in known:
                continue
            # Elsewhere a name may belong to another tool than in this conversation.
            owner = held.get(look_alike_keys(entry.tool.name)[0], entry.tool.source)
            if owner == entry.tool.source:
                self._discoveries.commit((entry.tool,), via=entry.via)
        self._tools.tool_order.append(self._discoveries.names)

    def drop_references(self, names: Iterable[str]) -> None:
        """Leave references to these tools out of requests: a provider refused them.

        Args:
            names: Canonical names, or names as the provider's dialect writes them.
        """
        known = {wire_name(name): name for name in self._discoveries.names}
        known |= {name: tool.name for name, tool in self._tools.catalog.by_wire_name.items()}
        self._refused |= {known.get(name, name) for name in names}

    def drop_native_blocks(self, origin: str) -> None:
        """Forget the own blocks of earlier replies from an origin: the provider refused them."""
        self._log.replace(without_blocks(self.history, origin))

    def _rename_searches(self) -> None:
        """Apply the search tool's new name to the history: its searches stay searches."""
        name = self._tools.search_tool_name
        self._searches.rename(name)
        renamed = self._searches.renamed(self.history, taken=self._tools.catalog)
        self._log.rename_search(name, renamed)
        self.sent.follow_renamed()

    def _introduce(self) -> None:
        """Show discoveries that the history does not show, before the user's last message."""
        place, shown = self._log.last_user, self._log.shown_tools
        if place is None or not self._is_searching:
            return
        hidden = (entry.tool for entry in self._discoveries if entry.name not in shown)
        # A tool that this turn's user may not call is shown in the turn of a user who may.
        catalog = self._tools.catalog
        missing = [t for t in hidden if catalog.is_active(t.name) and self.permits(t)]
        if missing:
            search = self._searches.write(
                missing,
                before=self.history[place],
                history=self.history[:place],
                total_tools=self._tools.open_tools,
                language=self.language,
            )
            self._log.insert(place, search)
            self.sent.follow_inserted(place, len(search))

    def _shown_tools(self) -> Iterable[Tool]:
        tools = self._tools
        return shown_tools(tools.tool_order.core, self._discoveries, tools.catalog)

    def _whole(self, history: tuple[Message, ...]) -> tuple[Message, ...]:  # noqa: ARG002
        return self.history

    def _discover(self, decision: CallDecision) -> None:
        """Commit the discoveries of one call: tools that a search returned, or that it named."""
        core, catalog = self._tools.tool_order.core, self._tools.catalog
        if isinstance(decision, RunCall):
            named: Tool | None = catalog.by_source.get(decision.tool.source, decision.tool)
        else:
            named = decision.names_tool
            names = decision.result.names if decision.result else ()
            found = [catalog[name] for name in names if name in catalog and name not in core]
            self._discoveries.commit(found, via="search")
        if named is not None and named.name not in core:
            self._discoveries.commit((named,), via="call")
