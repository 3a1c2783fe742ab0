"""A client's request as a turn: its tools, what its history shows as found, and its search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

from tool_search.adapters.hosts.chain import ExchangeChain
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.core.services import SearchResult
from tool_search.errors import SessionError
from tool_search.runner.providers import ProviderPool
from tool_search.runner.refusals import TurnRefusals
from tool_search.serving.proxy.history import History, Moment, continued, restore
from tool_search.serving.proxy.report import PassReason
from tool_search.serving.proxy.requests import ClientRequest, has_tools, profile_of_request
from tool_search.serving.proxy.settings import ProxyConfig
from tool_search.serving.proxy.tools import ClientTools, ToolLists
from tool_search.serving.proxy.turn import Turn
from tool_search.stores.base import EvidenceStore

__all__ = ["Preparation"]

_NAMES = ("", "_proxy", "_of_proxy")
_MAX_POOLS = 1_000


class Preparation:
    """The turns of clients' requests, and the searches of all.

    Args:
        config: The settings.
        exchanges: The exchanges that clients do not see.
        evidence: The store of what searches learn.
    """

    def __init__(
        self, config: ProxyConfig, exchanges: ExchangeChain, evidence: EvidenceStore
    ) -> None:
        self._config = config
        self._exchanges = exchanges
        self._evidence = evidence
        self._lists = ToolLists()
        self._searches: dict[str, ToolSearch] = {}
        self._pools: dict[tuple[str, ...], ProviderPool] = {}

    async def turn(self, asked: ClientRequest) -> Turn | None:
        """Return the turn of a request; None for one that is passed on."""
        turn = await self._search(asked)
        if turn is None:
            exchanges = self._exchanges
            body, kept = await continued(asked.dialect, asked.body, asked.owner, exchanges)
            if body is not asked.body:
                asked.write(body)
                asked.kept = kept
        return turn

    async def _search(self, asked: ClientRequest) -> Turn | None:
        asked.report.passed = self._reason_to_pass(asked)
        if asked.report.passed:
            return None
        dialect, refusals = asked.dialect, self._refusals_of(asked)
        if not refusals.profile(asked.upstream.id).takes_tools:
            asked.report.passed = "refused"
            return None
        tools = await asyncio.to_thread(self._lists.read, dialect, asked.body, asked.rule)
        asked.report.tools(tools)
        if self._is_below(tools):
            asked.report.passed = "few_tools"
            return None
        history = await restore(dialect, asked.body, asked.owner, self._exchanges)
        turn = await asyncio.to_thread(self._prepare, asked, tools, history, refusals)
        if turn is None:
            asked.report.passed = "few_tools"
            return None
        await self._search_of(turn).learn(turn.view)
        asked.report.turn = turn
        return turn

    def _refusals_of(self, asked: ClientRequest) -> TurnRefusals:
        """Return the refusals of a turn, with what was learned of its provider and model."""
        name = asked.upstream.id
        key = (asked.dialect.name, name, str(asked.body.get("model") or ""))
        if key not in self._pools:
            provider = cast("Any", SimpleNamespace(profile=profile_of_request(asked)))
            self._pools[key] = ProviderPool({name: provider}, {name: 0})
            if len(self._pools) > _MAX_POOLS:
                del self._pools[next(iter(self._pools))]
        return TurnRefusals(self._pools[key], name)

    def _reason_to_pass(self, asked: ClientRequest) -> PassReason:
        """Return the reason to pass a request on before its tools are read; empty: none."""
        dialect = asked.dialect
        mode = asked.rule.mode or self._config.mode
        if mode == "off":
            return "off"
        if not has_tools(asked.body) or not dialect.is_searchable(asked.body):
            return "no_tools"
        asked.report.begin()
        if mode != "inject" and dialect.defers(asked.body):
            if profile_of_request(asked).is_native:
                return "native"
            asked.emulate(dialect.emulated(asked.body))
            return "" if asked.found_by_client.is_searched else "emulated"
        return "not_deferred" if mode == "emulate" else ""

    def _is_below(self, tools: ClientTools) -> bool:
        """True for a list that no search shortens; spares the work of a view."""
        settings = self._config.tool_search
        return (
            settings.tool_schema_mode == "auto"
            and settings.threshold_tokens is None
            and tools.count <= settings.threshold
        ) or not tools.catalog.deferred

    def _prepare(
        self, asked: ClientRequest, tools: ClientTools, history: History, refusals: TurnRefusals
    ) -> Turn | None:
        earlier, current = _split_turn(history.moments)
        named = (tools.name_of(None, name) for name in asked.found_by_client.found)
        found = [*history.found, *named, *_found_in(earlier, tools)]
        search = self._search_for(tools)
        view = search.view(
            found, tools=tools.catalog, first_message=history.first_text, user=asked.owner
        )
        if view.search_tool is None:
            return None
        _take_in(view, current, tools)
        view.read(
            called=[tools.name_of(*each) for each in asked.dialect.required_tools(asked.body)]
        )
        return Turn(
            dialect=asked.dialect,
            body=asked.body,
            tools=tools,
            view=view,
            profile=refusals.profile(asked.upstream.id),
            refusals=refusals,
            history=history,
            owner=asked.owner,
            max_searches=self._config.max_searches,
        )

    def _search_for(self, tools: ClientTools) -> ToolSearch:
        """Return the search whose tool no tool of the client has the name of."""
        settings = self._config.tool_search
        taken = {name for _, name in (*tools.sources, *tools.plain)}
        names = (f"{settings.search_tool_name}{end}" for end in _NAMES)
        name = next((name for name in names if name not in taken), None)
        if name is None:
            raise SessionError(f"the client has tools of the names {_NAMES!r}")
        if name not in self._searches:
            learning = settings.learning
            # A credential is a customer, not one of a bot's users.
            own = learning.model_copy(update={"shared": learning.shared or False})
            changed = {"search_tool_name": name, "learning": own}
            self._searches[name] = ToolSearch(
                (), settings.model_copy(update=changed), store=self._evidence
            )
        return self._searches[name]

    def _search_of(self, turn: Turn) -> ToolSearch:
        return self._searches[turn.view.search_tool_name]


def _split_turn(moments: Sequence[Moment]) -> tuple[Sequence[Moment], Sequence[Moment]]:
    """Return the moments before the user's last message, and those from it on."""
    last = max((index for index, moment in enumerate(moments) if moment.asked), default=0)
    return moments[:last], moments[last:]


def _found_in(moments: Sequence[Moment], tools: ClientTools) -> Iterator[str]:
    """Yield the names that searches found or calls named, in order."""
    for moment in moments:
        for written in moment.results:
            result = SearchResult.from_json(written)
            yield from result.names if result else ()
        for call in moment.calls:
            yield tools.name_of(call.namespace, call.name)


def _take_in(view: ToolView, moments: Sequence[Moment], tools: ClientTools) -> None:
    """Let a view know the searches and calls of the current turn.

    The results after the last reply are new: what led to their calls is learned.
    """
    last = max((index for index, moment in enumerate(moments) if moment.calls), default=0)
    new = {call_id: failed for each in moments[last:] for call_id, failed in each.answered}
    for moment in moments:
        if moment.results:
            view.read(results=moment.results)
        for call in moment.calls:
            name = tools.name_of(call.namespace, call.name)
            if call.id in new:
                view.returned(name, failed=new[call.id])
            else:
                view.read(called=[name])
