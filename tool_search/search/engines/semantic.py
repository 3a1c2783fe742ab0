"""A ranking by meaning: the similarity of two vectors, with no word in common needed.

Similarities are measured on a scale that is calibrated for each embedder: the similarity
of unrelated tools has the score 0, that of fitting ones the score 1. A query that is as
near to texts without a meaning as to the nearest tool finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tool_search.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.explanation import Reasons, ScorePart
from tool_search.search.index.ranking import Scores
from tool_search.search.index.storage import DocumentIds
from tool_search.search.vectors.cache import SqliteVectorCache, VectorCache, default_cache_path
from tool_search.search.vectors.embedder import EmbeddingProgress, load_embedder
from tool_search.search.vectors.store import ExactVectorStore, VectorStore
from tool_search.search.vectors.tools import ToolVectors
from tool_search.search.vectors.vectors import Vector

__all__ = ["SemanticEngine", "build"]

_FIT = 1.0
# The limit for stores of others; results beyond it are not relevant.
_MAX_CANDIDATES = 1_000


class SemanticEngine:
    """A ranking by meaning; see the module.

    Args:
        tools: The tools to search, in any order.
        vectors: Makes the vectors.
        store: An empty store for them; None for one in memory.
        progress: Called while tools are embedded.

    Raises:
        SearchError: The embedder or the store failed.
    """

    __slots__ = ("_places", "_scale", "_store", "_vectors", "doc_ids")

    max_boost = 1.0

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        vectors: ToolVectors,
        store: VectorStore | None = None,
        progress: EmbeddingProgress | None = None,
    ) -> None:
        self._vectors = vectors
        self._scale = vectors.scale()
        self.doc_ids = DocumentIds(tools)
        entered = self.doc_ids.taken()
        made = vectors.of_tools((tool for _, tool in entered), progress=progress)
        self._store = _update_store(ExactVectorStore() if store is None else store, made, ())
        self._places = np.zeros(0, np.intp)
        self._place((), entered)

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> SemanticEngine:
        """Return the same ranking over changed tools; only new ones are embedded.

        Raises:
            SearchError: The embedder or the store failed; this engine does not change.
        """
        change = self.doc_ids.changed(added=added, removed=removed)
        made = self._vectors.of_tools(tool for _, tool in change.entered)
        engine = SemanticEngine(vectors=self._vectors, store=self._store)
        engine.doc_ids = change.doc_ids
        engine._store = _update_store(self._store, made, [tool.name for _, tool in change.left])
        engine._places = self._places
        engine._place([doc_id for doc_id, _ in change.left], change.entered)
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

        Raises:
            SearchError: The embedder or the store failed.
        """
        nothing = Scores([0.0] * len(self.doc_ids.tools), 0.0)
        if not len(self.doc_ids):
            return nothing
        vector = self._vectors.of_query(query)
        if not vector.any():
            return nothing
        values = np.maximum(self._scale.of(self._similarities(vector)), 0.0)
        if self._scale.is_nonsense(vector, float(values.max())):
            values[:] = 0.0
        return Scores(values, _FIT)

    def boosts(self, _query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return 1 for each tool: similarities are not boosted."""
        return [1.0] * len(doc_ids)

    def reasons(self, query: str, doc_ids: Sequence[int]) -> list[Reasons]:
        """Return the score by meaning of these tools; see `Explains`.

        Raises:
            SearchError: The embedder or the store failed.
        """
        values, most, _ = self.scores(query)
        return [
            Reasons((ScorePart("meaning", 1.0, float(values[doc_id]) / (most or 1.0)),))
            for doc_id in doc_ids
        ]

    def unmatched(self, _query: str, _has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return nothing: a meaning has no words."""
        return []

    def _similarities(self, vector: Vector) -> NDArray[np.float32]:
        """Return one similarity for each document id; that of a free id is never a hit."""
        found = np.full(len(self.doc_ids.tools), -1.0, np.float32)
        store = self._store
        if isinstance(store, ExactVectorStore):
            taken = self._places >= 0
            found[taken] = store.similarities(vector)[self._places[taken]]
            return found
        for name, similarity in _search_store(
            store, vector, min(len(self.doc_ids), _MAX_CANDIDATES)
        ):
            for doc_id in self.doc_ids.named(name):
                found[doc_id] = similarity
        return found

    def _place(self, left: Iterable[int], entered: Iterable[tuple[int, Tool]]) -> None:
        """Record the places of the documents in the store in memory."""
        store = self._store
        if not isinstance(store, ExactVectorStore):
            return
        places = np.full(len(self.doc_ids.tools), -1, np.intp)
        places[: len(self._places)] = self._places
        for doc_id in left:
            places[doc_id] = -1
        for doc_id, tool in entered:
            places[doc_id] = store.place(tool.name)
        self._places = places


def _update_store(
    store: VectorStore, made: dict[str, Vector], removed: Sequence[str]
) -> VectorStore:
    try:
        return store.updated(added=made, removed=[name for name in removed if name not in made])
    except Exception as exc:
        raise SearchError(f"the vector store failed: {type(exc).__name__}: {exc}") from exc


def _search_store(store: VectorStore, vector: Vector, limit: int) -> Sequence[tuple[str, float]]:
    try:
        found = [(str(name), float(value)) for name, value in store.search(vector, limit=limit)]
    except Exception as exc:
        raise SearchError(f"the vector store failed: {type(exc).__name__}: {exc}") from exc
    wrong = next((item for item in found if not -1.01 <= item[1] <= 1.01), None)
    if wrong is not None:
        raise SearchError(f"the vector store returned {wrong!r}: a similarity is from -1 to 1")
    return found


def build(tools: Iterable[Tool], options: EngineOptions) -> SemanticEngine:
    """Build the engine `semantic`.

    Raises:
        SearchError: The embedder cannot be loaded, or the embedder or the store failed.
    """
    named = options.settings.embedder if options.settings else None
    vectors = ToolVectors(
        load_embedder(named) if options.embedder is None else options.embedder,
        cache=_vector_cache(options),
    )
    return SemanticEngine(
        tools, vectors=vectors, store=options.vector_store, progress=options.progress
    )


def _vector_cache(options: EngineOptions) -> VectorCache | None:
    if options.vector_cache is not None:
        return options.vector_cache
    chosen = options.settings.vector_cache if options.settings else "auto"
    if chosen is None:
        return None
    return SqliteVectorCache(default_cache_path() if chosen == "auto" else chosen)
