"""What every engine shares: names, operators, floors, cuts, counts, several queries at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tool_search.catalog.tool import Tool
from tool_search.search.index.filter import FilterResult, Lexicon, apply_filter, build_lexicon
from tool_search.search.index.protocol import SearchMatch, SearchResult
from tool_search.search.index.scores import (
    ScoredTools,
    cutoff_score,
    hits_above,
    masked,
    max_score,
    raise_to,
    relevance,
)
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query_language import parse_query, selected_names

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
_MIN_SHARE = 1e-6
# A definition of two lines answers this many words of a long query, not all of them.
_MAX_ANSWERED = 4
# Of eight public sets, a hit so far below the best one was relevant in 1 of 1,000 queries.
_MIN_SHARE_OF_BEST = 0.25


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

    doc_ids: DocumentIds
    max_boost: float

    def scores(self, query: str) -> Scores:
        """How well each tool fits, but for the boosts."""
        ...

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
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

    doc_ids: Collection[int] | NDArray[np.intp]
    named_only: list[int]
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
        return len(self._engine.doc_ids)

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """The tools that fit the query; see `ToolSearchIndex.search`."""
        queries = [
            _replace_surrogates(text) for text in ([query] if isinstance(query, str) else query)
        ]
        doc_ids = self._engine.doc_ids
        is_allowed = _allowed_mask(doc_ids, allowed)
        found = [self._find(text, max(limit, 0), is_allowed) for text in queries[:_MAX_QUERIES]]
        best: dict[int, float] = {}
        for doc_id, score in chain.from_iterable(each.top for each in found):
            best[doc_id] = max(score, best.get(doc_id, 0.0))
        listed = dict.fromkeys(chain.from_iterable(each.selected for each in found))
        places = {doc_id: place for place, doc_id in enumerate(listed)}
        return SearchResult(
            query=" | ".join(queries),
            matches=tuple(map(_match, self._order(best, places)[: max(limit, 0)])),
            total_found=_count_found(found),
            total_tools=len(doc_ids) if is_allowed is None else sum(is_allowed),
            unmatched=tuple(dict.fromkeys(chain.from_iterable(each.unmatched for each in found)))[
                :_MAX_UNMATCHED
            ],
        )

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RankedIndex:
        """An index with other tools; see `ToolSearchIndex.updated`."""
        return self._with_engine(self._engine.updated(added=added, removed=removed), self._votes)

    def with_votes(self, votes: Votes) -> RankedIndex:
        """The same index with votes added to the scores of words.

        What was found without them is found with them; a tool that a query names, or
        that its operators leave out, is neither raised nor lowered. An engine whose
        queries are no words takes none.
        """
        return self._with_engine(self._engine, votes)

    def _with_engine(self, engine: Scorer, votes: Votes | None) -> RankedIndex:
        return RankedIndex(
            engine,
            min_relevance=self._min_relevance,
            has_operators=self._has_operators,
            votes=votes,
        )

    def explain(
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
        from tool_search.search.index.explanation import explain_hits  # noqa: PLC0415 - few ask why

        query, doc_ids = _replace_surrogates(query), self._engine.doc_ids
        is_allowed = _allowed_mask(doc_ids, allowed)
        named = self._find_named(query.strip(), is_allowed)
        selected = None if named else self._find_selected(query, is_allowed)
        found = explain_hits(
            self._engine,
            self._score_tools(query, named, is_allowed),
            [doc_id for name in names for doc_id in doc_ids.named(name)],
            named=selected.selected if selected else named,
        )
        return tuple(found)

    def _find(self, query: str, limit: int, is_allowed: Sequence[bool] | None) -> _Found:
        """Every tool that the query finds, and the best of them with their relevance."""
        named = self._find_named(query.strip(), is_allowed)
        if not named:
            selected = self._find_selected(query, is_allowed)
            if selected:
                return selected
        scored = self._score_tools(query, named, is_allowed)
        exact = [(doc_id, _EXACT) for doc_id in named]
        unmatched = self._engine.unmatched(scored.reported_text, _any_allowed(is_allowed))
        if not scored.attainable:
            return _Found([], named, exact, unmatched)
        values, floor = scored.values, scored.floor
        doc_ids, rivals = hits_above(values, floor, limit, self._engine.max_boost)
        top = [
            (doc_id, relevance(score / scored.attainable))
            for doc_id, score in self._boost(scored.text, rivals, limit)
            if doc_id not in named
        ]
        named_only = [doc_id for doc_id in named if not 0 < values[doc_id] >= floor]
        return _Found(doc_ids, named_only, [*top, *exact], unmatched)

    def _score_tools(
        self, query: str, named: Sequence[int], is_allowed: Sequence[bool] | None
    ) -> ScoredTools:
        """What each tool is worth, but for the boosts."""
        passed = None if named else self._apply_filter(query, is_allowed)
        text, reported_text = (passed.text, passed.reported_text) if passed else (query, query)
        values, attainable = self._engine.scores(text)
        may = passed.mask(len(values), is_allowed) if passed else is_allowed
        voted = self._collect_votes(text, may)
        has_scores = attainable > 0 or bool(voted) or bool(passed and passed.always_hits)
        if self._min_relevance >= _EXACT or not has_scores:
            return ScoredTools(text, reported_text, values, 0.0, 0.0)
        attainable = attainable if attainable > 0 else 1.0
        if may is not None:
            values = masked(values, may)
        floor = max(
            -math.log1p(-self._min_relevance) * attainable, _MIN_SHARE_OF_BEST * max_score(values)
        )
        for doc_id, vote in voted:
            values[doc_id] += vote * attainable
        if not passed:
            return ScoredTools(text, reported_text, values, attainable, floor, voted)
        raise_to(values, passed.always_hits, max(floor, _MIN_SHARE * attainable))
        return ScoredTools(
            text, reported_text, values, attainable, floor, voted, passed.always_hits
        )

    def _collect_votes(self, text: str, may: Sequence[bool] | None) -> list[tuple[int, float]]:
        """What was voted for, by slot: tools of this index that may be found."""
        if self._votes is None:
            return []
        doc_ids = self._engine.doc_ids

        @cache
        def doc_id_of(name: str) -> int | None:
            for doc_id in doc_ids.named(name):
                tool = doc_ids.tools[doc_id]
                if tool is not None and tool.name == name and (may is None or may[doc_id]):
                    return doc_id
            return None

        given = self._votes(text, lambda name: doc_id_of(name) is not None)
        voted = ((doc_id_of(name), vote) for name, vote in given.items())
        return [(doc_id, vote) for doc_id, vote in voted if doc_id is not None]

    def _find_named(self, text: str, is_allowed: Sequence[bool] | None) -> list[int]:
        doc_ids = self._engine.doc_ids.named(text)
        return [doc_id for doc_id in doc_ids if is_allowed is None or is_allowed[doc_id]]

    def _find_selected(self, query: str, is_allowed: Sequence[bool] | None) -> _Found | None:
        """What `select:` lists, or None where the query lists no tool."""
        names = selected_names(query)
        named = {name: self._find_named(name, is_allowed) for name in names}
        doc_ids = list(dict.fromkeys(chain.from_iterable(named.values())))
        if not doc_ids:
            return None
        unknown = [name for name in names if not named[name]]
        return _Found(doc_ids, [], [(doc_id, _EXACT) for doc_id in doc_ids], unknown, doc_ids)

    def _apply_filter(self, query: str, is_allowed: Sequence[bool] | None) -> FilterResult | None:
        """What the operators of the query let through, or None where it is plain text."""
        group = parse_query(query) if self._has_operators else None
        if group is None:
            return None
        if self._lexicon is None:
            self._lexicon = build_lexicon(self._engine.doc_ids)
        passed = apply_filter(group, self._engine.doc_ids, self._lexicon, is_allowed)
        return None if group.is_only_phrases and not passed.always_hits else passed

    def _boost(
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
        while limit and place < len(hits) and hits[place][1] * self._engine.max_boost >= last:
            batch = hits[place : place + size]
            boosts = self._engine.boosts(query, [doc_id for doc_id, _ in batch])
            found += [
                (doc_id, score * boost)
                for (doc_id, score), boost in zip(batch, boosts, strict=True)
            ]
            last = cutoff_score([score for _, score in found], limit)
            place, size = place + size, 2 * size
        return [(doc_id, score) for doc_id, score in found if score >= last]

    def _order(
        self, best: Mapping[int, float], places: Mapping[int, int]
    ) -> list[tuple[float, int, str, Tool]]:
        """Tools with their scores below 0, best first: those with a place, then by name."""
        tools = self._engine.doc_ids.tools.pick(best)
        last = len(places)
        return sorted(
            (-score, places.get(doc_id, last), tool.name, tool)
            for (doc_id, score), tool in zip(best.items(), tools, strict=True)
            if tool is not None
        )


def _any_allowed(is_allowed: Sequence[bool] | None) -> Callable[[Iterable[int]], bool]:
    """Whether one of some slots may be found by the caller."""
    return lambda doc_ids: is_allowed is None or any(is_allowed[doc_id] for doc_id in doc_ids)


def _allowed_mask(doc_ids: DocumentIds, allowed: Callable[[str], bool] | None) -> list[bool] | None:
    if allowed is None:
        return None
    return [tool is not None and bool(allowed(tool.name)) for tool in doc_ids.tools]


def _count_found(found: Sequence[_Found]) -> int:
    """How many tools at least one of the queries finds."""
    if len(found) == 1:
        return len(found[0].doc_ids) + len(found[0].named_only)
    return len({int(doc_id) for each in found for doc_id in (*each.doc_ids, *each.named_only)})


def _match(ranked: tuple[float, int, str, Tool]) -> SearchMatch:
    score, _, name, tool = ranked
    return SearchMatch(name=name, description=tool.description, server=tool.server, score=-score)


def _replace_surrogates(text: str) -> str:
    """The text with lone surrogates replaced: a result goes into UTF-8 requests."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
