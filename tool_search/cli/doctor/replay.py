"""Recorded conversations, replayed: would a search have found what they called, at what cost?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tool_search.catalog.near_copies import copies_of
from tool_search.cli.doctor.requests import figures_of, planned_request
from tool_search.config.bot import BotConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.conversation.record import message_digest
from tool_search.core.discoveries import tool_tokens
from tool_search.core.messages import Message
from tool_search.core.profiles import ProviderProfile
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.index.older_first import search_older_first
from tool_search.stores.record import ConversationRecord

__all__ = ["Prices", "ReplayedConversation", "Replays", "only_searches", "replayed"]

_MILLION = 1_000_000
_MAX_QUERY_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars for a million input tokens.

    Attributes:
        fresh: Tokens that no cache has.
        cached: Tokens that are read from a cache.
    """

    fresh: float
    cached: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedConversation:
    """One conversation, as it was and as it would be with tool search.

    Attributes:
        key: Its key in the store.
        turns: The number of the user's messages.
        called: The calls of deferred tools, each tool once a turn.
        found: Those that a search would have offered until then, in the same conversation.
        missed: The names of the others, each once.
        recorded: The number of turns whose search was kept by the mode `shadow`; for the
            others the user's message is searched for now.
        full_tokens: Tokens of definitions in all requests with every tool.
        search_tokens: The same with tool search, results of searches and the requests that
            searches add included.
        saved: Dollars that tool search saves.
    """

    key: str
    turns: int
    called: int
    found: int
    missed: tuple[str, ...]
    recorded: int
    full_tokens: int
    search_tokens: int
    saved: float

    @property
    def recall(self) -> float | None:
        """The share of the called tools that were found; None without calls."""
        return self.found / self.called if self.called else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        recall = None if self.recall is None else round(self.recall, 4)
        return {**asdict(self), "saved": round(self.saved, 6), "recall": recall}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """Replayed conversations, and their sums.

    Attributes:
        conversations: The conversations, in the order of their keys.
    """

    conversations: tuple[ReplayedConversation, ...]

    @property
    def recall(self) -> float | None:
        """The share of all called tools that were found; None without calls."""
        called = self.total("called")
        return self.total("found") / called if called else None

    def total(self, name: str) -> float:
        """Return the sum of a figure."""
        figures: Iterator[float] = (getattr(each, name) for each in self.conversations)
        return sum(figures)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums, and each conversation."""
        names = ("turns", "called", "found", "recorded", "full_tokens", "search_tokens")
        return {
            "recall": None if self.recall is None else round(self.recall, 4),
            **{name: self.total(name) for name in names},
            "saved": round(self.total("saved"), 6),
            "conversations": [each.to_dict() for each in self.conversations],
        }


def replayed(
    records: Mapping[str, ConversationRecord],
    catalog: ToolCatalog,
    profile: ProviderProfile,
    *,
    config: BotConfig,
    prices: Prices,
) -> Replays:
    """Replay conversations over the tools of a bot.

    Args:
        records: The conversations by key.
        catalog: The bot's tools, with its core.
        profile: The provider whose requests are counted.
        config: The bot's settings.
        prices: The provider's prices.

    Raises:
        ConfigurationError: The engine of the settings cannot be built.
        SearchError: The tools cannot be indexed.
        SessionError: No conversation can have these tools.
    """
    section = config.tool_search
    searching = section.model_copy(update={"tool_schema_mode": "tool_search"})
    plan = planned_request(catalog, profile, config=searching).plan
    replay = _Replay(
        catalog=catalog,
        index=build_index(catalog.deferred, section.search),
        limit=max(section.max_results, section.max_results_total),
        full=sum(map(tool_tokens, catalog.active)),
        first=figures_of(plan, b"", catalog).tokens + estimate_tokens(plan.system),
        prices=prices,
    )
    return Replays(
        conversations=tuple(replay.of(key, record) for key, record in sorted(records.items()))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    """The replay of conversations of one bot.

    Attributes:
        catalog: The bot's tools.
        index: The index over the deferred ones.
        limit: The most tools that one search offers.
        full: The tokens of all definitions.
        first: The tokens of a first request with tool search.
        prices: The provider's prices.
    """

    catalog: ToolCatalog
    index: ToolSearchIndex
    limit: int
    full: int
    first: int
    prices: Prices

    def of(self, key: str, record: ConversationRecord) -> ReplayedConversation:
        """Return one conversation, replayed."""
        offers = {turn.message: turn.offered for turn in record.shadow}
        own = {record.search_tool.name, *record.former_search_names}
        known: dict[str, None] = {}
        called, found, recorded = 0, 0, 0
        missed: dict[str, None] = {}
        cost = _Cost(full=self.full, first=self.first, prices=self.prices)
        turns = list(_turns(record.history))
        for message, replies in turns:
            digest = message_digest(message.text)
            recorded += digest in offers
            wanted = self._call(replies, own)
            offered: Sequence[str] = ()
            # A model that already has what the turn needs does not search.
            is_searched = any(name not in known for name in wanted)
            if is_searched:
                offered = offers[digest] if digest in offers else self._search(message.text)
            known.update(dict.fromkeys(name for name in offered if name in self.catalog))
            called += len(wanted)
            found += sum(name in known for name in wanted)
            missed.update(dict.fromkeys(name for name in wanted if name not in known))
            # In the mode `tool_search` the searches' own replies are not counted twice.
            searches = sum(only_searches(reply, own) for reply in replies)
            cost.add_turn(
                requests=len(replies) - searches,
                is_searched=is_searched,
                result=sum(tool_tokens(self.catalog[n]) for n in offered if n in self.catalog),
            )
            # A tool that was called is in the conversation from then on.
            known.update(dict.fromkeys(wanted))
        return ReplayedConversation(
            key=key,
            turns=len(turns),
            called=called,
            found=found,
            missed=tuple(missed),
            recorded=recorded,
            full_tokens=cost.full_tokens,
            search_tokens=cost.search_tokens,
            saved=cost.saved,
        )

    def _call(self, replies: Sequence[Message], own: Collection[str]) -> tuple[str, ...]:
        """Return the deferred tools that replies call, each once."""
        deferred = {tool.name for tool in self.catalog.deferred}
        names = (call.name for reply in replies for call in reply.tool_calls)
        return tuple(dict.fromkeys(n for n in names if n in deferred and n not in own))

    def _search(self, message: str) -> tuple[str, ...]:
        query = message[:_MAX_QUERY_CHARS]
        if not any(char.isalnum() for char in query):
            return ()
        result = search_older_first(
            self.index,
            query,
            limit=self.limit,
            allowed=None,
            copies=copies_of(self.catalog),
            tools=self.catalog,
        )
        return tuple(match.name for match in result.matches)


def _turns(history: Sequence[Message]) -> Iterator[tuple[Message, list[Message]]]:
    """Yield each message of the user's, with the replies until the next one."""
    current: tuple[Message, list[Message]] | None = None
    for message in history:
        if message.role == "user":
            if current is not None:
                yield current
            current = message, []
        elif message.role == "assistant" and current is not None:
            current[1].append(message)
    if current is not None:
        yield current


