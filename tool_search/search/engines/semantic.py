"""A ranking by meaning: the similarity of two vectors, with no word in common needed.

Similarities are measured on a scale that is calibrated for each embedder: the similarity
of unrelated tools has the score 0, that of fitting ones the score 1. A query that is as
near to texts without a meaning as to the nearest tool finds nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.core.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.explanation import Reasons, ScorePart
from tool_search.search.index.ranking import Meaning, Scores
from tool_search.search.index.storage import DocumentIds
from tool_search.search.text.query import query_sentences
from tool_search.search.vectors.cache import SqliteVectorCache, VectorCache, default_cache_path
from tool_search.search.vectors.calls import CallLimits, Waiting
from tool_search.search.vectors.embedder import EmbeddingProgress, load_embedder
from tool_search.search.vectors.store import ExactVectorStore, VectorStore
from tool_search.search.vectors.tools import Scale, ToolVectors, name_of, vector_ids
from tool_search.search.vectors.vectors import Matrix, Vector

__all__ = ["SemanticEngine", "build"]

_log = logging.getLogger(__name__)

_FIT = 1.0
# The weight of a learned change of meaning; chosen in `benchmarks/learning.md`.
_MOVED = 1.5
# The limit for stores of others; results beyond it are not relevant.
_MAX_CANDIDATES = 1_000
# Of one tool: the whole text, and each of three scripts.
_MAX_VECTORS = 4


class SemanticEngine:
    """A ranking by meaning; see the module.

    Args:
        tools: The tools to search, in any order.
        vectors: Makes the vectors.
        store: An empty store for them; None for one in memory.
        progress: Called while tools are embedded.
        is_optional: True if another ranking goes on without this one: if the embedder fails,
            nothing is found by meaning, and tools without vectors are embedded later.

    Raises:
        SearchError: The embedder or the store failed, and is not optional.
    """

    __slots__ = ("_catching_up", "_embedded", "_is_optional", "_vectors", "doc_ids")

    max_boost = 1.0

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        vectors: ToolVectors,
        store: VectorStore | None = None,
        progress: EmbeddingProgress | None = None,
        is_optional: bool = False,
    ) -> None:
        self._vectors = vectors
        self._is_optional = is_optional
        self._catching_up = Lock()
        self.doc_ids = DocumentIds(tools)
        entered = self.doc_ids.taken()
        empty = _Embedded(None, ExactVectorStore() if store is None else store, _NO_PLACES, (), {})
        self._embedded = self._embed(empty, (), entered, progress)

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> SemanticEngine:
        """Return the same ranking over changed tools; only new ones are embedded.

        Raises:
            SearchError: The embedder or the store failed, and is not optional; this engine
                does not change.
        """
        change = self.doc_ids.changed(added=added, removed=removed)
        engine = SemanticEngine(
            vectors=self._vectors, store=self._embedded.store, is_optional=self._is_optional
        )
        engine.doc_ids = change.doc_ids
        engine._embedded = engine._embed(self._embedded, change.left, change.entered)
        return engine

    @property
    def warning(self) -> str:
        """The reason if meaning does not count at present, or not for all tools; or empty."""
        failure, waiting = self._vectors.calls.failure, len(self._embedded.waiting)
        if not self._is_optional or (failure is None and not waiting):
            return ""
        return (
            "tools are searched by their words, not by their meaning, until the embedder "
            f"answers: {failure or 'new tools are being embedded'}"
        )

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed several queries in one batch; `scores` then finds their vectors."""
        if self._embedded.scale is None or not len(self.doc_ids):
            return
        texts = [text for query in queries for text in (query, *query_sentences(query))]
        # If the embedder fails, `scores` meets the same failure and tells it.
        with suppress(SearchError):
            self._vectors.of_queries(texts)

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

        Raises:
            SearchError: The embedder or the store failed, and is not optional.
        """
        nothing = Scores([0.0] * len(self.doc_ids.tools), 0.0)
        if not len(self.doc_ids):
            return nothing
        if self._embedded.waiting:
            self._catch_up()
        embedded = self._embedded
        if embedded.scale is None:
            return nothing
        try:
            # A long request says in passing what its whole meaning does not show.
            vector, *sentences = self._vectors.of_queries([query, *query_sentences(query)])
            if not vector.any():
                return nothing
            found = [self._similarities(embedded, each) for each in (vector, *sentences)]
        except SearchError:
            # The embedder's calls have said so; an answer by words is better than none.
            if not self._is_optional:
                raise
            return nothing
        values = _values(embedded.scale, vector, found[0])
        if sentences:
            parts = zip(sentences, found[1:], strict=True)
            own = [_values(embedded.scale, sentence, near) for sentence, near in parts]
            values += np.maximum.reduce(own)
            values /= 2.0
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

    def moved(self, query: str, meaning: Meaning) -> NDArray[np.float64] | None:
        """Return what a learned map adds to each score; see `MovesMeaning`."""
        store, places, scale = self._embedded.store, self._embedded.places, self._embedded.scale
        # A store of others gives the nearest to unit vectors alone.
        if scale is None or not isinstance(store, ExactVectorStore):
            return None
        try:
            vector = self._vectors.of_query(query)
        except SearchError:
            # `scores` has met the same failure.
            return None
        found = meaning.learned_map(query, vector, embedder=self.embedder, catalog=self.catalog)
        if found is None:
            return None
        taken = places >= 0
        changes = np.zeros(len(places))
        changes[taken] = store.similarities(found.moved(vector))[places[taken]]
        return np.clip(_MOVED / (scale.fit - scale.noise) * changes, -1.0, 1.0)

    @property
    def embedder(self) -> str:
        """The identity of what makes the vectors."""
        return self._vectors.identity

    def catalog(self) -> tuple[list[Tool], Matrix]:
        """Return the tools that have vectors in memory, with the vectors as rows."""
        store, places = self._embedded.store, self._embedded.places
        entered = [(doc_id, tool) for doc_id, tool in self.doc_ids.taken() if places[doc_id] >= 0]
        if not entered or not isinstance(store, ExactVectorStore):
            return [], np.zeros((0, 0), np.float32)
        return [tool for _, tool in entered], store.rows(places[[doc_id for doc_id, _ in entered]])

    def unmatched(self, _query: str, _has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return nothing: a meaning has no words."""
        return []

    def _similarities(self, embedded: _Embedded, vector: Vector) -> _Similarities:
        """Return the similarities of the tools; without a vector a tool is never a hit."""
        found = np.full(len(self.doc_ids.tools), -1.0, np.float32)
        store, places = embedded.store, embedded.places
        if isinstance(store, ExactVectorStore):
            taken = places >= 0
            similarities = store.similarities(vector)
            found[taken] = similarities[places[taken]]
            best = found.copy() if embedded.further else found
            for doc_id, further in embedded.further.items():
                best[doc_id] = similarities[further].max()
            return _Similarities(best, found)
        best = found.copy()
        limit = min(_MAX_VECTORS * len(self.doc_ids), _MAX_CANDIDATES)
        for vector_id, similarity in _search_store(store, vector, limit):
            name = name_of(vector_id)
            kind = found if vector_id == name else best
            for doc_id in self.doc_ids.named(name):
                kind[doc_id] = max(kind[doc_id], similarity)
        return _Similarities(np.where(best > -1.0, best, found), found)

    def _embed(
        self,
        before: _Embedded,
        left: Sequence[tuple[int, Tool]],
        entered: Sequence[tuple[int, Tool]],
        progress: EmbeddingProgress | None = None,
        *,
        in_background: bool = False,
    ) -> _Embedded:
        """Return the vectors after a change of tools.

        Raises:
            SearchError: The embedder or the store failed, and is not optional.
        """
        gone = {doc_id for doc_id, _ in left}
        waiting = [item for item in before.waiting if item[0] not in gone]
        made: dict[str, Vector] = {}
        scale = before.scale
        # Who watches the progress, as the command does, wants all vectors.
        can_go_on = self._is_optional and progress is None and not in_background
        who: Waiting = "turn" if can_go_on else "nobody"
        try:
            scale = scale or self._vectors.scale(waiting=who)
            made = self._vectors.of_tools(
                (tool for _, tool in entered), progress=progress, waiting=who
            )
        except SearchError:
            if not self._is_optional:
                raise
            waiting.extend(entered)
            entered = ()
        removed = [each for _, tool in left for each in vector_ids(tool)]
        store = _update_store(before.store, made, removed)
        places = np.full(len(self.doc_ids.tools), -1, np.intp)
        places[: len(before.places)] = before.places
        places[list(gone)] = -1
        further = {doc_id: own for doc_id, own in before.further.items() if doc_id not in gone}
        further.update(_further_places(store, entered))
        return _Embedded(scale, store, _place(store, places, entered), tuple(waiting), further)

    def _catch_up(self) -> None:
        """Begin to embed the tools that wait, in a thread of its own; one at a time."""
        if self._vectors.calls.is_resting or not self._catching_up.acquire(blocking=False):
            return
        Thread(target=self._embed_waiting, name="tool-search-embedding", daemon=True).start()

    def _embed_waiting(self) -> None:
        try:
            before = self._embedded
            waiting = before._replace(waiting=())
            # Another search meets either the old vectors or the new ones.
            self._embedded = self._embed(waiting, (), before.waiting, in_background=True)
        except SearchError as exc:
            _log.warning("%s: tools that wait for their vectors are not embedded", exc)
        finally:
            self._catching_up.release()


