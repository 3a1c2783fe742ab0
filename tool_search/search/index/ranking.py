"""What every engine shares: names, operators, floors, cuts, counts, several queries at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tool_search.catalog.tool import Tool
from tool_search.search.index.filter import FilterResult, Lexicon, lexicon_of, passing
from tool_search.search.index.protocol import SearchMatch, SearchResult
from tool_search.search.index.scores import (
    ScoredTools,
    above,
    closed,
    largest,
    last_of_best,
    lift,
    relevance,
)
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query_language import parsed, selected_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.search.index.explanation import Explanation
    from tool_search.search.index.scores import Values

__all__ = ["RankedIndex", "Scorer", "Scores", "Votes", "attainable"]

_MAX_QUERIES = 16
_MAX_UNMATCHED = 12
_EXACT = 1.0
# Of what a query could reach: what operators let through is a hit, even without a score.
_LEAST = 1e-6
# A definition of two lines answers this many words of a long query, not all of them.
_MAX_ANSWERED = 4
# Of eight public sets, a hit so far below the best one was relevant in 1 of 1,000 queries.
_INCIDENTAL = 0.25


Votes = Callable[[str, Callable[[str], bool]], Mapping[str, float]]
"""What tools are given for a query, by name, as shares of what it could reach at most.

The second argument says by name which tools may be found.
"""


class Scores(NamedTuple):
    """What an engine makes of a query.

    Attributes:
        values: Each tool's score, by slot; 0 is no hit. The caller may change it.
        attainable: What the query could reach at most; see `attainable`.
    """

    values: Values
    attainable: float


def attainable(word_values: Iterable[float]) -> float:
    """The score of a tool that answers the query fully.

    Args:
        word_values: What each word of the query is worth at most; words that the
            catalog does not know count as its rarest.
    """
    return math.fsum(nlargest(_MAX_ANSWERED, word_values))


class Scorer(Protocol):
    """A ranking: what is specific to one engine, and nothing else.

    Engines are immutable and deterministic.
    """

    slots: DocumentIds
    most_boost: float

    def scores(self, query: str) -> Scores:
        """How well each tool fits, but for the boosts."""
        ...

    def boosts(self, query: str, slots: Sequence[int]) -> Sequence[float]:
        """What the scores of these tools are multiplied by, from 1 to `most_boost`.

        Asked only for tools that can still be among the best.
        """
        ...

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The query's words that no tool has, as they were written, in order.

        Args:
            query: As it was asked.
            has_tool: Whether one of these slots may be found by the caller.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Scorer:
        """The same ranking over changed tools; see `ToolSearchIndex.updated`."""
        ...


@runtime_checkable
class _KeepsLexicon(Protocol):
    """An engine that knows which tools have which term."""

    @property
    def lexicon(self) -> Lexicon: ...


class _Found(NamedTuple):
    """What one query finds.

    Attributes:
        slots: Of the hits.
        beside: Of tools that the query names and that are no hits.
        top: The best of both, with their relevance.
        unmatched: Words that no tool has.
        selected: Of tools that the query lists, in its order.
    """

    slots: Collection[int] | NDArray[np.intp]
    beside: list[int]
    top: list[tuple[int, float]]
    unmatched: Sequence[str]
    selected: Sequence[int] = ()


class RankedIndex:
    """A `ToolSearchIndex` over an engine.

    Args:
        engine: The ranking.
        min_relevance: Hits below it are none, from 0 to 1.
        has_operators: Whether queries are in the query language; without it they are
            handed to the engine as they are, but for `select:`.
        votes: See `with_votes`.
    """

    __slots__ = ("_engine", "_has_operators", "_lexicon", "_min_relevance", "_votes")

    def __init__(
        self,
        engine: Scorer,
        *,
        min_relevance: float,
        has_operators: bool = True,
        votes: Votes | None = None,
    ) -> None:
        self._engine = engine
        self._min_relevance = min_relevance
        self._has_operators = has_operators
        self._votes = votes if has_operators else None
        self._lexicon: Lexicon | None = None
        if isinstance(engine, _KeepsLexicon):
            self._lexicon = engine.lexicon

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
        is_open = _open_slots(slots, allowed)
        found = [self._found(text, max(limit, 0), is_open) for text in queries[:_MAX_QUERIES]]
        best: dict[int, float] = {}
        for slot, score in chain.from_iterable(each.top for each in found):
            best[slot] = max(score, best.get(slot, 0.0))
        listed = dict.fromkeys(chain.from_iterable(each.selected for each in found))
        places = {slot: place for place, slot in enumerate(listed)}
        return SearchResult(
            query=" | ".join(queries),
            matches=tuple(map(_match, self._ordered(best, places)[: max(limit, 0)])),
            total_found=_united(found),
            total_tools=len(slots) if is_open is None else sum(is_open),
            unmatched=tuple(dict.fromkeys(chain.from_iterable(each.unmatched for each in found)))[
                :_MAX_UNMATCHED
            ],
        )

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RankedIndex:
        """An index with other tools; see `ToolSearchIndex.updated`."""
        return self._over(self._engine.updated(added=added, removed=removed), self._votes)

    def with_votes(self, votes: Votes) -> RankedIndex:
        """The same index with votes added to the scores of words.

        What was found without them is found with them; a tool that a query names, or
        that its operators leave out, is neither raised nor lowered. An engine whose
        queries are no words takes none.
        """
        return self._over(self._engine, votes)

    def _over(self, engine: Scorer, votes: Votes | None) -> RankedIndex:
        return RankedIndex(
            engine,
            min_relevance=self._min_relevance,
            has_operators=self._has_operators,
            votes=votes,
        )

    def explained(
        self,
        query: str,
        names: Sequence[str],
        *,
        allowed: Callable[[str], bool] | None = None,
    ) -> tuple[Explanation, ...]:
        """Why tools that one query found have their scores, in the order of their names here.

        Raises:
            SearchError: The engine's embedder failed.
        """
        from tool_search.search.index.explanation import explanations  # noqa: PLC0415 - few ask why

        query, slots = _encodable(query), self._engine.slots
        is_open = _open_slots(slots, allowed)
        named = self._named(query.strip(), is_open)
        selected = None if named else self._selected(query, is_open)
        found = explanations(
            self._engine,
            self._weighed(query, named, is_open),
            [slot for name in names for slot in slots.named(name)],
            named=selected.selected if selected else named,
        )
        return tuple(found)

    def _found(self, query: str, limit: int, is_open: Sequence[bool] | None) -> _Found:
        """Every tool that the query finds, and the best of them with their relevance."""
        named = self._named(query.strip(), is_open)
        if not named:
            selected = self._selected(query, is_open)
            if selected:
                return selected
        weighed = self._weighed(query, named, is_open)
        exact = [(slot, _EXACT) for slot in named]
        unmatched = self._engine.unmatched(weighed.asked, _open_among(is_open))
        if not weighed.most:
            return _Found([], named, exact, unmatched)
        values, floor = weighed.values, weighed.floor
        slots, rivals = above(values, floor, limit, self._engine.most_boost)
        top = [
            (slot, relevance(score / weighed.most))
            for slot, score in self._boosted(weighed.text, rivals, limit)
            if slot not in named
        ]
        beside = [slot for slot in named if not 0 < values[slot] >= floor]
        return _Found(slots, beside, [*top, *exact], unmatched)

    def _weighed(
        self, query: str, named: Sequence[int], is_open: Sequence[bool] | None
    ) -> ScoredTools:
        """What each tool is worth, but for the boosts."""
        passed = None if named else self._passing(query, is_open)
        text, asked = (passed.text, passed.asked) if passed else (query, query)
        values, most = self._engine.scores(text)
        may = passed.mask(len(values), is_open) if passed else is_open
        voted = self._voted(text, may)
        has_scores = most > 0 or bool(voted) or bool(passed and passed.sure)
        if self._min_relevance >= _EXACT or not has_scores:
            return ScoredTools(text, asked, values, 0.0, 0.0)
        most = most if most > 0 else 1.0
        if may is not None:
            values = closed(values, may)
        floor = max(-math.log1p(-self._min_relevance) * most, _INCIDENTAL * largest(values))
        for slot, vote in voted:
            values[slot] += vote * most
        if not passed:
            return ScoredTools(text, asked, values, most, floor, voted)
        lift(values, passed.sure, max(floor, _LEAST * most))
        return ScoredTools(text, asked, values, most, floor, voted, passed.sure)

    def _voted(self, text: str, may: Sequence[bool] | None) -> list[tuple[int, float]]:
        """What was voted for, by slot: tools of this index that may be found."""
        if self._votes is None:
            return []
        slots = self._engine.slots

        @cache
        def slot_of(name: str) -> int | None:
            for slot in slots.named(name):
                tool = slots.tools[slot]
                if tool is not None and tool.name == name and (may is None or may[slot]):
                    return slot
            return None

        given = self._votes(text, lambda name: slot_of(name) is not None)
        voted = ((slot_of(name), vote) for name, vote in given.items())
        return [(slot, vote) for slot, vote in voted if slot is not None]

    def _named(self, text: str, is_open: Sequence[bool] | None) -> list[int]:
        slots = self._engine.slots.named(text)
        return [slot for slot in slots if is_open is None or is_open[slot]]

    def _selected(self, query: str, is_open: Sequence[bool] | None) -> _Found | None:
        """What `select:` lists, or None where the query lists no tool."""
        names = selected_names(query)
        named = {name: self._named(name, is_open) for name in names}
        slots = list(dict.fromkeys(chain.from_iterable(named.values())))
        if not slots:
            return None
        unknown = [name for name in names if not named[name]]
        return _Found(slots, [], [(slot, _EXACT) for slot in slots], unknown, slots)

    def _passing(self, query: str, is_open: Sequence[bool] | None) -> FilterResult | None:
        """What the operators of the query let through, or None where it is plain text."""
        group = parsed(query) if self._has_operators else None
        if group is None:
            return None
        if self._lexicon is None:
            self._lexicon = lexicon_of(self._engine.slots)
        passed = passing(group, self._engine.slots, self._lexicon, is_open)
        return None if group.is_only_phrases and not passed.sure else passed

    def _boosted(
        self, query: str, hits: Sequence[tuple[int, float]], limit: int
    ) -> list[tuple[int, float]]:
        """The tools within the limit, and those equal to the last, with boosted scores.

        Exact, and ends early: once the best have their boosts, a tool whose score
        cannot reach the last of them with any boost is not looked at.

        Args:
            query: What the boosts are for.
            hits: DocumentIds and scores, best first.
            limit: How many tools are asked for.
        """
        found: list[tuple[int, float]] = []
        last, place, size = 0.0, 0, limit
        while limit and place < len(hits) and hits[place][1] * self._engine.most_boost >= last:
            batch = hits[place : place + size]
            boosts = self._engine.boosts(query, [slot for slot, _ in batch])
            found += [
                (slot, score * boost) for (slot, score), boost in zip(batch, boosts, strict=True)
            ]
            last = last_of_best([score for _, score in found], limit)
            place, size = place + size, 2 * size
        return [(slot, score) for slot, score in found if score >= last]

    def _ordered(
        self, best: Mapping[int, float], places: Mapping[int, int]
    ) -> list[tuple[float, int, str, Tool]]:
        """Tools with their scores below 0, best first: those with a place, then by name."""
        tools = self._engine.slots.tools.picked(best)
        last = len(places)
        return sorted(
            (-score, places.get(slot, last), tool.name, tool)
            for (slot, score), tool in zip(best.items(), tools, strict=True)
            if tool is not None
        )


def _open_among(is_open: Sequence[bool] | None) -> Callable[[Iterable[int]], bool]:
    """Whether one of some slots may be found by the caller."""
    return lambda slots: is_open is None or any(is_open[slot] for slot in slots)


def _open_slots(slots: DocumentIds, allowed: Callable[[str], bool] | None) -> list[bool] | None:
    if allowed is None:
        return None
    return [tool is not None and bool(allowed(tool.name)) for tool in slots.tools]


def _united(found: Sequence[_Found]) -> int:
    """How many tools at least one of the queries finds."""
    if len(found) == 1:
        return len(found[0].slots) + len(found[0].beside)
    return len({int(slot) for each in found for slot in (*each.slots, *each.beside)})


def _match(ranked: tuple[float, int, str, Tool]) -> SearchMatch:
    score, _, name, tool = ranked
    return SearchMatch(name=name, description=tool.description, server=tool.server, score=-score)


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced: a result goes into UTF-8 requests."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
