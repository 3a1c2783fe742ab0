"""BM25 over weighted bags of words, the form of other systems' rankings.

Unlike the engines in a `RankedIndex`, this index adds nothing of its own to a ranking: no
operators, no exact names first, and a floor only if one is set. Its raw scores can be
read besides the relevance from 0 to 1.

Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009; `delta`: Lv, Zhai, "Lower-bounding term frequency normalization", CIKM 2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from tool_search.core.catalog.tool import Tool
from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.values.json import encodable
from tool_search.search.index.ranking import attainable
from tool_search.search.index.storage import (
    ChunkedArray,
    DocumentChange,
    DocumentIds,
    PersistentMap,
)

__all__ = ["Bm25Recipe", "RankedTool", "WeightedBm25Index"]

_MAX_QUERIES = 16
_MAX_UNMATCHED = 12
_MAX_QUERY_CHARS = 20_000
_MAX_UNMATCHED_CHARS = 100
_Score = TypeVar("_Score", float, tuple[float, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Recipe:
    """The constants and functions of one system's ranking.

    Attributes:
        tokens: Returns the words of a text, in order.
        weights: Returns the weight of each word of a tool, an integer above 0.
        order: Returns the sort key of a name among tools with equal scores.
        k1: The saturation of a repeated word.
        b: The influence of a tool's length, from 0 to 1.
        delta: The least score of a word, however long the tool.
    """

    tokens: Callable[[str], Sequence[str]]
    weights: Callable[[Tool], Mapping[str, int]]
    order: Callable[[str], Any]
    k1: float = 1.2
    b: float = 0.75
    delta: float = 0.0


class RankedTool(NamedTuple):
    """A tool and its raw score, which has no upper bound."""

    tool: Tool
    score: float


class WeightedBm25Index:
    """A `ToolSearchIndex` that ranks by a recipe.

    A tool's score is the sum over the query's different words that it has::

        count in query * idf * (tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean)) + delta)
        idf = ln(1 + (N - df + 0.5) / (df + 0.5))

    with the word's weight as tf, and the sum of a tool's weights as its length.

    Args:
        tools: The tools to search, in any order; names differ.
        recipe: The ranking.
        min_relevance: The lowest relevance of a hit, from 0 to 1.
    """

    __slots__ = (
        "_bags",
        "_doc_ids",
        "_length",
        "_lengths",
        "_min_relevance",
        "_postings",
        "_recipe",
    )

    has_stable_order = True

    def __init__(
        self, tools: Iterable[Tool], recipe: Bm25Recipe, *, min_relevance: float = 0.0
    ) -> None:
        self._recipe = recipe
        self._min_relevance = min_relevance
        self._doc_ids = DocumentIds(tools)
        bags = [recipe.weights(tool) for _, tool in self._doc_ids.taken()]
        postings: dict[str, dict[int, int]] = {}
        for doc_id, bag in enumerate(bags):
            for word, weight in bag.items():
                postings.setdefault(word, {})[doc_id] = weight
        self._bags = ChunkedArray(bags)
        self._postings = PersistentMap(postings)
        self._lengths = ChunkedArray(sum(bag.values()) for bag in bags)
        self._length = sum(self._lengths)

    def __len__(self) -> int:
        return len(self._doc_ids)

    def ranked(
        self,
        query: str,
        *,
        limit: int | None = None,
        allowed: Callable[[str], bool] | None = None,
    ) -> tuple[RankedTool, ...]:
        """Return the tools with a score above 0, best first, with their raw scores.

        Args:
            query: The query; its first 20,000 characters count.
            limit: Maximum number of tools; None for all.
            allowed: Returns True for the name of a tool that may be found.
        """
        scores = self._open_scores(self._counts(query), self._hidden_ids(allowed))
        best = _top(scores, len(scores) if limit is None else limit)
        return tuple(RankedTool(*entry) for entry in self._sort(best)[:limit])

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the tools that fit the query; see `ToolSearchIndex.search`."""
        queries = [encodable(text) for text in ([query] if isinstance(query, str) else query)]
        limit = max(limit, 0)
        hidden = self._hidden_ids(allowed)
        hits: set[int] = set()
        # With the raw score: the relevance of long queries rounds to equal numbers.
        best: dict[int, tuple[float, float]] = {}
        unmatched: dict[str, None] = {}
        for text in queries[:_MAX_QUERIES]:
            counts = self._counts(text)
            scores = self._open_scores(counts, hidden)
            max_score = attainable(self._max_scores(counts))
            floor = self._floor(max_score)
            if floor > 0:
                scores = {doc_id: score for doc_id, score in scores.items() if score >= floor}
            hits.update(scores)
            for doc_id, score in _top(scores, limit).items():
                best[doc_id] = max(
                    (-math.expm1(-score / max_score), score), best.get(doc_id, (0.0, 0.0))
                )
            unmatched.update(dict.fromkeys(self._unknown_words(counts, hidden)))
        return SearchResult(
            query=" | ".join(queries),
            matches=tuple(_match(tool, share) for tool, (share, _) in self._sort(best)[:limit]),
            total_found=len(hits),
            total_tools=len(self._doc_ids) - len(hidden),
            unmatched=tuple(unmatched)[:_MAX_UNMATCHED],
        )

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> WeightedBm25Index:
        """Return an index with other tools; see `ToolSearchIndex.updated`."""
        change = self._doc_ids.changed(added=added, removed=removed)
        index = WeightedBm25Index((), self._recipe, min_relevance=self._min_relevance)
        index._doc_ids = change.doc_ids
        entered = {doc_id: self._recipe.weights(tool) for doc_id, tool in change.entered}
        nothing: dict[int, Mapping[str, int]] = {doc_id: {} for doc_id, _ in change.left}
        index._bags = self._bags.changed({**nothing, **entered})
        index._postings = self._postings.changed(self._changed_postings(change, entered))
        lengths = dict.fromkeys(nothing, 0) | {s: sum(bag.values()) for s, bag in entered.items()}
        index._lengths = self._lengths.changed(lengths)
        left = sum(self._lengths[doc_id] for doc_id in nothing)
        index._length = self._length - left + sum(lengths.values())
        return index

    def _changed_postings(
        self, change: DocumentChange, entered: Mapping[int, Mapping[str, int]]
    ) -> dict[str, dict[int, int] | None]:
        touched: dict[str, dict[int, int]] = {}

        def postings(word: str) -> dict[int, int]:
            if word not in touched:
                touched[word] = dict(self._postings.get(word) or {})
            return touched[word]

        for doc_id, _ in change.left:
            for word in self._bags[doc_id]:
                del postings(word)[doc_id]
        for doc_id, bag in entered.items():
            for word, weight in bag.items():
                postings(word)[doc_id] = weight
        return {word: found or None for word, found in touched.items()}

    def _counts(self, query: str) -> dict[str, int]:
        """Count each word of the query, in the order of the query."""
        counts: dict[str, int] = {}
        for token in self._recipe.tokens(query[:_MAX_QUERY_CHARS]):
            counts[token] = counts.get(token, 0) + 1
        return counts

    def _scores(self, counts: Mapping[str, int]) -> dict[int, float]:
        """Return the raw scores above 0; words are added in the order of the query."""
        k1, b, delta = self._recipe.k1, self._recipe.b, self._recipe.delta
        mean = self._length / len(self._doc_ids) if self._length else 1.0
        lengths = list(self._lengths)
        norms: dict[int, float] = {}
        scores: dict[int, float] = {}
        for word, count in counts.items():
            postings = self._postings.get(word) or {}
            rarity = count * self._idf(len(postings))
            for doc_id, tf in postings.items():
                norm = norms.get(doc_id)
                if norm is None:
                    norm = norms[doc_id] = k1 * (1 - b + b * (lengths[doc_id] / mean))
                    scores[doc_id] = 0.0
                scores[doc_id] += rarity * (tf * (k1 + 1) / (tf + norm) + delta)
        return scores

    def _idf(self, having: int) -> float:
        return math.log(1 + (len(self._doc_ids) - having + 0.5) / (having + 0.5))

    def _max_scores(self, counts: Mapping[str, int]) -> list[float]:
        """Return the highest score of each word; an unknown word counts as the rarest."""
        factor = self._recipe.k1 + 1 + self._recipe.delta
        return [
            count * self._idf(len(self._postings.get(word) or ())) * factor
            for word, count in counts.items()
        ]

    def _floor(self, max_score: float) -> float:
        """Return the lowest raw score of a hit."""
        if self._min_relevance >= 1:
            return math.inf
        return -math.log1p(-self._min_relevance) * max_score

    def _hidden_ids(self, allowed: Callable[[str], bool] | None) -> frozenset[int]:
        """Return the documents that the caller may not find."""
        if allowed is None:
            return frozenset()
        return frozenset(doc_id for doc_id, tool in self._doc_ids.taken() if not allowed(tool.name))

    def _open_scores(self, counts: Mapping[str, int], hidden: Container[int]) -> dict[int, float]:
        scores = self._scores(counts)
        if not hidden:
            return scores
        return {doc_id: score for doc_id, score in scores.items() if doc_id not in hidden}

    def _sort(self, scores: Mapping[int, _Score]) -> list[tuple[Tool, _Score]]:
        tools, order = self._doc_ids.tools, self._recipe.order
        found = [
            (tool, score) for doc_id, score in scores.items() if (tool := tools[doc_id]) is not None
        ]
        found.sort(key=lambda entry: (order(entry[0].name), entry[0].name))
        found.sort(key=itemgetter(1), reverse=True)
        return found

    def _unknown_words(self, counts: Iterable[str], hidden: frozenset[int]) -> Iterable[str]:
        """Yield the words that no tool has that may be found."""
        for word in counts:
            having = self._postings.get(word) or {}
            if len(word) <= _MAX_UNMATCHED_CHARS and having.keys() <= hidden:
                yield word


def _top(scores: Mapping[int, float], limit: int) -> Mapping[int, float]:
    """Return the best scores, and ties with the last of them."""
    if limit <= 0:
        return {}
    if limit >= len(scores):
        return scores
    least = nlargest(limit, scores.values())[-1]
    return {doc_id: score for doc_id, score in scores.items() if score >= least}


def _match(tool: Tool, share: float) -> SearchMatch:
    return SearchMatch(
        name=tool.name, description=tool.description, server=tool.server, score=share
    )