class _Similarities(NamedTuple):
    """The similarities of a text to the tools.

    Attributes:
        best: By document id, to the vector of the nearest of a tool's languages.
        whole: By document id, to the vector of all its text.
    """

    best: NDArray[np.float32]
    whole: NDArray[np.float32]


def _values(scale: Scale, vector: Vector, found: _Similarities) -> NDArray[np.float64]:
    """Return the scores of the tools for a text; 0 if it means nothing."""
    values = np.maximum(scale.of(found.best), 0.0)
    nearest = max(float(scale.of(found.whole).max()), 0.0)
    if scale.is_nonsense(vector, nearest, float(values.max())):
        values[:] = 0.0
    return values


class _Embedded(NamedTuple):
    """The vectors of an engine.

    Attributes:
        scale: The scale of the similarities; None if the embedder never answered.
        store: The vectors.
        places: By document id, the place of its vector in the store in memory, or -1.
        waiting: Tools without vectors, with their document ids.
        further: By document id, the places of a tool's vectors in further languages; none in
            a store of others.
    """

    scale: Scale | None
    store: VectorStore
    places: NDArray[np.intp]
    waiting: tuple[tuple[int, Tool], ...]
    further: Mapping[int, list[int]]


_NO_PLACES: NDArray[np.intp] = np.zeros(0, np.intp)


