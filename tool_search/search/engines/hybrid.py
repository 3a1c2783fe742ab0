"""A ranking by the words of a query and by its meaning.

The default engine's scores are weighted by the share of the query's words that any tool
has: if most of them are unknown, a known word says little, and meaning decides. So a
Chinese query finds English tools, and a plain one is ranked by its words first. Chinese
words that no tool has are also looked up in a dictionary, if one is installed.

In a catalog of tools in several scripts this is done for the tools of each script, and
each score is a share of what the query could reach there. A tool in two scripts has the
better of its scores.

Source of reciprocal rank fusion: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion
outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.core.catalog.tool import Tool
from tool_search.search.engines import bm25, semantic
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.engines.options import EngineOptions
from tool_search.search.engines.script_scores import ScriptScores
from tool_search.search.engines.semantic import SemanticEngine
from tool_search.search.index.explanation import Reasons, ScorePart, SideName
from tool_search.search.index.filter import Lexicon
from tool_search.search.index.ranking import Meaning, Scores
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query import query_terms
from tool_search.search.text.scripts import ALL_SCRIPTS, CJK, script_of
from tool_search.search.text.synonyms import in_english

__all__ = ["Fusion", "HybridEngine", "build"]

FusionName = Literal["coverage", "weights", "rrf"]
# A share of the weight of meaning: a translation counts less than the word itself.
_TRANSLATED = 0.8
# Pairs of characters match by chance: among 500 Chinese tools some tool has half of any
# Chinese query's. So beside tools of another script, which have none, they count less, and
# the less the fewer are known. Measured in `benchmarks/mixed.md`.
_CHANCE = 0.2
# Beside tools in the query's own language, meaning alone is worth this share of words and
# meaning together: no tool has all words of a query, and most have a part of its meaning.
_MEANING_ALONE = 0.7
# The share of a learned change of meaning, beside words; chosen in `benchmarks/learning.md`.
_MOVED = 0.4
# Boosts are computed for so many tools, the best by their words; later ones keep their order.
_MAX_BOOSTED = 100


class Fusion(NamedTuple):
    """The settings that join the two rankings; see `HybridSettings`."""

    name: FusionName = "coverage"
    lexical_weight: float = 1.0
    semantic_weight: float = 0.4
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

    @property
    def warning(self) -> str:
        """The reason if meaning does not count at present, or not for all tools; or empty."""
        return self._semantic.warning

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

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed several queries in one batch."""
        self._semantic.prepare(queries)

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

        Raises:
            SearchError: The embedder failed.
        """
        if not len(self.doc_ids):
            return Scores([0.0] * len(self.doc_ids.tools), 0.0)
        if self._fusion.name == "rrf":
            return self._fused_ranks(query)
        if self.warning:
            self._last = None  # its scores may lack meaning, which may be back
        parts = self._parts(query)
        return Scores(parts.sum.copy(), parts.attainable)

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return the boosts by words, weighted by the words' share of a tool's score."""
        if self._fusion.name == "rrf":
            return [1.0] * len(doc_ids)
        parts = self._parts(query)
        listed = list(doc_ids)
        plain = parts.sum[listed]
        boosted = parts.by_meaning[listed] + parts.by_word[listed] * self._lexical.boosts(
            query, listed
        )
        for number, view in enumerate(parts.views):
            own = [place for place, doc_id in enumerate(listed) if parts.view[doc_id] == number]
            mine = [listed[place] for place in own]
            if mine and view.translation:
                factors = np.asarray(self._lexical.boosts(view.translation, mine))
                boosted[own] += parts.by_translation[mine] * factors
        return list(np.divide(boosted, plain, out=np.ones_like(plain), where=plain > 0).tolist())

    def reasons(self, query: str, doc_ids: Sequence[int]) -> list[Reasons]:
        """Return the score of each part for these tools; see `Explains`.

        Raises:
            SearchError: The embedder failed.
        """
        if self._fusion.name == "rrf":
            return self._reasons_of_ranks(query, doc_ids)
        parts = self._parts(query)
        return [
            self._reasons_in(parts.views[parts.view[doc_id]], query, doc_id) for doc_id in doc_ids
        ]

    def _reasons_in(self, view: _View, query: str, doc_id: int) -> Reasons:
        texts = (query, view.translation, query)
        found = Reasons(())
        for name, text, weight in zip(_SIDES, texts, view.weights, strict=True):
            if weight <= 0:
                continue
            if name == "meaning":
                (own,) = self._semantic.reasons(text, [doc_id])
            else:
                (own,) = self._lexical.reasons(text, [doc_id], scripts=view.scripts)
            found = found.joined(own.as_part(name, weight))
        return found

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has, not even in a translation."""
        words = self._lexical.unmatched(query, has_tool)
        if not self._fusion.dictionary:
            return words
        return [word for word in words if not self._has_translation(word, has_tool)]

    def near_word(self, word: str, may_find: Callable[[int], bool]) -> str | None:
        """Return the word that another is a typing error of; see `Bm25Engine.near_word`."""
        return self._lexical.near_word(word, may_find)

    def moved(self, query: str, meaning: Meaning) -> NDArray[np.float64] | None:
        """Return what a learned map adds to each score; see `MovesMeaning`."""
        moves = self._semantic.moved(query, meaning)
        return None if moves is None else _MOVED * moves

    def _has_translation(self, word: str, has_tool: Callable[[Iterable[int]], bool]) -> bool:
        english = in_english(word).split()
        return len(self._lexical.unmatched(" ".join(english), has_tool)) < len(set(english))

    def _parts(self, query: str) -> _Parts:
        """Return the score of each tool by each part; kept until the next query."""
        last = self._last
        if last is not None and last[0] == query:
            return last[1]
        by_meaning = self._semantic.scores(query)
        if self._fusion.name == "coverage":
            views = [self._view(query, own, by_meaning) for own in self._lexical.views(query)]
        else:
            weights = self._fusion.lexical_weight, 0.0, self._fusion.semantic_weight
            by_word = self._lexical.scores(query)
            views = [_view(ALL_SCRIPTS, "", weights, (by_word, _NOTHING, by_meaning), 1.0)]
        parts = _best_parts(views, self._lexical.scripts.kinds)
        self._last = (query, parts)
        return parts

    def _view(self, query: str, own: ScriptScores, by_meaning: Scores) -> _View:
        """Return the scores of a query for the tools of one script."""
        fusion, translation, by_translation = self._fusion, "", _NOTHING
        if fusion.dictionary and not query.isascii():
            translation = in_english(" ".join(self._lexical.unmatched_in(query, own.group)))
        if translation:
            views = self._lexical.views(translation)
            by_translation = next(view.scores for view in views if view.group == own.group)
        weights = (
            own.share * fusion.lexical_weight * self._trust(query, own.share),
            (1.0 - own.share) * fusion.semantic_weight * _TRANSLATED,
            fusion.semantic_weight,
        )
        whole = 1.0 if len(self._lexical.scripts.groups) < 2 else _MEANING_ALONE
        found = own.scores, by_translation, by_meaning
        return _view(own.group, translation, weights, found, whole)

    def _trust(self, query: str, share: float) -> float:
        """Return a factor for words that match by chance; see `_CHANCE`."""
        if len(self._lexical.scripts.groups) < 2 or query.isascii():
            return 1.0
        terms = query_terms(query, self.lexicon.segmenter).weights
        by_chance = sum(script_of(term) == CJK for term in terms) / max(len(terms), 1)
        return 1.0 - by_chance + by_chance * _CHANCE * share

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


_SIDES: tuple[SideName, SideName, SideName] = ("words", "translation", "meaning")
_NOTHING = Scores([], 0.0)


class _View(NamedTuple):
    """The scores for the tools of some scripts.

    Attributes:
        scripts: The scripts.
        translation: English words for the Chinese ones that none of the tools has.
        weights: The weights of words, translation and meaning; they add up to at most 1.
        scores: The scores by each, by document id, before boosts.
    """

    scripts: int
    translation: str
    weights: tuple[float, float, float]
    scores: NDArray[np.float64]


def _view(
    scripts: int,
    translation: str,
    weights: tuple[float, float, float],
    scores: tuple[Scores, Scores, Scores],
    meaning_alone: float,
) -> _View:
    """Return scores with their weights; a part that can reach nothing has none.

    Args:
        scripts: The scripts of the tools.
        translation: English words for the Chinese ones.
        weights: The weights of words, translation and meaning.
        scores: The scores by each.
        meaning_alone: The sum of the weights if meaning is the only part, from 0 to 1.
    """
    kept = [weight * (own.attainable > 0) for weight, own in zip(weights, scores, strict=True)]
    whole = kept[0] + kept[1] + kept[2] / meaning_alone or 1.0
    shares = kept[0] / whole, kept[1] / whole, kept[2] / whole
    size = max(len(own.values) for own in scores)
    rows = [
        np.asarray(own.values, np.float64) * (weight / own.attainable) if weight else np.zeros(size)
        for own, weight in zip(scores, shares, strict=True)
    ]
    return _View(scripts, translation, shares, np.stack(rows))


class _Parts(NamedTuple):
    """The scores by each part of a ranking, for each tool from its best view.

    Attributes:
        by_word: By document id, before boosts.
        by_translation: By document id, before boosts.
        by_meaning: By document id.
        sum: The three added.
        views: The scores for each script.
        view: The number of the view by document id.
        attainable: 1, or 0 if the query can reach nothing.
    """

    by_word: NDArray[np.float64]
    by_translation: NDArray[np.float64]
    by_meaning: NDArray[np.float64]
    sum: NDArray[np.float64]
    views: Sequence[_View]
    view: NDArray[np.intp]
    attainable: float


def _best_parts(views: Sequence[_View], scripts: NDArray[np.uint16]) -> _Parts:
    """Return each tool's scores from the best of the views that it belongs to."""
    best = views[0].scores
    view = np.zeros(best.shape[1], np.intp)
    if len(views) > 1:
        sums = np.stack(
            [np.where(scripts & each.scripts, each.scores.sum(axis=0), -1.0) for each in views]
        )
        view = sums.argmax(axis=0)
        best = np.zeros_like(best)
        for number, each in enumerate(views):
            best[:, view == number] = each.scores[:, view == number]
        best[:, scripts == 0] = 0.0
    by_word, by_translation, by_meaning = best
    return _Parts(
        by_word=by_word,
        by_translation=by_translation,
        by_meaning=by_meaning,
        sum=best.sum(axis=0),
        views=views,
        view=view,
        attainable=float(any(any(each.weights) for each in views)),
    )


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
    return HybridEngine(
        bm25.build(listed, options),
        semantic.build(listed, options, is_optional=True),
        fusion=fusion,
    )
