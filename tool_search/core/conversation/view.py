"""The tools that somebody else's conversation shows of a catalog.

A host owns the messages, makes the requests and runs the tools. The view holds names: it
says what a request declares, answers searches, checks calls and learns from them::

    view = search.view(found)            # `found`: the names that the host kept
    tools = view.tools()                 # what the request declares
    result = view.search({"query": "count words"})
    view.returned("count_words")         # a tool has answered: the search has taught something
    found = view.found                   # all that the host has to keep
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, TypedDict

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.base import ToolConversation
from tool_search.core.conversation.calls import CallDecision, RunCall, denial_of_roles
from tool_search.core.conversation.host_history import HostHistory
from tool_search.core.conversation.record import ConversationState
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.discoveries import DiscoveryWay, ModeDecision
from tool_search.core.exports import moved_to_top
from tool_search.core.messages import Message, Notice, RequestPlan, ToolCall, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import Lesson, SearchesCatalogs, SearchResult, Votes, instructed
from tool_search.core.settings import ConversationSettings, HiddenTools
from tool_search.core.strategies import (
    BridgeToolSearchStrategy,
    ToolsAssembler,
)
from tool_search.core.values.json import compact_json, read_arguments
from tool_search.errors import ConfigurationError
from tool_search.i18n import text

__all__ = ["View", "ViewOptions", "ViewServices", "append_instructions"]

if not TYPE_CHECKING:
    __getattr__ = moved_to_top(__name__, "ToolView")

_ANY_PROVIDER = ProviderProfile(dialect="openai_chat", model="any", origin="openai_chat:any")
_log = logging.getLogger(__name__)


def _log_notice(notice: Notice) -> None:
    _log.warning("%s: %s", notice.code, notice.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewServices:
    """The services that the views of one bot share; each may be called from any thread.

    Attributes:
        assembler: Makes tool lists.
        search: What searches catalogs.
        votes: Returns what was learned; None: nothing was.
        notify: Takes notices for the operator.
        has_failed: Returns True if the search of a catalog has just failed.
        report_failure: Takes a catalog whose search has failed, and the cause.
    """

    assembler: ToolsAssembler
    search: SearchesCatalogs
    votes: Callable[[], Votes | None] = lambda: None
    notify: Callable[[Notice], None] = _log_notice
    has_failed: Callable[[ToolCatalog], bool] = lambda _catalog: False
    report_failure: Callable[[ToolCatalog, str], None] = lambda _catalog, _cause: None


class ViewOptions(TypedDict, total=False):
    """The arguments of a view that say whose it is, and what has happened; see `View`."""

    found: Iterable[str]
    history: Iterable[Message]
    first_message: str
    profile: ProviderProfile | None
    user: str | None
    denial_reason: Callable[[Tool], str | None] | None
    hidden: HiddenTools
    record: ConversationState | None


class View(ToolConversation):
    """The tools that one conversation of a host, or one request of it, shows.

    `ToolSearch.view` makes it. It holds names and lessons, never messages. Threads may share
    a view: parallel searches of one reply are safe.

    Args:
        catalog: The tools.
        config: The settings.
        services: What it shares with other views.
        found: The names that the host kept, in their order.
        history: The host's neutral history; what its searches found is discovered.
        first_message: The text whose language `language: auto` takes.
        profile: The provider that will be asked first; None: it is not known yet.
        user: The user who asks.
        denial_reason: Returns why this caller may not call a tool; None: the caller may.
        hidden: The treatment of tools that this caller may not call: as `permissions.hidden`.
        record: A conversation to go on with.

    Attributes:
        user: The user who asks, the source of what is learned.

    Raises:
        ConfigurationError: The mode is `skills_like`.
        SessionError: A tool has the search tool's name.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        config: ConversationSettings,
        services: ViewServices,
        found: Iterable[str] = (),
        history: Iterable[Message] = (),
        first_message: str = "",
        profile: ProviderProfile | None = None,
        user: str | None = None,
        denial_reason: Callable[[Tool], str | None] | None = None,
        hidden: HiddenTools = "strict",
        record: ConversationState | None = None,
    ) -> None:
        self.user = user
        self._lock = RLock()
        self._services = services
        super().__init__(
            catalog,
            config=config,
            search=services.search,
            assembler=services.assembler,
            record=record,
        )
        self._denial_reason = denial_reason or denial_of_roles
        self._hidden_tools: HiddenTools = hidden
        self._found = dict.fromkeys(self._discoveries.names)
        self._read: set[tuple[str, tuple[str, ...]]] = set()
        self._declares_all = False
        self._discover(_names_in(found), via="search", keep_unknown=True)
        self._tools.begin(None, profile or _ANY_PROVIDER, first_message)
        self._history = HostHistory(self._tools, self._discoveries, self.permits, record)
        self._follow_turn(history)

    def begin_turn(
        self,
        catalog: ToolCatalog | None = None,
        *,
        history: Iterable[Message] = (),
        profile: ProviderProfile | None = None,
        denial_reason: Callable[[Tool], str | None] | None = None,
    ) -> None:
        """Begin a turn of the user in a view that lives longer than one.

        Searches before the last turn teach no more. A host that makes a view for each
        turn or request does not need this.

        Args:
            catalog: The tools from now on; None: they have not changed.
            history: The host's neutral history, if it shows what was found.
            profile: The provider that will be asked first; None: it is not known yet.
            denial_reason: Returns why this turn's caller may not call a tool; None: as before.

        Raises:
            SessionError: A tool has the search tool's name; nothing has changed.
        """
        with self._lock:
            self._tools.begin(catalog, profile or _ANY_PROVIDER, "")
            self._denial_reason = denial_reason or self._denial_reason
            self._history.follow_name()
            self._discover(tuple(self._found), via="search", keep_unknown=True)
            self._follow_turn(history)

    def _follow_turn(self, history: Iterable[Message]) -> None:
        if self.mode.mode == "skills_like":
            raise ConfigurationError(
                "tool_schema_mode is 'skills_like', which takes two requests a step: a view "
                "cannot give them to its host; set it to auto, tool_search or full"
            )
        self._tools.freeze_listing(self.denied)
        self._discover(self._history.found_in(history), via="search", keep_unknown=True)
        self._tools.tool_order.append(self._discoveries.names)
        self._left_out.begin_turn(self._hidden_tools)
        self._turn_order = self._tools.tool_order.declared_order
        self._declares_all = False
        if self._services.has_failed(self._tools.catalog.given):
            self._declare_all()
        self._notify()

    @property
    def mode(self) -> ModeDecision:
        """The mode, and the reason for it."""
        return self._decision

    @property
    def found(self) -> tuple[str, ...]:
        """The names that the host has to keep, in their order; tools that are gone stay."""
        with self._lock:
            return tuple(self._found)

    @property
    def names(self) -> tuple[str, ...]:
        """The declared names: the core, the search tool, then `found`.

        They only ever grow at their end. If nothing is deferred, every active tool.
        """
        with self._lock:
            conversation = self._plan_input(_ANY_PROVIDER, (), "")
            return self._strategies.plan(conversation, phase="answer").tools.names

    @property
    def search_tool(self) -> Tool | None:
        """The definition of the search tool; None if nothing is deferred."""
        return self._tools.frozen.search_tool if self._is_searching else None

    @property
    def instructions(self) -> str:
        """The system text that says how to search, and lists what can be found.

        Empty if nothing is deferred.
        """
        return self.instruct("")

    def instruct(self, prompt: str) -> str:
        """Return a system prompt with `instructions`, exactly once."""
        if not self._is_searching:
            return prompt
        system = instructed(prompt, self.search_tool_name, self.language)
        return "\n\n".join(filter(None, (system, self._listing_for(system))))

    def _listing_for(self, system: str) -> str:
        """Return the listing of tools, unless a system text has it already."""
        listing = self._tools.frozen.listing or ""
        return "" if listing in system else listing

    def tools(self, profile: ProviderProfile | None = None) -> ToolList:
        """Return what a request declares, in order.

        A provider of the strategy `bridge` gets the growing list: `plan` alone writes the
        schemas into search results that the bridge needs.

        Args:
            profile: The provider, by whose strategy they are declared; None: the filtered list
                of any provider, however long.

        Raises:
            UnsupportedStrategyError: The provider cannot use the strategy.
        """
        with self._lock:
            profile = profile or _ANY_PROVIDER
            bridged = profile.strategy == BridgeToolSearchStrategy.name
            return self._plan((), profile.generic() if bridged else profile, "").tools

    def plan(
        self,
        history: Iterable[Message],
        profile: ProviderProfile,
        *,
        system_prompt: str = "",
        complete: bool = True,
    ) -> RequestPlan:
        """Return the next request over a host's neutral history, which is not kept.

        Discoveries that the history does not show are shown before its last user message, and
        stay there in later requests of this view and of a view with its `record`.

        Args:
            history: The messages; the adapters' `history_from_wire` reads a dialect's.
            profile: The provider.
            system_prompt: The system prompt of the host.
            complete: False to take the history as it is, such as one that `complete` returned.

        Raises:
            SessionError: It is not made of messages.
            UnsupportedStrategyError: The provider cannot use the strategy.
        """
        with self._lock:
            # The provider decides the mode, and that whether discoveries are shown again.
            self._tools.fit(profile)
            whole = self._history.complete(history) if complete else tuple(history)
            return self._plan(whole, profile, system_prompt)

    @property
    def insertion_points(self) -> tuple[InsertionPoint, ...]:
        """The searches that show discoveries again, with their places, oldest first."""
        return self._history.insertion_points

    def complete(self, history: Iterable[Message]) -> tuple[Message, ...]:
        """Return a host's history with each call answered, and discoveries shown again.

        Raises:
            SessionError: It is not made of messages.
        """
        with self._lock:
            return self._history.complete(history)

    def _plan(
        self, history: tuple[Message, ...], profile: ProviderProfile, system_prompt: str
    ) -> RequestPlan:
        self._tools.trail.replied()
        self._asked = profile
        fitted = self._tools.fit(profile)
        self._tools.freeze_listing(self.denied)
        plan = self._request(self._plan_input(fitted, history, system_prompt))
        self._notify()
        return plan

    def _declared_order(
        self, profile: ProviderProfile, history: tuple[Message, ...]
    ) -> tuple[str, ...]:
        if profile.thinking_bound_to_prefix and not self._declares_all:
            return self._order_of_turn(history)
        return self._tools.tool_order.declared_order

    def _declared_core(self) -> frozenset[str]:
        order = self._tools.tool_order
        return frozenset(order.declared_order) if self._declares_all else order.core

    def _order_of_turn(self, history: tuple[Message, ...]) -> tuple[str, ...]:
        """Return the declared names without those that the last turn of a history brought.

        A list that grows in a turn would end thinking that is bound to it.
        """
        if not history:
            return self._turn_order
        order, new = self._tools.tool_order, self._history.named_in_turn(history)
        head = order.core | {self.search_tool_name}
        return tuple(n for n in order.declared_order if n in head or n not in new)

    def _shown_tools(self) -> Iterable[Tool]:
        order, catalog = self._tools.tool_order, self._tools.catalog
        return [catalog[name] for name in order.declared_order if name in catalog]

    def _why_not(self, tool: Tool) -> str | None:
        return self._denial_reason(self._tools.catalog.executable(tool))

    def search(self, arguments: Mapping[str, Any] | str) -> SearchResult:
        """Return the result of one call of the search tool; no arguments raise.

        The tools that it found are callable from the next request on.

        Args:
            arguments: The arguments as the model wrote them, read as JSON or not.
        """
        result, was_searched = self._search(arguments)
        if not was_searched:
            return result
        with self._lock:
            self._take(result)
            if result.error not in (None, text("search.query_empty", self.language)):
                self._services.report_failure(self._tools.catalog.given, str(result.error))
                self._declare_all()
        return result

    def preview(self, arguments: Mapping[str, Any] | str) -> SearchResult:
        """Return what a call of the search tool would find; nothing is discovered or learned.

        Args:
            arguments: The arguments, as for `search`.
        """
        return self._search(arguments)[0]

    def _search(self, arguments: Mapping[str, Any] | str) -> tuple[SearchResult, bool]:
        """Return the result of a search, and True if there was something to search with."""
        call = _host_call(self.search_tool_name, arguments)
        parsed = read_arguments(arguments) if isinstance(arguments, str) else arguments
        with self._lock:
            self._tools.votes = self._services.votes()
            search_tool, resolver = self._tools.search_tool(), self._resolver()
            if not self._is_searching:
                # Every tool can be called: whatever is found is loaded already.
                resolver.core = frozenset(tool.name for tool in self._tools.catalog.active)
        if parsed is None:
            return SearchResult(query="", error=resolver.broken_json(call)), False
        if search_tool is None:
            error = text("search.unavailable", self.language, cause=self.mode.reason)
            return SearchResult(query="", error=error), False
        # Outside the lock: engines may ask a service for vectors.
        return resolver.search(search_tool, parsed), True

    async def asearch(self, arguments: Mapping[str, Any] | str) -> SearchResult:
        """Return the result of one call of the search tool, searched off the event loop."""
        return await asyncio.to_thread(self.search, arguments)

    def explain(self, query: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the reasons for the scores of tools that one query found, by name.

        They have the form of `tool-search search --explain --json`. What was learned since
        counts too.

        Args:
            query: The query.
            names: Canonical names; unknown ones are left out.

        Raises:
            SearchError: The engine's embedder failed.
        """
        with self._lock:
            index, catalog = self._tools.searched_index, self._tools.catalog
        return (
            {} if index is None else self._services.search.explain(index, catalog, query, [*names])
        )

    def read(
        self, results: Iterable[SearchResult | str | None] = (), called: Iterable[str] = ()
    ) -> None:
        """Take in what the host's history shows; the same again changes nothing.

        Args:
            results: Results of searches, or their JSON; anything else is passed over.
            called: Names of tools that were called and have answered, in earlier requests:
                what they had to teach was learned then.
        """
        with self._lock:
            for given in results:
                result = SearchResult.from_json(given) if isinstance(given, str) else given
                if isinstance(result, SearchResult):
                    self._take(result)
            for name in called:
                tool = self._resolver().find(name) if isinstance(name, str) else None
                if tool is not None:
                    self._discover((tool.name,), via="call")
                    self._tools.trail.called_before(tool.name)

    def check(self, name: str, arguments: Mapping[str, Any] | str) -> CallDecision:
        """Decide how to handle a call before it runs; no text of a model raises.

        A call of a tool that is unknown, gone or forbidden is answered here, and so is one of
        a hidden tool with arguments that do not fit its schema. A tool that the call rightly
        names is callable from the next request on.

        Args:
            name: The name as the model wrote it: a tool's, the search tool's, or `call_tool`.
            arguments: The arguments as the model wrote them, read as JSON or not.
        """
        with self._lock:
            self._tools.votes = self._services.votes()
            decision = self._resolver().decide(_host_call(name, arguments))
            if isinstance(decision, RunCall):
                tool = self._tools.catalog.by_source.get(decision.tool.source, decision.tool)
                self._discover((tool.name,), via="call")
            elif decision.result is not None:
                self._take(decision.result)
            elif decision.names_tool is not None:
                self._discover((decision.names_tool.name,), via="call")
            return decision

    def returned(self, name: str, *, failed: bool = False) -> None:
        """Record that a tool of the host has answered: searches that led to it teach now.

        Args:
            name: The tool's name; an unknown one is passed over.
            failed: True if it failed, which teaches nothing.
        """
        with self._lock:
            tool = self._resolver().find(name)
            if tool is None:
                return
            self._discover((tool.name,), via="call")
            if not failed:
                self._tools.trail.succeeded(tool)

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return what searches have taught since the last call of this method."""
        with self._lock:
            return self._tools.trail.drain_lessons()

    def record(self) -> ConversationState:
        """Return the state as a store keeps it, without messages."""
        with self._lock:
            return self._kept_record(
                insertion_points=self._history.insertion_points,
                former_search_names=self._history.former_search_names,
            )

    def _take(self, result: SearchResult) -> None:
        """Discover what a search found, and let the search teach later; once each."""
        key = result.query, result.names
        if key not in self._read:
            self._read.add(key)
            self._tools.trail.searched(result)
        self._discover(result.names, via="search")

    def _discover(
        self, names: Iterable[str], *, via: DiscoveryWay, keep_unknown: bool = False
    ) -> None:
        """Make tools callable from the next request on.

        Args:
            names: Canonical names.
            via: A search returned them, or the model named them.
            keep_unknown: True to keep names without a tool: it may come back.
        """
        catalog = self._tools.catalog
        core = {tool.name for tool in catalog.core}
        for name in names:
            tool = catalog.get(name)
            if tool is None or not tool.active:
                if keep_unknown:
                    self._found.setdefault(name)
            elif name not in core and (keep_unknown or self.permits(tool)):
                self._found.setdefault(name)
                self._discoveries.commit((tool,), via=via)
        self._tools.tool_order.append(self._discoveries.names)

    def _declare_all(self) -> None:
        """Declare every tool after what is declared: the engine has failed, and finds none."""
        if self._is_searching and not self._declares_all:
            self._declares_all = True
            self._tools.tool_order.append(tool.name for tool in self._tools.catalog.active)

    def _notify(self) -> None:
        for notice in self._tools.take_notices():
            self._services.notify(notice)


def append_instructions(prompt: str, view: View) -> str:
    """Return a system prompt that says how to search, exactly once.

    Args:
        prompt: The system prompt of the bot's owner, with the instructions or without.
        view: The view of the conversation; if nothing is deferred, the prompt stays as it is.
    """
    return view.instruct(prompt)


def _names_in(found: Iterable[str]) -> Iterable[str]:
    """Return the names of a host's list, which may hold anything."""
    return dict.fromkeys(name for name in found if type(name) is str)


def _host_call(name: str, arguments: Mapping[str, Any] | str) -> ToolCall:
    """Return a call of a host's, whose own id only the host needs."""
    if isinstance(arguments, str):
        return ToolCall(id="host", name=name, arguments=arguments)
    try:
        written = compact_json(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        written = repr(arguments)  # what is not JSON is answered as broken JSON
    return ToolCall(id="host", name=name, arguments=written)
