"""The default engine: BM25F over the fields of a definition, no model, no dependency.

Each field's term frequency is divided by the field's length norm, the fields
are added with their weights, and only the sum is saturated.

Source: Robertson, Zaragoza, Taylor, "Simple BM25 Extension to Multiple Weighted
Fields", CIKM 2004; Robertson, Zaragoza, "The Probabilistic Relevance Framework:
BM25 and Beyond", 2009, sections 3.1 and 3.6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tool_search.catalog import Tool
from tool_search.search.documents import FieldName, field_texts
from tool_search.search.postings import Posting, Postings
from tool_search.search.query import query_terms
from tool_search.search.ranked import Scores, attainable
from tool_search.search.slots import Slots
from tool_search.search.tokenizer import Segmenter, pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Bm25Engine", "FieldWeight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWeight:
    """How a field counts.

    Attributes:
        weight: What one occurrence is worth.
        b: How much a long field is held against its terms, from 0 to 1.
        typical_length: The length, in terms, at which `b` changes nothing.
    """

    weight: float
    b: float = 0.5
    typical_length: float


# The lengths are constants and not the catalog's averages, so that a tool's impacts
# depend on the tool alone: a catalog that changes keeps every posting it has.
FIELD_WEIGHTS: Mapping[FieldName, FieldWeight] = {
    "name": FieldWeight(weight=2.0, typical_length=3),
    "aliases": FieldWeight(weight=2.0, typical_length=3),
    "server": FieldWeight(weight=0.5, typical_length=1),
    "tags": FieldWeight(weight=1.0, typical_length=3),
    "description": FieldWeight(weight=1.0, typical_length=12),
    "parameters": FieldWeight(weight=0.5, typical_length=5),
    "parameter_texts": FieldWeight(weight=0.3, typical_length=20),
}

_K1 = 2.0
_LONGEST_FIELD = 20_000
_MOST_TERMS = 2_000
# As if this many more tools without the word stood in the catalog: rarity among
# three tools is no evidence, and a word in every tool must still be worth something.
_UNSEEN_TOOLS = 10.0
# A word that stands once in the name has this impact: more is not to be expected.
_FULL_IMPACT = 0.5
# Where numpy's start-up cost is worth it.
_MANY_TOOLS = 2_000


class Bm25Engine:
    """BM25F; see the module.

    Args:
        tools: What is searched, in any order.
        segmenter: Cuts Chinese; without one it becomes characters and bigrams.
    """

    __slots__ = ("_postings", "_segmenter", "slots")

    def __init__(self, tools: Iterable[Tool] = (), *, segmenter: Segmenter | None = None) -> None:
        self._segmenter = segmenter
        self.slots = Slots(tools)
        self._postings = Postings.built(
            (slot, self._impacts(tool)) for slot, tool in self.slots.taken()
        )

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Bm25Engine:
        """The same ranking over changed tools, sharing what did not change."""
        slots, left, entered = self.slots.changed(added=added, removed=removed)
        engine = Bm25Engine(segmenter=self._segmenter)
        engine.slots = slots
        engine._postings = self._postings.changed(
            removed=[(slot, self._impacts(tool)) for slot, tool in left],
            added=[(slot, self._impacts(tool)) for slot, tool in entered],
        )
        return engine

    def scores(self, query: str) -> Scores:
        """How well each tool fits; see `Engine.scores`."""
        terms = query_terms(query, self._segmenter)
        weighted: list[tuple[Posting, float]] = []
        values: list[float] = []
        for term, weight in terms.weights.items():
            posting = self._postings.get(term)
            value = weight * self._idf(len(posting.slots) if posting else 0)
            if posting:
                weighted.append((posting, value))
            if posting or term not in terms.compounds:
                values.append(value * _FULL_IMPACT)
        size = len(self.slots.tools)
        score = _scored_by_lists if size < _MANY_TOOLS else _scored_by_numpy
        return Scores(score(weighted, size), attainable(values))

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The query's words that no tool has."""

        def known(term: str) -> bool:
            posting = self._postings.get(term)
            return posting is not None and has_tool(posting.slots)

        return query_terms(query, self._segmenter).unmatched(known)

    def _idf(self, having: int) -> float:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), with the unseen tools in N.

        Source: Lucene's BM25Similarity, the form that is never negative.
        """
        without = len(self.slots) + _UNSEEN_TOOLS - having
        return math.log(1.0 + (without + 0.5) / (having + 0.5))

    def _impacts(self, tool: Tool) -> dict[str, float]:
        """What each term of the tool is worth: tf / (tf + k1), below 1."""
        frequencies: dict[str, float] = defaultdict(float)
        for field, texts in field_texts(tool).items():
            for term, frequency in self._frequencies(field, texts).items():
                frequencies[term] += frequency
        return {term: value / (value + _K1) for term, value in frequencies.items()}

    def _frequencies(self, field: FieldName, texts: Sequence[str]) -> dict[str, float]:
        how = FIELD_WEIGHTS[field]
        counts: dict[str, int] = defaultdict(int)
        length = 0
        budget = _LONGEST_FIELD
        for text in texts:
            if budget <= 0:
                break
            for piece in pieces(text, longest=budget, segmenter=self._segmenter):
                if piece.is_function and field != "name":
                    continue
                length += len(piece.words)
                for term in (*piece.words, *piece.compounds):
                    counts[term] += 1
            budget -= len(text)
        norm = 1.0 - how.b + how.b * length / how.typical_length
        kept = list(counts.items())[:_MOST_TERMS]
        return {term: how.weight * count / norm for term, count in kept}


def _scored_by_lists(scored: list[tuple[Posting, float]], size: int) -> list[float]:
    scores = [0.0] * size
    for posting, value in scored:
        for slot, impact in zip(posting.slots, posting.impacts, strict=True):
            scores[slot] += impact * value
    return scores


def _scored_by_numpy(scored: list[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    scores = np.zeros(size)
    for posting, value in scored:
        slots = np.frombuffer(posting.slots, dtype=np.uint32)
        # In double precision, so that both ways give the same sums.
        scores[slots] += np.frombuffer(posting.impacts, dtype=np.float32).astype(float) * value
    return scores
