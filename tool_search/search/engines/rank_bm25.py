"""The reference engine: rank_bm25's BM25Plus over one flat text, Chinese cut by jieba.

BM25Plus, because BM25Okapi gives a word of one tool in two the score 0 and a word of
every tool a negative one. Its delta is 0: rank_bm25 adds delta to tools without the word
too, so it changes no order and would make every tool a hit.

Source: https://github.com/dorianbrown/rank_bm25; Lv, Zhai, "Lower-bounding term
frequency normalization", CIKM 2011.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from tool_search.core.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.ranking import Scores, attainable
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.documents import field_texts
from tool_search.search.text.query import query_terms
from tool_search.search.text.tokenizer import Segmenter, jieba_segmenter, pieces

__all__ = ["RankBm25Engine", "build"]

_MAX_FIELD_CHARS = 20_000
# A share of k1 + 1: a word that is once in a text of average length has less.
_FULL_SHARE = 0.5


class RankBm25Engine:
    """BM25Plus of rank_bm25; see the module.

    Args:
        tools: The tools to search, in any order.
        segmenter: Cuts Chinese; None for jieba.

    Raises:
        SearchError: jieba or rank-bm25 is not installed.
    """

    __slots__ = ("_counts", "_having", "_length", "_ranker", "_segmenter", "doc_ids")

    max_boost = 1.0

    def __init__(self, tools: Iterable[Tool] = (), *, segmenter: Segmenter | None = None) -> None:
        self._segmenter = segmenter or jieba_segmenter()
        self._ranker = _ranker()
        self.doc_ids = DocumentIds(tools)
        self._counts: list[Counter[str]] = [self._count(tool) for _, tool in self.doc_ids.taken()]
        self._having: Counter[str] = Counter()
        for counts in self._counts:
            self._having.update(counts.keys())
        self._length = sum(counts.total() for counts in self._counts)

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RankBm25Engine:
        """Return the same ranking over changed tools; unchanged texts are kept."""
        change = self.doc_ids.changed(added=added, removed=removed)
        engine = RankBm25Engine(segmenter=self._segmenter)
        engine.doc_ids = change.doc_ids
        free = len(change.doc_ids.tools) - len(self._counts)
        engine._counts = self._counts + [Counter()] * free
        engine._having = self._having.copy()
        engine._length = self._length
        for doc_id, _ in change.left:
            engine._exchange(doc_id, Counter())
        for doc_id, tool in change.entered:
            engine._exchange(doc_id, self._count(tool))
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`."""
        words = list(query_terms(query, self._segmenter).weights)
        known = [word for word in words if self._having.get(word)]
        if not known:
            return Scores([0.0] * len(self._counts), 0.0)
        rarity = _Rarity(self._having, tools=len(self.doc_ids))
        ranker = self._ranker(self._counts, rarity, self._length / len(self.doc_ids))
        values = [rarity.get(word) * (ranker.k1 + 1.0) * _FULL_SHARE for word in words]
        return Scores(ranker.get_scores(known), attainable(values))

    def boosts(self, _query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return 1 for each tool: the reference ranks by its scores alone."""
        return [1.0] * len(doc_ids)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has."""

        def known(term: str) -> bool:
            return bool(self._having.get(term)) and has_tool(self._doc_ids_with(term))

        return query_terms(query, self._segmenter).unmatched(known)

    def _doc_ids_with(self, term: str) -> Iterator[int]:
        return (doc_id for doc_id, counts in enumerate(self._counts) if term in counts)

    def _exchange(self, doc_id: int, counts: Counter[str]) -> None:
        old, self._counts[doc_id] = self._counts[doc_id], counts
        self._length += counts.total() - old.total()
        for word in old:
            self._having[word] -= 1
            if not self._having[word]:
                del self._having[word]
        self._having.update(counts.keys())

    def _count(self, tool: Tool) -> Counter[str]:
        counts: Counter[str] = Counter()
        for field, texts in field_texts(tool).items():
            for text in texts:
                for piece in pieces(text, max_chars=_MAX_FIELD_CHARS, segmenter=self._segmenter):
                    if field == "name" or not piece.is_stop_word:
                        counts.update((*piece.words, *piece.compounds))
        return counts


class _Rarity:
    """BM25Plus's idf, ln((N + 1) / df), computed for the words of a query alone."""

    def __init__(self, having: Counter[str], *, tools: int) -> None:
        self._having = having
        self._tools = tools

    def get(self, word: str) -> float:
        return math.log((self._tools + 1) / max(self._having.get(word, 0), 1))


@cache
def _ranker() -> type[Any]:
    try:
        from rank_bm25 import BM25Plus  # noqa: PLC0415 - an extra, which loads numpy
    except ImportError as exc:
        raise SearchError(
            "the search engine 'rank_bm25' needs the package rank-bm25: "
            "pip install 'tool-search-middleware[jieba]'; in a clone: pip install '.[jieba]'"
        ) from exc

    class Ranker(BM25Plus):  # type: ignore[misc]
        """BM25Plus over documents that are counted already."""

        def __init__(self, counts: list[Counter[str]], rarity: _Rarity, mean: float) -> None:
            self.k1, self.b, self.delta = 1.5, 0.75, 0
            self.corpus_size = len(counts)
            self.doc_freqs = counts
            self.doc_len = [document.total() for document in counts]
            self.idf = rarity
            self.avgdl = mean

    return Ranker


def build(tools: Iterable[Tool], _options: EngineOptions) -> RankBm25Engine:
    """Build the engine `rank_bm25`; it always cuts Chinese by jieba.

    Raises:
        SearchError: jieba or rank-bm25 is not installed.
    """
    return RankBm25Engine(tools)
