"""The index that every engine shares.

It adds exact names, operators, floors, cuts, counts and several queries at once to an
engine that only has scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tool_search.core.catalog.tool import Tool
from tool_search.core.services import SearchMatch, SearchResult, Votes
from tool_search.search.index.filter import FilterResult, Lexicon, apply_filter, build_lexicon
from tool_search.search.index.scores import (
    ScoredTools,
    cutoff_score,
    drop_below,
    drop_far_below_best,
    hits_above,
    masked,
    max_score,
    relevance,
)
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query_language import parse_query, selected_names
from tool_search.search.text.scripts import ToolScripts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.search.index.explanation import Explanation
    from tool_search.search.index.scores import Values

__all__ = [
    "Meaning",
    "MovesMeaning",
    "RankedIndex",
    "Scorer",
    "Scores",
    "Votes",
    "WeakVote",
    "attainable",
]

_MAX_QUERIES = 16
_MAX_UNMATCHED = 12
_MAX_NEAR = 6
_EXACT = 1.0
# A share of the attainable score: a tool that operators let through is a hit without a score.
_MIN_SHARE = 1e-6
# A definition of two lines answers this many words of a long query, not all of them.
_MAX_ANSWERED = 4
# In eight public sets, a hit so far below the best one was relevant in 1 of 1,000 queries.
_MIN_SHARE_OF_BEST = 0.25
# The score, as a share of the best by words, that weak votes can lift a tool to.
_MAX_WEAK = 0.9


class WeakVote(float):
    """A vote that cannot lift a tool above the best match by words.

    What one user did must not decide what all others find first.
    """

    __slots__ = ()


class Scores(NamedTuple):
    """The scores that an engine gives for a query.

    Attributes:
        values: One score for each document id; 0 is not a hit. The caller may change them.
        attainable: The score that the query could reach; see `attainable`.
        scripts: The scripts of the tools, if there are several. A hit may not be far below
            the best of its own script.
    """

    values: Values
    attainable: float
    scripts: ToolScripts | None = None


def attainable(word_values: Iterable[float]) -> float:
    """Return the score of a tool that answers the query fully.

    Args:
        word_values: The highest score that each word of the query can add; words that the
            catalog does not know count as its rarest.
    """
    return math.fsum(sorted(word_values, reverse=True)[:_MAX_ANSWERED])


class Scorer(Protocol):
    """A ranking, without anything that all engines share.

    An engine is immutable and deterministic.

    Attributes:
        doc_ids: The tools by document id.
        max_boost: The largest value that `boosts` returns.
    """

    doc_ids: DocumentIds
    max_boost: float

    def scores(self, query: str) -> Scores:
        """Score each tool for a query, before boosts."""
        ...

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return factors from 1 to `max_boost` for the scores of these tools, in order.

        Called only for tools that can still be among the best.
        """
        ...

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has, as written, in order.

        Args:
            query: The query as the caller wrote it.
            has_tool: Returns True if the caller may find one of these documents.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Scorer:
        """Return the same ranking over changed tools; see `ToolSearchIndex.updated`."""
        ...


@runtime_checkable
class _KeepsLexicon(Protocol):
    """An engine that knows the tools of each term."""

    @property
    def lexicon(self) -> Lexicon: ...


@runtime_checkable
class _Prepares(Protocol):
    """An engine that embeds queries, several at once faster than each by itself."""

    def prepare(self, queries: Sequence[str]) -> None: ...


@runtime_checkable
class _KnowsNearWords(Protocol):
    """An engine that knows the words of the tools' texts."""

    def near_word(self, word: str, may_find: Callable[[int], bool]) -> str | None: ...


