"""The words of a query and its meaning, in one ranking.

What the default engine finds is weighed by how many of the query's words any tool has:
where most of them are unknown, a word that is found says little, and meaning decides.
So a Chinese query finds English tools, and a plain one is ranked by its words first.

Source of reciprocal rank fusion: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion
outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.catalog import Tool
from tool_search.search.bm25 import Bm25Engine
from tool_search.search.query import query_terms
from tool_search.search.query_filter import Lexicon
from tool_search.search.ranked import Scores
from tool_search.search.semantic import SemanticEngine
from tool_search.search.slots import Slots

__all__ = ["Fusion", "HybridEngine"]

FusionName = Literal["coverage", "weights", "rrf"]
# Boosts are worked out for so many, the best by their words; those behind keep their order.
_MOST_BOOSTED = 100


class Fusion(NamedTuple):
    """How the two rankings become one; see `HybridSettings`."""

    name: FusionName = "coverage"
    lexical_weight: float = 1.0
    semantic_weight: float = 0.3
    rrf_k: int = 60


class HybridEngine:
    """Ranks by words and meaning; see the module.

    Args:
        lexical: The ranking by words.
        semantic: The ranking by meaning of the same tools, updated alike.
        fusion: How they become one.
    """

    __slots__ = ("_fusion", "_last", "_lexical", "_semantic", "most_boost", "slots")

    def __init__(
        self, lexical: Bm25Engine, semantic: SemanticEngine, *, fusion: Fusion | None = None
    ) -> None:
        self._lexical = lexical
        self._semantic = semantic
        self._fusion = fusion or Fusion()
        self._last: tuple[str, _Parts] | None = None
        self.slots: Slots = lexical.slots
        self.most_boost = 1.0 if self._fusion.name == "rrf" else lexical.most_boost

    @property
    def lexicon(self) -> Lexicon:
        """Which tools have which term."""
        return self._lexical.lexicon

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> HybridEngine:
        """The same ranking over changed tools, sharing what did not change.

        Raises:
            SearchError: The embedder failed.
        """
        return HybridEngine(
            self._lexical.updated(added=added, removed=removed),
            self._semantic.updated(added=added, removed=removed),
            fusion=self._fusion,
        )

    def scores(self, query: str) -> Scores:
        """How well each tool fits; see `Engine.scores`.

        Raises:
            SearchError: The embedder failed.
        """
        if self._fusion.name == "rrf":
            return self._fused_ranks(query)
        parts = self._parts(query)
        return Scores(parts.lexical + parts.semantic, parts.attainable)

    def boosts(self, query: str, slots: Sequence[int]) -> Sequence[float]:
        """The boosts of the ranking by words, as far as words make up a tool's score."""
        if self._fusion.name == "rrf":
            return [1.0] * len(slots)
        parts = self._parts(query)
        lexical, semantic = parts.lexical[slots].tolist(), parts.semantic[slots].tolist()
        return [
            (by_word * boost + by_meaning) / (by_word + by_meaning or 1.0)
            for by_word, by_meaning, boost in zip(
                lexical, semantic, self._lexical.boosts(query, slots), strict=True
            )
        ]

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The query's words that no tool has."""
        return self._lexical.unmatched(query, has_tool)

    def _parts(self, query: str) -> _Parts:
        """What words and meaning are worth for each tool; kept until the next query."""
        last = self._last
        if last is not None and last[0] == query:
            return last[1]
        by_word, by_meaning = self._lexical.scores(query), self._semantic.scores(query)
        share = self._explained(query) if self._fusion.name == "coverage" else 1.0
        word_weight = share * self._fusion.lexical_weight if by_word.attainable > 0 else 0.0
        meaning_weight = self._fusion.semantic_weight if by_meaning.attainable > 0 else 0.0
        parts = _Parts(
            lexical=_share(by_word, word_weight),
            semantic=_share(by_meaning, meaning_weight),
            attainable=word_weight + meaning_weight,
        )
        self._last = (query, parts)
        return parts

    def _explained(self, query: str) -> float:
        """Which share of the query's words any tool has, from 0 to 1."""
        known = self.lexicon.postings.get
        terms = query_terms(query, self.lexicon.segmenter)
        asked = [t for t in terms.weights if t not in terms.compounds or known(t)]
        return sum(known(term) is not None for term in asked) / max(len(asked), 1)

    def _fused_ranks(self, query: str) -> Scores:
        by_word, by_meaning = self._lexical.scores(query), self._semantic.scores(query)
        if by_word.attainable <= 0 and by_meaning.attainable <= 0:
            return Scores(np.zeros(len(self.slots.tools)), 0.0)
        words = np.array(by_word.values, np.float64)
        best = np.argsort(-words, kind="stable")[:_MOST_BOOSTED]
        best = best[words[best] > 0]
        words[best] *= self._lexical.boosts(query, best.tolist())
        k = self._fusion.rrf_k
        fused = self._reciprocal(words, k) + self._reciprocal(np.asarray(by_meaning.values), k)
        return Scores(fused, 2.0 / (k + 1))

    def _reciprocal(self, values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        """1 / (k + rank) of each hit; equal ones share the better rank."""
        hits = np.sort(values[values > 0])
        ranks = 1 + len(hits) - np.searchsorted(hits, values, side="right")
        return np.where(values > 0, 1.0 / (k + ranks), 0.0)


class _Parts(NamedTuple):
    """What each side of a ranking gives.

    Attributes:
        lexical: By slot, before boosts.
        semantic: By slot.
        attainable: What both together could reach.
    """

    lexical: NDArray[np.float64]
    semantic: NDArray[np.float64]
    attainable: float


def _share(scores: Scores, weight: float) -> NDArray[np.float64]:
    """The scores as shares of what could be reached, times the weight."""
    if scores.attainable <= 0:
        return np.zeros(len(scores.values))
    return np.asarray(scores.values, np.float64) * (weight / scores.attainable)
