"""The words of a query and its meaning, in one ranking.

What the default engine finds is weighed by how many of the query's words any tool has:
where most of them are unknown, a word that is found says little, and meaning decides.
So a Chinese query finds English tools, and a plain one is ranked by its words first.
Chinese words that no tool has are also looked up in a dictionary, where one is installed.

Source of reciprocal rank fusion: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion
outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.catalog.tool import Tool
from tool_search.search.engines import bm25, semantic
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.engines.options import EngineOptions
from tool_search.search.engines.semantic import SemanticEngine
from tool_search.search.index.explanation import Reasons, ScorePart, SideName
from tool_search.search.index.filter import Lexicon
from tool_search.search.index.ranking import Scores
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query import query_terms
from tool_search.search.text.synonyms import in_english

__all__ = ["Fusion", "HybridEngine", "build"]

FusionName = Literal["coverage", "weights", "rrf"]
# Of meaning's weight: what a dictionary says of a word is less than the word itself.
_TRANSLATED = 0.8
# Boosts are worked out for so many, the best by their words; those behind keep their order.
_MAX_BOOSTED = 100


class Fusion(NamedTuple):
    """How the two rankings become one; see `HybridSettings`."""

    name: FusionName = "coverage"
    lexical_weight: float = 1.0
    semantic_weight: float = 0.3
    rrf_k: int = 60
    dictionary: bool = True


class HybridEngine:
    """Ranks by words and meaning; see the module.

    Args:
        lexical: The ranking by words.
        semantic: The ranking by meaning of the same tools, updated alike.
        fusion: How they become one.
    """

    __slots__ = ("_fusion", "_last", "_lexical", "_semantic", "doc_ids", "max_boost")

    def __init__(
        self, lexical: Bm25Engine, semantic: SemanticEngine, *, fusion: Fusion | None = None
    ) -> None:
        self._lexical = lexical
        self._semantic = semantic
        self._fusion = fusion or Fusion()
        self._last: tuple[str, _Parts] | None = None
        self.doc_ids: DocumentIds = lexical.doc_ids
        self.max_boost = 1.0 if self._fusion.name == "rrf" else lexical.max_boost

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
        """How well each tool fits; see `Scorer.scores`.

        Raises:
            SearchError: The embedder failed.
        """
        if not len(self.doc_ids):
            return Scores([0.0] * len(self.doc_ids.tools), 0.0)
        if self._fusion.name == "rrf":
            return self._fused_ranks(query)
        parts = self._parts(query)
        return Scores(parts.by_word + parts.by_translation + parts.by_meaning, parts.attainable)

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """The boosts of the ranking by words, as far as words make up a tool's score."""
        if self._fusion.name == "rrf":
            return [1.0] * len(doc_ids)
        parts = self._parts(query)
        listed = list(doc_ids)
        plain = parts.by_word[listed] + parts.by_translation[listed] + parts.by_meaning[listed]
        boosted = parts.by_meaning[listed].copy()
        for text, values in ((query, parts.by_word), (parts.translation, parts.by_translation)):
            if text:
                boosted += values[listed] * self._lexical.boosts(text, listed)
        return list(np.divide(boosted, plain, out=np.ones_like(plain), where=plain > 0).tolist())

    def reasons(self, query: str, doc_ids: Sequence[int]) -> list[Reasons]:
        """What each side gave these tools; see `Explains`.

        Raises:
            SearchError: The embedder failed.
        """
        if self._fusion.name == "rrf":
            return self._reasons_of_ranks(query, doc_ids)
        parts = self._parts(query)
        found = [Reasons(()) for _ in doc_ids]
        sides: tuple[tuple[SideName, str, Bm25Engine | SemanticEngine], ...] = (
            ("words", query, self._lexical),
            ("translation", parts.translation, self._lexical),
            ("meaning", query, self._semantic),
        )
        for (name, text, engine), weight in zip(sides, parts.weights, strict=True):
            if weight > 0:
                own = engine.reasons(text, doc_ids)
                parts_of = (each.as_part(name, weight / parts.attainable) for each in own)
                found = [each.joined(other) for each, other in zip(found, parts_of, strict=True)]
        return found

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The query's words that no tool has, not in a translation either."""
        words = self._lexical.unmatched(query, has_tool)
        if not self._fusion.dictionary:
            return words
        return [word for word in words if not self._has_translation(word, has_tool)]

    def _has_translation(self, word: str, has_tool: Callable[[Iterable[int]], bool]) -> bool:
        english = in_english(word).split()
        return len(self._lexical.unmatched(" ".join(english), has_tool)) < len(set(english))

    def _parts(self, query: str) -> _Parts:
        """What each side is worth for each tool; kept until the next query."""
        last = self._last
        if last is not None and last[0] == query:
            return last[1]
        by_word, by_meaning = self._lexical.scores(query), self._semantic.scores(query)
        fusion, share, translation = self._fusion, 1.0, ""
        if fusion.name == "coverage":
            share = self._known_share(query)
            translation = self._translation(query)
        by_translation = self._lexical.scores(translation)
        weights = (
            share * fusion.lexical_weight * (by_word.attainable > 0),
            (1.0 - share) * fusion.semantic_weight * _TRANSLATED * (by_translation.attainable > 0),
            fusion.semantic_weight * (by_meaning.attainable > 0),
        )
        parts = _Parts(
            by_word=_share(by_word, weights[0]),
            by_translation=_share(by_translation, weights[1]),
            by_meaning=_share(by_meaning, weights[2]),
            translation=translation,
            weights=weights,
            attainable=sum(weights),
        )
        self._last = (query, parts)
        return parts

    def _translation(self, query: str) -> str:
        """English words for the Chinese words that no tool has."""
        if not self._fusion.dictionary or query.isascii():
            return ""
        return in_english(" ".join(self._lexical.unmatched(query, _any_tool)))

    def _known_share(self, query: str) -> float:
        """Which share of the query's words any tool has, from 0 to 1."""
        known = self.lexicon.postings.get
        terms = query_terms(query, self.lexicon.segmenter)
        asked = [t for t in terms.weights if t not in terms.compounds or known(t)]
        return sum(known(term) is not None for term in asked) / max(len(asked), 1)

    def _reasons_of_ranks(self, query: str, doc_ids: Sequence[int]) -> list[Reasons]:
        by_word, by_meaning = self._by_rank(query)
        best = 1.0 / (self._fusion.rrf_k + 1)
        return [
            Reasons(
                (
                    ScorePart("words", 0.5, float(by_word[doc_id]) / best),
                    ScorePart("meaning", 0.5, float(by_meaning[doc_id]) / best),
                )
            )
            for doc_id in doc_ids
        ]

    def _fused_ranks(self, query: str) -> Scores:
        by_word, by_meaning = self._by_rank(query)
        is_any = by_word.any() or by_meaning.any()
        return Scores(by_word + by_meaning, 2.0 / (self._fusion.rrf_k + 1) if is_any else 0.0)

    def _by_rank(self, query: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What each tool has for its place by words, and by meaning."""
        by_word, by_meaning = self._lexical.scores(query), self._semantic.scores(query)
        words = np.array(by_word.values, np.float64)
        best = np.argsort(-words, kind="stable")[:_MAX_BOOSTED]
        best = best[words[best] > 0]
        words[best] *= self._lexical.boosts(query, best.tolist())
        k = self._fusion.rrf_k
        return self._reciprocal(words, k), self._reciprocal(np.asarray(by_meaning.values), k)

    def _reciprocal(self, values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        """1 / (k + rank) of each hit; equal ones share the better rank."""
        hits = np.sort(values[values > 0])
        ranks = 1 + len(hits) - np.searchsorted(hits, values, side="right")
        return np.where(values > 0, 1.0 / (k + ranks), 0.0)


class _Parts(NamedTuple):
    """What each side of a ranking gives.

    Attributes:
        by_word: By slot, before boosts.
        by_translation: By slot, before boosts.
        by_meaning: By slot.
        translation: English words for Chinese ones.
        weights: Of words, translation and meaning.
        attainable: What all together could reach.
    """

    by_word: NDArray[np.float64]
    by_translation: NDArray[np.float64]
    by_meaning: NDArray[np.float64]
    translation: str
    weights: tuple[float, float, float]
    attainable: float


def _any_tool(_doc_ids: Iterable[int]) -> bool:
    """That every tool counts: what is ranked does not depend on who asks."""
    return True


def _share(scores: Scores, weight: float) -> NDArray[np.float64]:
    """The scores as shares of what could be reached, times the weight."""
    if scores.attainable <= 0:
        return np.zeros(len(scores.values))
    return np.asarray(scores.values, np.float64) * (weight / scores.attainable)


def build(tools: Iterable[Tool], options: EngineOptions) -> HybridEngine:
    """Build the engine `hybrid`.

    Raises:
        SearchError: As for `bm25` and `semantic`.
    """
    fusion = Fusion()
    if options.settings is not None:
        chosen = options.settings.hybrid
        weights = chosen.lexical_weight, chosen.semantic_weight
        fusion = Fusion(chosen.fusion, *weights, chosen.rrf_k, chosen.dictionary)
    listed = tuple(tools)
    return HybridEngine(bm25.build(listed, options), semantic.build(listed, options), fusion=fusion)
