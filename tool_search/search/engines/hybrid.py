"""A ranking by the words of a query and by its meaning.

The default engine's scores are weighted by the share of the query's words that any tool
has: if most of them are unknown, a known word says little, and meaning decides. So a
Chinese query finds English tools, and a plain one is ranked by its words first. Chinese
words that no tool has are also looked up in a dictionary, if one is installed.

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
# A share of the weight of meaning: a translation counts less than the word itself.
_TRANSLATED = 0.8
# Boosts are computed for so many tools, the best by their words; later ones keep their order.
_MAX_BOOSTED = 100


class Fusion(NamedTuple):
    """The settings that join the two rankings; see `HybridSettings`."""

    name: FusionName = "coverage"
    lexical_weight: float = 1.0
    semantic_weight: float = 0.3
    rrf_k: int = 60
    dictionary: bool = True


class HybridEngine:
    """A ranking by words and meaning; see the module.

    Args:
        lexical: The ranking by words.
        semantic: The ranking by meaning of the same tools, updated alike.
        fusion: How they are joined.
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
        """The tools of each term."""
        return self._lexical.lexicon

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> HybridEngine:
        """Return the same ranking over changed tools, sharing the unchanged parts.

        Raises:
            SearchError: The embedder failed.
        """
        return HybridEngine(
            self._lexical.updated(added=added, removed=removed),
            self._semantic.updated(added=added, removed=removed),
            fusion=self._fusion,
        )

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

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
        """Return the boosts by words, weighted by the words' share of a tool's score."""
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
        """Return the score of each part for these tools; see `Explains`.

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
        """Return the words of the query that no tool has, not even in a translation."""
        words = self._lexical.unmatched(query, has_tool)
        if not self._fusion.dictionary:
            return words
        return [word for word in words if not self._has_translation(word, has_tool)]

    def _has_translation(self, word: str, has_tool: Callable[[Iterable[int]], bool]) -> bool:
        english = in_english(word).split()
        return len(self._lexical.unmatched(" ".join(english), has_tool)) < len(set(english))

    def _parts(self, query: str) -> _Parts:
        """Return the score of each tool by each part; kept until the next query."""
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
        """Return English words for the Chinese words that no tool has."""
        if not self._fusion.dictionary or query.isascii():
            return ""
        return in_english(" ".join(self._lexical.unmatched(query, _any_tool)))

    def _known_share(self, query: str) -> float:
        """Return the share of the query's words that any tool has, from 0 to 1."""
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
        """Return the scores of each tool for its rank by words, and by meaning."""
        by_word, by_meaning = self._lexical.scores(query), self._semantic.scores(query)
        words = np.array(by_word.values, np.float64)
        best = np.argsort(-words, kind="stable")[:_MAX_BOOSTED]
        best = best[words[best] > 0]
        words[best] *= self._lexical.boosts(query, best.tolist())
        k = self._fusion.rrf_k
        return self._reciprocal(words, k), self._reciprocal(np.asarray(by_meaning.values), k)

    def _reciprocal(self, values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        """Return 1 / (k + rank) of each hit; ties share the better rank."""
        hits = np.sort(values[values > 0])
        ranks = 1 + len(hits) - np.searchsorted(hits, values, side="right")
        return np.where(values > 0, 1.0 / (k + ranks), 0.0)


class _Parts(NamedTuple):
    """The scores by each part of a ranking.

    Attributes:
        by_word: By document id, before boosts.
        by_translation: By document id, before boosts.
        by_meaning: By document id.
        translation: English words for Chinese ones.
        weights: The weights of words, translation and meaning.
        attainable: The score that all together could reach.
    """

    by_word: NDArray[np.float64]
    by_translation: NDArray[np.float64]
    by_meaning: NDArray[np.float64]
    translation: str
    weights: tuple[float, float, float]
    attainable: float


def _any_tool(_doc_ids: Iterable[int]) -> bool:
    """Return True: the ranking does not depend on the tools that a caller may find."""
    return True


def _share(scores: Scores, weight: float) -> NDArray[np.float64]:
    """Return the scores divided by the attainable score, times the weight."""
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
