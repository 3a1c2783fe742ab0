"""A client's history with the exchanges that it does not see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tool_search.adapters.hosts.chain import ChainItem, ExchangeChain
from tool_search.serving.proxy.dialects.base import JSON, WireCall, WireDialect

__all__ = [
    "Exchange",
    "History",
    "Moment",
    "continued",
    "conversation_id",
    "exchange_of_reply",
    "keep_exchange",
    "kept_reply",
    "restore",
]

_REPLY_KEY = "reply"
# Longer histories are read in a thread: it takes a millisecond for each hundred items.
_LONG = 500
_LISTS = ("instead", "later", "results")


@dataclass(frozen=True, slots=True)
class Exchange:
    """The provider's items of one reply, as far as the client sees another.

    Attributes:
        count: The number of parts of the client's history that it replaces.
        instead: The items that the provider was sent and wrote.
        later: Results of calls that were answered next to a call of the client: they go before
            the client's own results.
        results: The JSON of what searches found, in order.
        reply_id: The provider's id of its last reply, if it differs from the one that the
            client knows.
        found: The names that were found before, if the history is at the provider.
        steps: The provider's ids of all its replies, if the client knows them as one.
        sent: The ids of calls whose results a conversation of the provider has, although the
            client got no reply to them: it sends them again.
        answers: Calls that the client sees in another form, by id: name, arguments and
            namespace; None for hidden ones.
    """

    count: int = 0
    instead: Sequence[JSON] = ()
    later: Sequence[JSON] = ()
    results: Sequence[str] = ()
    reply_id: str | None = None
    found: Sequence[str] = ()
    steps: Sequence[str] = ()
    sent: Sequence[str] = ()
    answers: Mapping[str, Sequence[str | None] | None] = field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return the exchange as a store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: object) -> Exchange | None:
        """Return a kept exchange; None for one of another form."""
        if not isinstance(content, dict) or not isinstance(content.get("count"), int):
            return None
        if not all(isinstance(content.get(key), list) for key in _LISTS):
            return None
        known = {key: content[key] for key in cls.__slots__ if key in content}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a history, for what a view has to know.

    Attributes:
        asked: True if the user said something: a turn begins.
        results: The JSON of what searches found.
        calls: Calls of the client's tools.
        answered: The ids of calls that have results, and True for those that failed.
    """

    asked: bool = False
    results: Sequence[str] = ()
    calls: Sequence[WireCall] = ()
    answered: Sequence[tuple[str, bool]] = ()


@dataclass(frozen=True, slots=True)
class History:
    """The history of a request.

    Attributes:
        items: The items as the provider gets them.
        moments: What happened, in order.
        chain: What no client changes of its items, in order.
        first_text: The user's first message.
        found: The names that were found, if the history is at the provider.
        reply_id: The provider's id of the reply that the request goes on from.
    """

    items: list[JSON]
    moments: list[Moment]
    chain: list[ChainItem] = field(default_factory=list)
    first_text: str = ""
    found: Sequence[str] = ()
    reply_id: str | None = None
    answers: Mapping[str, Sequence[str | None] | None] = field(default_factory=dict)


async def restore(
    dialect: WireDialect, body: JSON, owner: str, exchanges: ExchangeChain
) -> History:
    """Return the history of a request with its hidden exchanges in their places."""
    visible = dialect.items(body)
    is_long = len(visible) > _LONG
    counted = (
        await asyncio.to_thread(dialect.chained, visible) if is_long else dialect.chained(visible)
    )
    kept = await exchanges.restore(owner, [chained for _, chained in counted])
    before = await _before(body, owner, exchanges)
    if is_long:
        return await asyncio.to_thread(_restore, dialect, visible, counted, kept, before)
    return _restore(dialect, visible, counted, kept, before)


def _restore(
    dialect: WireDialect,
    visible: list[JSON],
    counted: Sequence[tuple[int, ChainItem]],
    found: Mapping[int, Sequence[Any]],
    before: Exchange,
) -> History:
    known = {
        place: exchange for place, kept in found.items() if (exchange := _only(kept)) is not None
    }
    items, starts = _with_hidden(dialect, visible, [index for index, _ in counted], known)
    return History(
        items=_after(dialect, before, items),
        moments=[*_kept_moments(before), *_moments(dialect, visible, starts)],
        chain=[chained for _, chained in counted],
        first_text=next((t for t in map(dialect.asked, visible) if t is not None), ""),
        found=before.found,
        reply_id=before.reply_id,
        answers=before.answers,
    )