def only_searches(reply: Message, own: Collection[str]) -> bool:
    """True if a reply calls nothing but tools of these names."""
    return bool(reply.tool_calls) and all(call.name in own for call in reply.tool_calls)


@dataclass(slots=True, kw_only=True)
class _Cost:
    """The tokens of definitions in one conversation, and what they cost.

    The first request of a conversation is fresh; what a later one repeats is read from the
    cache. A search adds one request, and its result is fresh once.
    """

    full: int
    first: int
    prices: Prices
    full_tokens: int = 0
    search_tokens: int = 0
    saved: float = 0.0
    results: int = 0

    def add_turn(self, *, requests: int, is_searched: bool, result: int) -> None:
        """Count one turn.

        Args:
            requests: The requests that it takes with every tool.
            is_searched: True if a search adds a request, whether it finds something or not.
            result: The tokens of the definitions that the search finds.
        """
        for number in range(requests + is_searched):
            is_first = self.search_tokens == 0
            # The search is the first request of the turn, and its result is in the second.
            new = result if number == 1 else 0
            self._pay(-1, fresh=self.first if is_first else new, read=self._read(is_first))
            self.search_tokens += self.first + self.results + new
            self.results += new
        for _ in range(requests):
            is_first = self.full_tokens == 0
            self._pay(1, fresh=self.full if is_first else 0, read=0 if is_first else self.full)
            self.full_tokens += self.full

    def _read(self, is_first: bool) -> int:
        return 0 if is_first else self.first + self.results

    def _pay(self, sign: int, *, fresh: int, read: int) -> None:
        dollars = fresh * self.prices.fresh + read * self.prices.cached
        self.saved += sign * dollars / _MILLION