class MeaningMap(Protocol):
    """A learned change of similarities; see `LearnedMap`."""

    def moved(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vector whose similarity to a tool is the change."""
        ...


class Meaning(Protocol):
    """Votes that have a learned map of meaning; see `MeaningVotes`."""

    def learned_map(
        self,
        query: str,
        vector: NDArray[np.float32],
        *,
        embedder: str,
        catalog: Callable[[], tuple[Sequence[Tool], NDArray[np.float32]]],
    ) -> MeaningMap | None:
        """Return the map for a search; None if there is none."""
        ...


@runtime_checkable
class MovesMeaning(Protocol):
    """An engine with vectors, which a learned map moves."""

    def moved(self, query: str, meaning: Meaning) -> NDArray[np.float64] | None:
        """Return what the map adds to each score, by document id; None if there is no map."""
        ...


class _Found(NamedTuple):
    """The result of one query.

    Attributes:
        doc_ids: The hits.
        named_only: Tools that the query names and that are not hits.
        top: The best of both, with their relevance.
        unmatched: Words that no tool has.
        selected: Tools that `select:` lists, in its order.
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
        min_relevance: The lowest relevance of a hit, from 0 to 1.
        has_operators: True if queries are in the query language. Otherwise the engine
            gets them unchanged, except for `select:`.
        votes: See `with_votes`.
    """

    __slots__ = ("_engine", "_has_operators", "_lexicon", "_min_relevance", "_votes")

    has_stable_order = True

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

    @property
    def has_comparable_scores(self) -> bool:
        """True if scores are shares of what a query could reach, and far hits may be cut.

        A floor of 0 says that no hit is dropped.
        """
        return self._min_relevance > 0

    @property
    def compares_meanings(self) -> bool:
        """True if a query finds tools that share no word with it, in another language too."""
        return isinstance(self._engine, _Prepares)

    @property
    def warning(self) -> str:
        """The reason if a part of the ranking does not work at present; empty if all do."""
        return str(getattr(self._engine, "warning", ""))

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the tools that fit the query; see `ToolSearchIndex.search`."""
        queries = [
            _replace_surrogates(text) for text in ([query] if isinstance(query, str) else query)
        ]
        doc_ids = self._engine.doc_ids
        is_allowed = _allowed_mask(doc_ids, allowed)
        if len(queries) > 1 and isinstance(self._engine, _Prepares):
            self._engine.prepare(queries[:_MAX_QUERIES])
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

    def near_words(
        self, words: Sequence[str], *, allowed: Callable[[str], bool] | None = None
    ) -> tuple[str, ...]:
        """Return the words of tools' texts that some of these words are typing errors of.

        Args:
            words: Words that no tool has.
            allowed: Returns True for the name of a tool that may be found; words of other
                tools are not offered.
        """
        engine, tools = self._engine, self._engine.doc_ids.tools
        if not isinstance(engine, _KnowsNearWords):
            return ()

        def may_find(doc_id: int) -> bool:
            tool = tools[doc_id]
            return tool is not None and (allowed is None or bool(allowed(tool.name)))

        asked = [word for word in words if word.isalpha() and word.islower()]
        found = (engine.near_word(word, may_find) for word in asked[:_MAX_NEAR])
        return tuple(dict.fromkeys(filter(None, found)))

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RankedIndex:
        """Return an index with other tools; see `ToolSearchIndex.updated`."""
        return self._with_engine(self._engine.updated(added=added, removed=removed), self._votes)

    def with_votes(self, votes: Votes) -> RankedIndex:
        """Return the same index with votes added to the scores of words.

        Everything that is found without votes is still found. Votes neither raise nor lower a
        tool that a query names, or that its operators exclude. An engine with a syntax of its
        own ignores them.
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
        """Return the reasons for the scores of tools that one query found.

        In the order of `names`; unknown names are left out.

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
        """Return all tools that a query finds, and the best with their relevance."""
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
        passed = None if named else self._apply_filter(query, is_allowed)
        text, reported_text = (passed.text, passed.reported_text) if passed else (query, query)
        values, attainable, scripts = self._engine.scores(text)
        may = passed.mask(len(values), is_allowed) if passed else is_allowed
        # No map makes sense of what fits no tool at all.
        moves = self._moves(text) if attainable > 0 and max_score(values) > 0 else None
        voted = self._collect_votes(text, may)
        has_scores = attainable > 0 or bool(voted) or bool(passed and passed.always_hits)
        if self._min_relevance >= _EXACT or not has_scores:
            return ScoredTools(text, reported_text, values, 0.0, 0.0)
        attainable = attainable if attainable > 0 else 1.0
        if may is not None:
            values = masked(values, may)
        floor = -math.log1p(-self._min_relevance) * attainable
        if scripts is not None:
            kept = {doc_id: values[doc_id] for doc_id in (passed.always_hits if passed else ())}
            values = drop_far_below_best(values, scripts, _MIN_SHARE_OF_BEST)
            for doc_id, score in kept.items():
                values[doc_id] = score
        else:
            floor = max(floor, _MIN_SHARE_OF_BEST * max_score(values))
        if moves is not None:
            values, moves = _move(values, moves, may, attainable, floor)
        voted = _add_votes(values, voted, attainable, floor)
        if not passed:
            return ScoredTools(text, reported_text, values, attainable, floor, voted, moves=moves)
        # What operators ask for keeps its own score, so that no score depends on the floor.
        asked = {doc_id: values[doc_id] for doc_id in passed.always_hits}
        values = drop_below(values, floor)
        for doc_id, score in asked.items():
            values[doc_id] = max(score, _MIN_SHARE * attainable)
        return ScoredTools(
            text, reported_text, values, attainable, 0.0, voted, passed.always_hits, moves
        )

    def _moves(self, text: str) -> NDArray[np.float64] | None:
        """Return what a learned map adds to the scores, as shares of the attainable one."""
        if self._votes is None or not hasattr(self._votes, "learned_map"):
            return None
        meaning: Meaning = self._votes
        return self._engine.moved(text, meaning) if isinstance(self._engine, MovesMeaning) else None

    def _collect_votes(self, text: str, may: Sequence[bool] | None) -> list[tuple[int, float]]:
        """Return votes by document id, for tools of this index that may be found."""
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

        def find(name: str) -> Tool | None:
            doc_id = doc_id_of(name)
            return None if doc_id is None else doc_ids.tools[doc_id]

        given = self._votes(text, find)
        voted = ((doc_id_of(name), vote) for name, vote in given.items())
        return [(doc_id, vote) for doc_id, vote in voted if doc_id is not None]

    def _find_named(self, text: str, is_allowed: Sequence[bool] | None) -> list[int]:
        doc_ids = self._engine.doc_ids.named(text)
        return [doc_id for doc_id in doc_ids if is_allowed is None or is_allowed[doc_id]]

    def _find_selected(self, query: str, is_allowed: Sequence[bool] | None) -> _Found | None:
        """Return the tools that `select:` lists, or None if the query lists none."""
        names = selected_names(query)
        named = {name: self._find_named(name, is_allowed) for name in names}
        doc_ids = list(dict.fromkeys(chain.from_iterable(named.values())))
        if not doc_ids:
            return None
        unknown = [name for name in names if not named[name]]
        return _Found(doc_ids, [], [(doc_id, _EXACT) for doc_id in doc_ids], unknown, doc_ids)

    def _apply_filter(self, query: str, is_allowed: Sequence[bool] | None) -> FilterResult | None:
        """Return the tools that operators let through, or None for plain text."""
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
        """Return the best tools, and ties with the last of them, with boosted scores.

        Exact, and ends early: a tool is not looked at if its score, with the largest boost,
        cannot reach the last of the best.

        Args:
            query: The text that the boosts are for.
            hits: Document ids and scores, highest score first.
            limit: The number of tools that the caller asked for.
        """
        found: list[tuple[int, float]] = []
        last, place, size, most = 0.0, 0, limit, self._engine.max_boost
        while limit and place < len(hits) and hits[place][1] * most >= last:
            batch = [hit for hit in hits[place : place + size] if hit[1] * most >= last]
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
        """Sort tools with negated scores, best first.

        Ties: tools that `select:` lists in its order, then by name.
        """
        tools = self._engine.doc_ids.tools.pick(best)
        last = len(places)
        return sorted(
            (-score, places.get(doc_id, last), tool.name, tool)
            for (doc_id, score), tool in zip(best.items(), tools, strict=True)
            if tool is not None
        )


def _move(
    values: Values,
    moves: NDArray[np.float64],
    may: Sequence[bool] | None,
    attainable: float,
    floor: float,
) -> tuple[Values, NDArray[np.float64]]:
    """Return scores that a learned map has moved, and the shares that were added.

    What is a hit without the map is one with it.
    """
    import numpy as np  # noqa: PLC0415 - only engines with vectors have maps

    before = np.asarray(values, np.float64)
    least = np.where((before > 0) & (before >= floor), max(floor, _MIN_SHARE * attainable), 0.0)
    after = np.maximum(before + moves * attainable, least)
    if may is not None:
        after = after * np.asarray(may)
    return after, (after - before) / attainable


def _add_votes(
    values: Values, votes: Sequence[tuple[int, float]], attainable: float, floor: float
) -> list[tuple[int, float]]:
    """Add votes to the scores, in place; return the shares of `attainable` that were added."""
    if not votes:
        return []
    best = max_score(values)
    # If no tool fits by words, even a weak vote leads.
    most = _MAX_WEAK * best if best >= floor and best > 0 else math.inf
    added = []
    for doc_id, vote in votes:
        before = float(values[doc_id])
        after = before + vote * attainable
        if isinstance(vote, WeakVote) and after > most:
            # Below the best match by words, in the order of the votes.
            after = max(before, best - (best - most) * most / after)
        values[doc_id] = after
        added.append((doc_id, (after - before) / attainable))
    return added


def _any_allowed(is_allowed: Sequence[bool] | None) -> Callable[[Iterable[int]], bool]:
    """Return a function that is True if the caller may find one of some documents."""
    if is_allowed is None:
        # No document is left out, and no posting is empty.
        return lambda doc_ids: next(iter(doc_ids), None) is not None
    return lambda doc_ids: any(map(is_allowed.__getitem__, doc_ids))


def _allowed_mask(doc_ids: DocumentIds, allowed: Callable[[str], bool] | None) -> list[bool] | None:
    if allowed is None:
        return None
    return [tool is not None and bool(allowed(tool.name)) for tool in doc_ids.tools]


def _count_found(found: Sequence[_Found]) -> int:
    """Return the number of tools that at least one of the queries finds."""
    if len(found) == 1:
        return len(found[0].doc_ids) + len(found[0].named_only)
    return len({int(doc_id) for each in found for doc_id in (*each.doc_ids, *each.named_only)})


def _match(ranked: tuple[float, int, str, Tool]) -> SearchMatch:
    score, _, name, tool = ranked
    return SearchMatch(name=name, description=tool.description, server=tool.server, score=-score)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates: a result goes into requests in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