async def continued(
    dialect: WireDialect, body: JSON, owner: str, exchanges: ExchangeChain
) -> tuple[JSON, Exchange | None]:
    """Return a request that is passed on as it goes on from the provider's own reply.

    Returns:
        The request, and what was kept for the conversation that it is part of, without what
        the request has of it; None: nothing changes there.
    """
    before = await _before(body, owner, exchanges)
    visible, name = dialect.items(body), conversation_id(body)
    changed: JSON = {}
    if before.reply_id is not None and "previous_response_id" in body:
        changed["previous_response_id"] = before.reply_id
    if before.later or before.sent:
        changed[dialect.items_key] = _after(dialect, before, visible)
    rest = replace(before, later=(), sent=()) if name and changed else None
    return {**body, **changed} if changed else body, rest


def _after(dialect: WireDialect, before: Exchange, items: list[JSON]) -> list[JSON]:
    """Return a history that goes on from what the provider keeps."""
    if before.sent:
        kept = set(before.sent)
        items = [
            item for item in items if not kept.intersection(i for i, _ in dialect.answered(item))
        ]
    return dialect.with_later(items, before.later) if before.later else items


async def keep_exchange(
    exchanges: ExchangeChain, owner: str, chain: Iterable[ChainItem], exchange: Exchange
) -> None:
    """Keep an exchange under the history as the client will send it back."""
    await exchanges.keep(owner, chain, [exchange.to_json()])


def conversation_id(body: JSON) -> str | None:
    """Return the provider's conversation that a request is part of; None: none.

    Source: OpenAI, "Create a model response": its items are before the input, and the items
    of the request and of its reply are added to it.
    """
    named = body.get("conversation")
    name = named.get("id") if isinstance(named, dict) else named
    return name if isinstance(name, str) else None


def kept_reply(reply_id: str) -> ChainItem:
    """Return the item under which a reply that a provider keeps is found."""
    return ChainItem(_REPLY_KEY, "", (reply_id,))


async def _before(body: JSON, owner: str, exchanges: ExchangeChain) -> Exchange:
    """Return what was kept for the reply, or conversation, that a request goes on from."""
    reply_id = body.get("previous_response_id") or conversation_id(body)
    if not isinstance(reply_id, str):
        return Exchange()
    return await exchange_of_reply(exchanges, owner, reply_id)


async def exchange_of_reply(exchanges: ExchangeChain, owner: str, reply_id: str) -> Exchange:
    """Return what was kept for a reply or a conversation that a provider keeps."""
    kept = await exchanges.restore(owner, [kept_reply(reply_id)])
    return _only(kept.get(0, ())) or Exchange()


def _only(kept: Sequence[Any]) -> Exchange | None:
    return Exchange.from_json(kept[0]) if kept else None


def _with_hidden(
    dialect: WireDialect,
    visible: Sequence[JSON],
    places: Sequence[int],
    known: dict[int, Exchange],
) -> tuple[list[JSON], dict[int, Exchange]]:
    """Return the items with hidden ones, and the exchanges by the index of their first item."""
    starts: dict[int, Exchange] = {}
    limit, parts = len(visible), list[list[JSON]]()
    for place in sorted(known, reverse=True):
        exchange, last = known[place], places[place]
        first = place - exchange.count + 1
        if last >= limit or first < 0:
            continue
        # Items that a client may drop are in the exchange too.
        start = places[first - 1] + 1 if first else 0
        rest = [*visible[last + 1 : limit]]
        if exchange.later:
            rest = dialect.with_later(rest, exchange.later)
        parts.append([*exchange.instead, *rest])
        starts[start] = exchange
        limit = start
    return [*visible[:limit], *(item for part in reversed(parts) for item in part)], starts


def _kept_moments(before: Exchange) -> list[Moment]:
    return [Moment(results=before.results)] if before.results else []


def _moments(
    dialect: WireDialect, visible: Sequence[JSON], starts: dict[int, Exchange]
) -> list[Moment]:
    moments: list[Moment] = []
    for index, item in enumerate(visible):
        if index in starts:
            moments.append(Moment(results=starts[index].results))
        if dialect.asked(item) is not None:
            moments.append(Moment(asked=True))
        moment = Moment(calls=dialect.calls(item), answered=dialect.answered(item))
        if moment.calls or moment.answered:
            moments.append(moment)
    return moments
