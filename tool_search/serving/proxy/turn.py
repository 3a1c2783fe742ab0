"""One turn of a client: requests to the provider until a reply is the client's.

The provider's calls of the search tool are answered here. The client gets one reply, without
them; the exchange is kept, so that the next request of the client has it again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pydantic import SecretStr

from tool_search.adapters.hosts.chain import ChainItem, ExchangeChain
from tool_search.adapters.hosts.view import ToolView
from tool_search.adapters.sdk.failures import Failure, body_failure, raise_failure
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool, estimate_tokens
from tool_search.core.conversation.calls import AnsweredCall, CallResult, RunCall, result_message
from tool_search.core.messages import Message, RequestPlan, ToolCall, ToolList, user_message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import CALL_TOOL_NAME, SearchResult
from tool_search.core.values.json import compact_json, json_bytes, read_json
from tool_search.errors import ProviderError
from tool_search.i18n import text
from tool_search.providers.errors import Action
from tool_search.providers.refusals import SentTools
from tool_search.runner.refusals import Repeats, TurnRefusals
from tool_search.serving.proxy.dialects.base import (
    JSON,
    ListedTool,
    VisibleCall,
    WireCall,
    WireDialect,
    WireTool,
)
from tool_search.serving.proxy.history import (
    Exchange,
    History,
    conversation_id,
    keep_exchange,
    kept_reply,
)
from tool_search.serving.proxy.stored import stored_answers
from tool_search.serving.proxy.tools import ClientTools

__all__ = ["Search", "Turn"]

# Replies with nothing but searches, after the model was answered that there is no more.
_MAX_REFUSED = 3
# What a proxy writes anew; the rest of a request is the client's.
_OWN_FORMS: frozenset[Action] = frozenset(
    ("generic_strategy", "within_limit", "in_its_form", "without_tool")
)
_log = logging.getLogger(__name__)
# "The block is bound to a different conversation", of Anthropic.
_BOUND = b"bound to a different conversation"


@dataclass(frozen=True, slots=True)
class Search:
    """A search of the model.

    Attributes:
        query: The query.
        names: The names of the tools that it found.
        error: The reason for which nothing was searched; None: it was.
        result: The result; None: nothing was searched.
    """

    query: str
    names: Sequence[str]
    error: str | None = None
    result: SearchResult | None = None


@dataclass(slots=True, kw_only=True)
class Turn:
    """A request of a client, and the provider's replies to it.

    Attributes:
        dialect: The format.
        body: The client's request.
        tools: The client's tools.
        view: The tools as the conversation has them.
        profile: The provider.
        refusals: What it refuses.
        history: The history with hidden exchanges.
        owner: The digest of the client's credential.
        max_searches: Searches before the model is answered that there is no more.
        searches: The searches so far.
        replies: The provider's replies so far.
        answers: The calls that the client does not see as they came, by id.
        listed: The declared tools of the last request.
    """

    dialect: WireDialect
    body: JSON
    tools: ClientTools
    view: ToolView
    profile: ProviderProfile
    refusals: TurnRefusals
    history: History
    owner: str
    max_searches: int
    searches: list[Search] = field(default_factory=list)
    replies: list[JSON] = field(default_factory=list)
    answers: dict[str, VisibleCall | None] = field(default_factory=dict)
    listed: list[ListedTool] = field(default_factory=list)
    _hidden: list[JSON] = field(default_factory=list)
    _unsent: list[JSON] = field(default_factory=list)
    _results: list[str] = field(default_factory=list)
    _later: list[JSON] = field(default_factory=list)
    _plan: RequestPlan | None = None
    _drops_thinking: bool = False
    _repeats: Repeats = field(default_factory=Counter)

    def request(self) -> bytes:
        """Return the body of the provider's next request."""
        plan = self._plan or self.view.plan((user_message("."),), self.profile, complete=False)
        self._plan = plan
        self.listed = self._list(plan)
        body = dict(self.body)
        body["tools"] = self.dialect.write_tools(self.body["tools"], self.listed, self.tools.others)
        items = self._items()
        if self.profile.facts.sends_definitions_in_messages:
            items = self.dialect.with_called(items, self._find_needed)
        items = self.dialect.settled(items, body["tools"])
        # A history of the client alone goes on as it came, a text as well.
        if items != self.dialect.items(body):
            body[self.dialect.items_key] = items
        if self.history.reply_id is not None and "previous_response_id" in body:
            body["previous_response_id"] = self.history.reply_id
        self.dialect.write_system(body, self.view.instruct)
        return json_bytes(body)

    def change_form(self, status: int, refusal: bytes) -> bool:
        """Write the next request in another form; False: the refusal is the client's to read.

        Without tools in its profile, the last form is the client's own request.
        """
        if self._drop_thinking(status, refusal):
            return True
        plan, name = self._plan, self.refusals.primary
        if self.replies or plan is None:
            return False
        refused, error = self.request(), _error(name, status, refusal)
        while True:
            own = (self.view.search_tool_name, CALL_TOOL_NAME)
            sent = SentTools(
                listed=plan.tools, loaded=tuple(plan.brought()), own=own, facts=plan.facts
            )
            action = self.refusals.action(error, name, self.profile, sent, repeats=self._repeats)
            is_plainer = action.remedy == "next_provider" and name in self.refusals.plainer
            if is_plainer:
                self.refusals.ask_plainer(name)
            elif action.remedy not in _OWN_FORMS or action.profile is None:
                return False
            self.profile, self._plan = self.refusals.profile(name), None
            if not self.profile.takes_tools:
                return is_plainer
            if self.request() != refused:
                return True
            if not is_plainer:
                return False

    def accept(self) -> None:
        """Remember the form in which the provider has answered."""
        tools = self._plan.tools if self._plan and self.profile.takes_tools else ToolList()
        plan = RequestPlan(strategy=self.profile.strategy, tools=tools, messages=())
        for notice in self.refusals.answered(self.refusals.primary, plan):
            _log.warning("%s: %s", notice.code, notice.message)

    def _drop_thinking(self, status: int, refusal: bytes) -> bool:
        """Leave out earlier thinking if the provider refuses it; False: it refuses something else.

        The thinking of some models is bound to the exact requests before it, which are lost with
        the state, or were other ones before a client used the proxy.
        """
        is_bound = self.profile.thinking_bound_to_prefix and status == 400 and _BOUND in refusal
        if not is_bound or self._drops_thinking or self.replies:
            return False
        self._drops_thinking = True
        self.body, items = self.dialect.without_thinking(self.body, self.history.items)
        self.history = replace(self.history, items=items)
        return True

    def _items(self) -> list[JSON]:
        """Return the history for the next request."""
        if self.replies and self._conversation is not None:
            # The service has added the request before and its reply to the conversation.
            return self._unsent
        return [*self.history.items, *self._hidden]

    @property
    def _conversation(self) -> str | None:
        """The conversation to which the service adds each item; None: there is none."""
        return conversation_id(self.body) if self.dialect.items_key == "input" else None

    @property
    def declared_tokens(self) -> int:
        """The estimated tokens of the definitions that the last request has in the prompt."""
        own = sum(estimate_tokens(compact_json(entry.own)) for entry in self.listed if entry.own)
        sources = self.tools.sources
        shown = (e.wire for e in self.listed if e.wire is not None and not e.deferred)
        listed = sum(self.tools.tokens[sources[wire.namespace, wire.name]] for wire in shown)
        return own + listed + self.tools.other_tokens

    def holds(self, name: str, namespace: str | None) -> bool:
        """True for a call that the client does not see before it is decided."""
        if (namespace, name) in self.tools.plain:
            return False
        if (namespace, name) not in self.tools.sources:
            return namespace is None
        return self.tools.name_of(namespace, name) not in self._callable

    @property
    def _callable(self) -> set[str]:
        core = {tool.name for tool in self.view.catalog.core}
        return core.union(self.view.found)

    def take(self, reply: JSON) -> list[tuple[str, VisibleCall]] | None:
        """Take in the provider's reply, and answer the calls that the client does not see.

        Returns:
            The calls that were held back and are the client's, if the turn ends here; None if
            the provider has to be asked again.
        """
        reply = self.dialect.received(reply, self.body)
        self.replies.append(reply)
        self.accept()
        items = self.dialect.reply_items(reply)
        calls = [call for item in items for call in self.dialect.calls(item)]
        held = [c for c in calls if c.is_search or self.holds(c.name, c.namespace)]
        # What a search finds is before what a call names, as in the next request.
        held.sort(key=lambda call: not self.is_search(call))
        answered: list[tuple[WireCall, AnsweredCall]] = []
        released: list[tuple[str, VisibleCall]] = []
        for call in held:
            decision = self._decide(call, is_cut=self.dialect.is_cut(reply))
            if isinstance(decision, AnsweredCall):
                self.answers[call.id] = None
                answered.append((call, decision))
                continue
            self.answers[call.id] = None
            if decision is not None:
                visible = self.answers[call.id] = self._visible(decision)
                released.append((call.id, visible))
        results = self._answer(answered)
        is_clients = len(answered) < len(calls) or self.dialect.waits_for_client(reply)
        if not results or is_clients or self._is_over:
            self._later = results
            return released
        self._hidden += [*items, *results]
        self._unsent = results
        return None

    def is_search(self, call: WireCall) -> bool:
        """True if a call is one of the search tool, under whatever name the provider has it."""
        own = self.view.search_tool_name
        return call.is_search or call.name in (own, wire_name(own, self.profile.name_rule))

    @property
    def _is_over(self) -> bool:
        return len(self.searches) >= self.max_searches + _MAX_REFUSED

    def _decide(self, call: WireCall, *, is_cut: bool) -> RunCall | AnsweredCall | None:
        """Decide a call; None for one that was cut off: nobody sees it."""
        is_search = self.is_search(call)
        if is_search and len(self.searches) >= self.max_searches:
            return self._refuse_search(call)
        name = self.view.search_tool_name if is_search else call.name
        if (call.namespace, call.name) in self.tools.sources:
            name = self.tools.name_of(call.namespace, call.name)
        decision = self.view.check(name, call.arguments)
        if isinstance(decision, RunCall):
            return decision
        if decision.result is not None:
            result = decision.result
            self.searches.append(Search(result.query, result.names, result.error, result))
            self._results.append(result.to_json())
        elif is_cut:
            return None
        return decision

    def _refuse_search(self, call: WireCall) -> AnsweredCall:
        reason = text("search.used_up", self.view.language)
        self.searches.append(Search("", (), reason))
        result = SearchResult(query="", error=reason)
        own = ToolCall(id=call.id, name=self.view.search_tool_name, arguments=call.arguments)
        return AnsweredCall(call=own, content=result.to_json(), is_error=True)

    def _visible(self, decision: RunCall) -> VisibleCall:
        wire = self.tools.wire[decision.tool.source]
        return VisibleCall(wire.name, compact_json(dict(decision.arguments)), wire.namespace)

    def _answer(self, answered: Sequence[tuple[WireCall, AnsweredCall]]) -> list[JSON]:
        """Return the results of calls as items, and plan the next request."""
        if not answered:
            return []
        calls, results = [], []
        for call, decision in answered:
            name = self.view.search_tool_name if self.is_search(call) else call.name
            own = ToolCall(id=call.id, name=name, arguments=call.arguments)
            result = CallResult(
                decision=replace(decision, call=own),
                content=decision.content,
                is_error=decision.is_error,
            )
            calls.append(own)
            results.append(result_message(result, self.view.language))
        said = Message(role="assistant", content="", tool_calls=tuple(calls))
        history = (user_message("."), said, *results)
        self._plan = self.view.plan(history, self.profile, complete=False)
        items = self.dialect.result_items(self._plan, self.profile)
        return self.dialect.with_definitions(items, self._wire_of)

    def _wire_of(self, name: str) -> WireTool | None:
        tool = self.view.catalog.get(name) or self.view.catalog.by_wire_name.get(name)
        return self.tools.wire.get(tool.source) if tool else None

    def _list(self, plan: RequestPlan) -> list[ListedTool]:
        entries = [(entry, self._own(entry.tool)) for entry in plan.tools]
        of_proxy = replace(plan, tools=ToolList(e for e, wire in entries if wire is None))
        written = iter(self.dialect.own_tools(of_proxy, self.profile))
        required = dict.fromkeys(self.dialect.required_tools(self.body))
        listed = [
            ListedTool(None, next(written))
            if wire is None
            else ListedTool(
                wire,
                deferred=entry.deferred and (wire.namespace, wire.name) not in required,
            )
            for entry, wire in entries
        ]
        shown = {(wire.namespace, wire.name) for _, wire in entries if wire is not None}
        # A choice is refused if its tool is not in the list, which may be one that never grows.
        missing = [self._wire_at(*each) for each in required if each not in shown]
        return [*listed, *(ListedTool(wire) for wire in missing if wire is not None)]

    def _wire_at(self, namespace: str | None, name: str) -> WireTool | None:
        source = self.tools.sources.get((namespace, name))
        return None if source is None else self.tools.wire[source]

    def _find_needed(self, call: WireCall) -> WireTool | None:
        """Return the definition that a call needs in a message; None: the list has it."""
        # A function that a search loaded has its own name as namespace.
        namespace = None if call.namespace == call.name else call.namespace
        wire = self._wire_at(namespace, call.name)
        is_listed = any(entry.wire is wire for entry in self.listed)
        return None if wire is None or is_listed else wire

    def _own(self, tool: Tool) -> WireTool | None:
        return self.tools.wire.get(tool.source)

    def merged(self) -> JSON:
        """Return the one reply that the client sees, if replies are whole."""
        is_as_it_came = len(self.replies) == 1 and not self.answers
        reply = (
            self.replies[0] if is_as_it_came else self.dialect.merged(self.replies, self.answers)
        )
        return self.dialect.echoed(reply, self.body)

    async def keep_unanswered(self, exchanges: ExchangeChain) -> None:
        """Keep the results of a reply's calls before they are sent.

        A conversation of the service has the calls already: if the next request fails, the
        client's next one has to answer them.
        """
        if self._conversation is not None:
            items = self.dialect.items(self.body)
            open_calls = Exchange(
                later=self._unsent,
                results=self._results,
                found=self.view.found,
                sent=[each for item in items for each, _ in self.dialect.answered(item)],
            )
            kept = kept_reply(self._conversation)
            await keep_exchange(exchanges, self.owner, [kept], open_calls)

    async def keep(self, exchanges: ExchangeChain) -> None:
        """Keep what the client does not see of the reply, and teach what was learned."""
        chain = self._visible_chain()
        exchange = Exchange(
            count=len(chain),
            instead=[*self._hidden, *self.dialect.reply_items(self.replies[-1])],
            later=self._later,
            results=self._results,
        )
        if chain and (self._hidden or self.answers):
            await keep_exchange(exchanges, self.owner, [*self.history.chain, *chain], exchange)
        for reply_id in self._kept_ids():
            later = Exchange(
                later=self._later,
                results=self._results,
                reply_id=str(self.replies[-1].get("id")),
                found=self.view.found,
                steps=[str(reply.get("id")) for reply in self.replies],
                answers={**self.history.answers, **stored_answers(self.answers)},
            )
            await keep_exchange(exchanges, self.owner, [kept_reply(reply_id)], later)

    def _visible_chain(self) -> list[ChainItem]:
        seen = self.dialect.visible_items(self.replies, self.answers)
        return [item for _, item in self.dialect.chained(seen)]

    def _kept_ids(self) -> Iterable[str]:
        """Yield the names by which a next request may go on, without the history."""
        if self.dialect.items_key != "input":
            return
        has_more = bool(self.view.found or self._hidden or self._later)
        if has_more and self.body.get("store") is not False and self.replies[0].get("id"):
            yield str(self.replies[0]["id"])
        # What was kept for it earlier may have been sent meanwhile.
        if self._conversation is not None:
            yield self._conversation


def _error(name: str, status: int, refusal: bytes) -> ProviderError:
    """Return a provider's refusal as an error that shows no key."""
    said = refusal.decode("utf-8", "replace")
    try:
        body = read_json(said)
    except (ValueError, RecursionError):
        body = None
    failure = body_failure(body, status=status) or Failure(detail=said, status=status)
    try:
        raise_failure(failure, provider=name, secret=SecretStr(""))
    except ProviderError as error:
        return error