def _place(
    store: VectorStore, places: NDArray[np.intp], entered: Iterable[tuple[int, Tool]]
) -> NDArray[np.intp]:
    """Return the places with those of new tools, in the store in memory."""
    if not isinstance(store, ExactVectorStore):
        return places
    for doc_id, tool in entered:
        places[doc_id] = store.place(tool.name)
    return places


def _further_places(
    store: VectorStore, entered: Iterable[tuple[int, Tool]]
) -> dict[int, list[int]]:
    """Return the places of tools that have more than one vector, in the store in memory."""
    if not isinstance(store, ExactVectorStore):
        return {}
    ids = ((doc_id, vector_ids(tool)[1:]) for doc_id, tool in entered)
    return {doc_id: list(map(store.place, own)) for doc_id, own in ids if own}


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


def build(
    tools: Iterable[Tool], options: EngineOptions, *, is_optional: bool = False
) -> SemanticEngine:
    """Build the engine `semantic`.

    Args:
        tools: The tools to search.
        options: The settings and parts.
        is_optional: True if another ranking goes on if the embedder fails.

    Raises:
        SearchError: The embedder cannot be loaded, or the embedder or the store failed.
    """
    named = options.settings.embedder if options.settings else None
    vectors = ToolVectors(
        load_embedder(named) if options.embedder is None else options.embedder,
        cache=_vector_cache(options),
        limits=_call_limits(options),
    )
    return SemanticEngine(
        tools,
        vectors=vectors,
        store=options.vector_store,
        progress=options.progress,
        is_optional=is_optional,
    )


def _call_limits(options: EngineOptions) -> CallLimits:
    if options.settings is None:
        return CallLimits()
    chosen = options.settings.embedding
    return CallLimits(
        query_s=chosen.query_s,
        batch_s=chosen.batch_s,
        retries=chosen.retries,
        rest_s=chosen.rest_s,
    )


def _vector_cache(options: EngineOptions) -> VectorCache | None:
    if options.vector_cache is not None:
        return options.vector_cache
    chosen = options.settings.vector_cache if options.settings else "auto"
    if chosen is None:
        return None
    return SqliteVectorCache(default_cache_path() if chosen == "auto" else chosen)
