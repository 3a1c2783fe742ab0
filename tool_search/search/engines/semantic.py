"""An engine by meaning: the similarity of two vectors, no word in common needed.

A similarity is measured between two marks that each embedder sets by itself: what an
unrelated tool has, which is worth nothing, and what a fitting one has, which is worth 1.
A query that is as near to texts without a meaning as to the nearest tool finds nothing.
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
# What a store in another place is asked for; beyond it nothing is relevant.
_MAX_CANDIDATES = 1_000


class SemanticEngine:
    """Ranks by meaning; see the module.

    Args:
        tools: What is searched, in any order.
        vectors: Makes the vectors.
        store: An empty store for them; without one they are held in memory.
        progress: Told while tools are embedded.

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
        """The same ranking over changed tools; only new ones are embedded.

        Raises:
            SearchError: The embedder or the store failed; this engine stays as it is.
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
        """How well each tool fits; see `Scorer.scores`.

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
        """None: the similarity says it all."""
        return [1.0] * len(doc_ids)

    def reasons(self, query: str, doc_ids: Sequence[int]) -> list[Reasons]:
        """What meaning gave these tools; see `Explains`.

        Raises:
            SearchError: The embedder or the store failed.
        """
        values, most = self.scores(query)
        return [
            Reasons((ScorePart("meaning", 1.0, float(values[doc_id]) / (most or 1.0)),))
            for doc_id in doc_ids
        ]

    def unmatched(self, _query: str, _has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """None: a meaning is no word that a tool has or has not."""
        return []

    def _similarities(self, vector: Vector) -> NDArray[np.float32]:
        """The similarity of each tool, by slot; below any of a hit where a slot is free."""
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
        """Notes where the store in memory has the vectors of the slots."""
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
