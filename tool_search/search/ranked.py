"""What every engine shares: names, floors, cuts, counts, several queries at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tool_search.catalog import Tool
from tool_search.search.result import SearchMatch, SearchResult
from tool_search.search.slots import Slots

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Engine", "RankedIndex", "Scores", "attainable"]

_MOST_QUERIES = 16
_MOST_UNMATCHED = 12
_EXACT = 1.0
_BEST_INEXACT = 0.999999
# A definition of two lines answers this many words of a long query, not all of them.
_MOST_ANSWERED = 4
# Of eight public sets, a hit so far below the best one was relevant in 1 of 1,000 queries.
_INCIDENTAL = 0.25


class Scores(NamedTuple):
    """What an engine makes of a query.

    Attributes:
        values: Each tool's score, by slot; 0 is no hit.
        attainable: What the query could reach at most; see `attainable`.
    """

    values: list[float] | NDArray[np.float64]
    attainable: float


def attainable(word_values: Iterable[float]) -> float:
    """The score of a tool that answers the query fully.

    Args:
        word_values: What each word of the query is worth at most; words that the
            catalog does not know count as its rarest.
    """
    return math.fsum(nlargest(_MOST_ANSWERED, word_values))


class Engine(Protocol):
    """A ranking: what is specific to one engine, and nothing else.

    Engines are immutable and deterministic.
    """

    slots: Slots

    def scores(self, query: str) -> Scores:
        """How well each tool fits."""
        ...

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The query's words that no tool has, as they were written, in order.

        Args:
            query: As it was asked.
            has_tool: Whether one of these slots may be found by the caller.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Engine:
        """The same ranking over changed tools; see `ToolSearchIndex.updated`."""
        ...


class RankedIndex:
    """A `ToolSearchIndex` over an engine.

    Args:
        engine: The ranking.
        min_relevance: Hits below it are none, from 0 to 1.
    """

    __slots__ = ("_engine", "_min_relevance")

    def __init__(self, engine: Engine, *, min_relevance: float) -> None:
        self._engine = engine
        self._min_relevance = min_relevance

    def __len__(self) -> int:
        return len(self._engine.slots)

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """The tools that fit the query; see `ToolSearchIndex.search`."""
        queries = [_encodable(text) for text in ([query] if isinstance(query, str) else query)]
        slots = self._engine.slots
        open_slots = _open_slots(slots, allowed)
        best: dict[int, float] = {}
        for text in queries[:_MOST_QUERIES]:
            for slot, score in self._hits(text, open_slots).items():
                if score > best.get(slot, 0.0):
                    best[slot] = score
        top = nsmallest(max(limit, 0), best.items(), key=self._order)
        return SearchResult(
            query=" | ".join(queries),
            matches=tuple(_match(slots.tools[slot], score) for slot, score in top),
            total_found=len(best),
            total_tools=len(slots) if open_slots is None else len(open_slots),
            unmatched=self._unmatched(queries[:_MOST_QUERIES], open_slots),
        )

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RankedIndex:
        """An index with other tools; see `ToolSearchIndex.updated`."""
        engine = self._engine.updated(added=added, removed=removed)
        return RankedIndex(engine, min_relevance=self._min_relevance)

    def _hits(self, query: str, open_slots: set[int] | None) -> dict[int, float]:
        hits = self._above_floor(self._engine.scores(query)) if len(self) else {}
        if open_slots is not None:
            hits = {slot: score for slot, score in hits.items() if slot in open_slots}
        best = max(hits.values(), default=0.0)
        hits = {slot: score for slot, score in hits.items() if score >= _INCIDENTAL * best}
        for slot in self._engine.slots.named(query.strip()):
            if open_slots is None or slot in open_slots:
                hits[slot] = _EXACT
        return hits

    def _above_floor(self, scores: Scores) -> dict[int, float]:
        """The relevance of each hit, 1 - exp(-score / attainable).

        Nearly the share itself where it is small, and below 1 where a tool answers
        more than could be expected, in the same order.
        """
        most = scores.attainable
        if self._min_relevance >= _EXACT or most <= 0:
            return {}
        floor = -math.log1p(-self._min_relevance) * most
        return {
            slot: min(-math.expm1(-score / most), _BEST_INEXACT)
            for slot, score in _at_least(scores.values, floor)
        }

    def _order(self, item: tuple[int, float]) -> tuple[float, str]:
        tool = self._engine.slots.tools[item[0]]
        return -item[1], tool.name if tool else ""

    def _unmatched(self, queries: Sequence[str], open_slots: set[int] | None) -> tuple[str, ...]:
        def has_tool(slots: Iterable[int]) -> bool:
            return any(open_slots is None or slot in open_slots for slot in slots)

        words: dict[str, None] = {}
        for query in queries:
            words.update(dict.fromkeys(self._engine.unmatched(query, has_tool)))
        return tuple(words)[:_MOST_UNMATCHED]


def _open_slots(slots: Slots, allowed: Callable[[str], bool] | None) -> set[int] | None:
    if allowed is None:
        return None
    return {slot for slot, tool in slots.taken() if allowed(tool.name)}


def _at_least(
    values: list[float] | NDArray[np.float64], floor: float
) -> Iterable[tuple[int, float]]:
    if isinstance(values, list):
        return [item for item in enumerate(values) if item[1] >= floor and item[1] > 0]
    chosen = (values >= floor if floor > 0 else values > 0).nonzero()[0]
    return zip(chosen.tolist(), values[chosen].tolist(), strict=True)


def _match(tool: Tool | None, score: float) -> SearchMatch:
    if tool is None:
        raise AssertionError("a free slot was ranked")
    return SearchMatch(
        name=tool.name, description=tool.description, server=tool.server, score=score
    )


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced: a result goes into UTF-8 requests."""
    return text.encode("utf-8", "replace").decode("utf-8")
