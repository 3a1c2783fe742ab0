"""Maps of meaning beside the votes: what they are trained with, when, and when they end."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.aside import run_in_daemon
from tool_search.search.learned import MAX_EVIDENCE, MAX_PER_TOOL, Evidence, LearnedQueries

if TYPE_CHECKING:
    from tool_search.search.vectors.linear_map import LearnedMap
    from tool_search.search.vectors.vectors import Matrix, Vector

__all__ = ["LearnedMaps", "MeaningVotes", "moved_most"]

_MIN_SEARCHES = 30
_MAX_MAPS = 8
# Searches since the last call of a tool can be no more than a few; a vector takes a kilobyte.
_MAX_SEEN = 1_000
_MAX_QUERY_CHARS = 2_000
# A tenth of the evidence, or so many entries, are worth a new training.
_NEW = 10
# A busy bot spends at most a tenth of its time on training.
_REST_AFTER_TRAINING = 10.0
_log = logging.getLogger(__name__)


class _Trained(NamedTuple):
    """A map, with the evidence that it was trained with."""

    map: LearnedMap
    entries: Mapping[object, Evidence]


class MeaningVotes:
    """Votes for the searches of one source, and the map that belongs to them.

    An index calls it as `Votes`. Of an index without vectors it is nothing else.
    """

    __slots__ = ("_maps", "_now", "_queries", "_source")

    def __init__(
        self, maps: LearnedMaps, queries: LearnedQueries, *, now: float, source: str
    ) -> None:
        self._maps = maps
        self._queries = queries
        self._now = now
        self._source = source

    def __call__(self, query: str, find: Callable[[str], Tool | None]) -> Mapping[str, float]:
        """Return the votes for a query; see `Votes`."""
        return self._queries.votes(query, now=self._now, find=find, source=self._source)

    def learned_map(
        self,
        query: str,
        vector: Vector,
        *,
        embedder: str,
        catalog: Callable[[], tuple[Sequence[Tool], Matrix]],
    ) -> LearnedMap | None:
        """Return the map for a search; None if there is none yet.

        Args:
            query: The query, whose vector is kept if it leads to a call.
            vector: Its vector.
            embedder: The identity of what made it.
            catalog: Returns the tools with their vectors, if a training begins.
        """
        key = _key_of(embedder)
        self._maps.note(query, vector, key)
        sole = self._queries.sole_source
        # What one user taught alone is that user's own.
        if not len(self._queries) or sole not in (None, self._source):
            return None
        return self._maps.find(
            (key, "*" if sole is None else sole), self._queries, catalog, now=self._now
        )


class LearnedMaps:
    """The maps of one deployment's evidence; safe to share between threads.

    A map belongs to an embedder and to the sources that taught it, not to a catalog. It is
    trained in a thread of its own, one at a time, and the last one serves until then. It is
    dropped as soon as evidence of it was erased.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._maps: OrderedDict[tuple[str, str], _Trained] = OrderedDict()
        self._looked_at: dict[tuple[str, str], LearnedQueries] = {}
        self._everything = LearnedQueries(())
        self._is_training = False
        self._rests_until = 0.0

    @property
    def is_training(self) -> bool:
        """True while a map is trained."""
        return self._is_training

    def votes(self, queries: LearnedQueries, *, now: float, source: str) -> MeaningVotes:
        """Return votes with a map for the searches of one source."""
        return MeaningVotes(self, queries, now=now, source=source)

    def note(self, query: str, vector: Vector, key: str) -> None:
        """Remember the vector of a query until it may have led to a call."""
        if len(query) > _MAX_QUERY_CHARS:
            return
        from tool_search.search.vectors.linear_map import to_text  # noqa: PLC0415 - needs numpy

        with self._lock:
            self._seen[query] = to_text(vector, key)
            self._seen.move_to_end(query)
            while len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)

    def vector_of(self, query: str) -> str:
        """Return the vector of a recent query as evidence has it; empty if it is unknown."""
        with self._lock:
            return self._seen.get(query, "")

    def use(self, queries: LearnedQueries) -> None:
        """Take new evidence, and drop the maps of evidence that was erased."""
        with self._lock:
            self._everything = queries
            self._looked_at.clear()
            for key in [k for k, own in self._maps.items() if _is_erased(own.entries, queries)]:
                del self._maps[key]

    def find(
        self,
        key: tuple[str, str],
        queries: LearnedQueries,
        catalog: Callable[[], tuple[Sequence[Tool], Matrix]],
        *,
        now: float,
    ) -> LearnedMap | None:
        """Return a map, and look aside if enough is new to train one.

        Args:
            key: The embedder and the scope of the evidence.
            queries: The evidence.
            catalog: Returns the tools with their vectors.
            now: The time in seconds since 1970.
        """
        with self._lock:
            known = self._maps.get(key)
            if known is not None:
                self._maps.move_to_end(key)
            is_free = not self._is_training and time.monotonic() >= self._rests_until
            if is_free and self._looked_at.get(key) is not queries:
                self._looked_at[key] = queries
                self._is_training = True
                work = partial(self._train, key, known, queries, catalog, now)
                run_in_daemon(work, "tool-search-learning")
        return None if known is None else known.map

    def _train(
        self,
        key: tuple[str, str],
        known: _Trained | None,
        queries: LearnedQueries,
        catalog: Callable[[], tuple[Sequence[Tool], Matrix]],
        now: float,
    ) -> None:
        began = time.thread_time()
        try:
            is_new = _is_much_new(known, queries, key[0])
            made = _train(key[0], queries, catalog, now) if is_new else None
            with self._lock:
                if made is not None and not _is_erased(made.entries, self._everything):
                    self._maps[key] = made
                    while len(self._maps) > _MAX_MAPS:
                        self._maps.popitem(last=False)
        except Exception:  # noqa: BLE001  # evidence and vectors may be of others
            _log.exception("no map of meaning was trained; searches go on with votes alone")
        finally:
            self._rests_until = time.monotonic() + _REST_AFTER_TRAINING * (
                time.thread_time() - began
            )
            self._is_training = False


def _train(
    embedder: str,
    queries: LearnedQueries,
    catalog: Callable[[], tuple[Sequence[Tool], Matrix]],
    now: float,
) -> _Trained | None:
    """Return a map that is trained with the tools of a catalog; None if too few are left."""
    from tool_search.search.vectors.linear_map import (  # noqa: PLC0415 - needs numpy
        from_texts,
        train_map,
    )

    tools, matrix = catalog()
    places = {tool.name: place for place, tool in enumerate(tools)}
    pulling, weights = queries.pulls(
        embedder, now=now, find=lambda name: tools[places[name]] if name in places else None
    )
    texts = (entry.vector for entry in pulling)
    vectors, read = from_texts(texts, embedder, matrix.shape[1])
    entries = [pulling[place] for place in read]
    if _count_searches(entries) < _MIN_SEARCHES:
        return None
    called = [places[entry.tool] for entry in entries]
    made = train_map(vectors, called, [weights[place] for place in read], matrix)
    return _Trained(made, {entry.key: entry for entry in entries})


def moved_most(
    queries: LearnedQueries,
    *,
    embedder: str,
    catalog: Callable[[], tuple[Sequence[Tool], Matrix]],
    now: float,
) -> dict[str, float]:
    """Return the mean change of similarity of each tool to the queries that led to it.

    Largest first; nothing with fewer than 30 searches. Blocks while the map is trained.

    Args:
        queries: The evidence.
        embedder: The identity of what made the vectors.
        catalog: Returns the tools with their vectors.
        now: The time in seconds since 1970.
    """
    from tool_search.search.vectors.linear_map import from_texts  # noqa: PLC0415 - needs numpy

    key = _key_of(embedder)
    trained = _train(key, queries, catalog, now)
    if trained is None:
        return {}
    tools, matrix = catalog()
    rows = {tool.name: row for tool, row in zip(tools, matrix, strict=True)}
    entries = list(trained.entries.values())
    vectors, _ = from_texts((entry.vector for entry in entries), key, matrix.shape[1])
    changes: dict[str, list[float]] = defaultdict(list)
    for entry, vector in zip(entries, vectors, strict=True):
        changes[entry.tool].append(float(trained.map.moved(vector) @ rows[entry.tool]))
    means = {name: fmean(own) for name, own in changes.items()}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


def _key_of(embedder: str) -> str:
    return blake2b(embedder.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _count_searches(entries: Iterable[Evidence]) -> int:
    return len({hash((entry.words, entry.source)) for entry in entries})


def _is_much_new(known: _Trained | None, queries: LearnedQueries, embedder: str) -> bool:
    """Return True if a training is worth its time."""
    entries = [entry for entry in queries.entries if entry.vector.startswith(embedder)]
    if known is None:
        return _count_searches(entries) >= _MIN_SEARCHES
    new = sum(entry.key not in known.entries for entry in entries)
    return new >= max(_NEW, len(known.entries) // 10)


def _is_erased(trained: Mapping[object, Evidence], queries: LearnedQueries) -> bool:
    """Return True if evidence is gone that the bounds of the store did not push out."""
    gone = trained.keys() - queries.keys
    if not gone:
        return False
    counts = Counter(entry.tool for entry in queries.entries)
    is_full = len(queries) >= MAX_EVIDENCE
    return any(
        not queries.has_source(trained[key].source)
        or not (is_full or counts[trained[key].tool] >= MAX_PER_TOOL)
        for key in gone
    )
