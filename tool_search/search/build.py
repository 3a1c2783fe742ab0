"""The engines by name, and the one place where an index is built."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, cast

from tool_search.catalog.tool import Tool
from tool_search.config.plugins import installed_engines
from tool_search.errors import DuplicateToolError, SearchError
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.index.protocol import ToolSearchIndex
from tool_search.search.index.ranking import RankedIndex, Scorer
from tool_search.search.text.tokenizer import jieba_segmenter
from tool_search.search.vectors.embedder import Embedder, EmbeddingProgress, embedder_named
from tool_search.search.vectors.store import VectorStore

if TYPE_CHECKING:
    # At run time the settings' library takes longer to load than 1,000 tools to index.
    from tool_search.config.search import SearchSettings
    from tool_search.search.engines.semantic import SemanticEngine
    from tool_search.search.vectors.cache import VectorCache

__all__ = ["EMBEDDING_ENGINES", "ENGINES", "build_index"]

_MAX_CACHED = 8
# Those of `SearchSettings`, which a test compares.
_DEFAULTS = ("bm25", 0.1, "builtin")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What an engine is built with.

    Attributes:
        segmenter: How Chinese is cut.
        settings: All that is set; None: the defaults.
        embedder: Instead of the one that the settings name.
        vector_cache: Instead of the one that the settings name.
        vector_store: Where vectors are searched; None: in memory.
        progress: Told while tools are embedded.
    """

    segmenter: str
    settings: SearchSettings | None = None
    embedder: Embedder | None = None
    vector_cache: VectorCache | None = None
    vector_store: VectorStore | None = None
    progress: EmbeddingProgress | None = None


_EngineBuilder = Callable[[Iterable[Tool], _Parts], Scorer]


def _bm25(tools: Iterable[Tool], parts: _Parts) -> Bm25Engine:
    return Bm25Engine(tools, segmenter=jieba_segmenter() if parts.segmenter == "jieba" else None)


def _rank_bm25(tools: Iterable[Tool], _parts: _Parts) -> Scorer:
    from tool_search.search.engines.rank_bm25 import RankBm25Engine  # noqa: PLC0415 - few ask for it

    return RankBm25Engine(tools)


def _lexical(tools: Iterable[Tool], _parts: _Parts) -> Scorer:
    tooldiscovery = import_module("tool_search.compat.tooldiscovery")
    return cast("Scorer", tooldiscovery.LexicalEngine(tools))


def _regex(tools: Iterable[Tool], parts: _Parts) -> Scorer:
    from tool_search.search.engines.regex import RegexEngine  # noqa: PLC0415 - few ask for it

    return RegexEngine(tools, segmenter=jieba_segmenter() if parts.segmenter == "jieba" else None)


def _semantic(tools: Iterable[Tool], parts: _Parts) -> SemanticEngine:
    from tool_search.search.engines.semantic import SemanticEngine  # noqa: PLC0415 - loads numpy
    from tool_search.search.vectors.tools import ToolVectors  # noqa: PLC0415 - loads numpy

    named = parts.settings.embedder if parts.settings else None
    vectors = ToolVectors(
        embedder_named(named) if parts.embedder is None else parts.embedder,
        cache=_vector_cache(parts),
    )
    return SemanticEngine(tools, vectors=vectors, store=parts.vector_store, progress=parts.progress)


def _hybrid(tools: Iterable[Tool], parts: _Parts) -> Scorer:
    from tool_search.search.engines.hybrid import Fusion, HybridEngine  # noqa: PLC0415 - loads numpy

    fusion = Fusion()
    if parts.settings is not None:
        chosen = parts.settings.hybrid
        weights = chosen.lexical_weight, chosen.semantic_weight
        fusion = Fusion(chosen.fusion, *weights, chosen.rrf_k, chosen.dictionary)
    listed = tuple(tools)
    return HybridEngine(_bm25(listed, parts), _semantic(listed, parts), fusion=fusion)


def _vector_cache(parts: _Parts) -> VectorCache | None:
    from tool_search.search.vectors.cache import (  # noqa: PLC0415 - loads SQLite
        SqliteVectorCache,
        default_cache_path,
    )

    if parts.vector_cache is not None:
        return parts.vector_cache
    chosen = parts.settings.vector_cache if parts.settings else "auto"
    if chosen is None:
        return None
    return SqliteVectorCache(default_cache_path() if chosen == "auto" else chosen)


ENGINES: Mapping[str, _EngineBuilder] = {
    "bm25": _bm25,
    "rank_bm25": _rank_bm25,
    "lexical": _lexical,
    "regex": _regex,
    "semantic": _semantic,
    "hybrid": _hybrid,
}
"""What builds each engine. An engine is one module and one line here."""

_OWN_SYNTAX = frozenset(("regex",))
"""Engines whose queries are not in the query language."""
EMBEDDING_ENGINES = frozenset(("semantic", "hybrid"))
"""Engines that need vectors."""


class _RecentIndexes:
    """The last indexes that were built, by what they hold."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._indexes: OrderedDict[str, ToolSearchIndex] = OrderedDict()

    def get(self, key: str) -> ToolSearchIndex | None:
        with self._lock:
            if key not in self._indexes:
                return None
            self._indexes.move_to_end(key)
            return self._indexes[key]

    def keep(self, key: str, index: ToolSearchIndex) -> None:
        with self._lock:
            self._indexes[key] = index
            while len(self._indexes) > _MAX_CACHED:
                self._indexes.popitem(last=False)


_recent = _RecentIndexes()


def build_index(
    tools: Sequence[Tool],
    settings: SearchSettings | None = None,
    *,
    embedder: Embedder | None = None,
    vector_cache: VectorCache | None = None,
    vector_store: VectorStore | None = None,
    progress: EmbeddingProgress | None = None,
) -> ToolSearchIndex:
    """An index over the tools; the same one for equal tools and settings.

    Args:
        tools: What is searched, in any order; names must differ.
        settings: How; without them the defaults.
        embedder: Makes the vectors of `semantic` and `hybrid`, instead of the one that
            the settings name.
        vector_cache: Keeps vectors, instead of the file that the settings name.
        vector_store: Searches vectors, instead of one in memory; empty, and for this
            index alone.
        progress: Told how many of how many tools are embedded, while they are.

    Raises:
        DuplicateToolError: Two tools have the same name.
        SearchError: There is no such engine, what it needs is not installed, or the
            embedder or the engine of another package failed.

    >>> index = build_index([Tool(name="get_weather"), Tool(name="send_mail")])
    >>> [match.name for match in index.search("weather in Paris", limit=5).matches]
    ['get_weather']
    """
    engine, _, segmenter = _DEFAULTS
    if settings is not None:
        engine, segmenter = settings.engine, settings.segmenter
    if engine not in EMBEDDING_ENGINES and not (embedder is None and vector_store is None):
        raise SearchError(
            f"engine {engine!r} takes no embedder and no vector store; "
            "set engine to semantic or hybrid"
        )
    _check_names(tools)
    parts = _Parts(
        segmenter=segmenter,
        settings=settings,
        embedder=embedder,
        vector_cache=vector_cache,
        vector_store=vector_store,
        progress=progress,
    )
    if vector_store is not None:
        return _built(tools, engine, parts)
    key = _content_key(tools, _how(engine, parts))
    index = _recent.get(key)
    if index is None:
        index = _built(tools, engine, parts)
        _recent.keep(key, index)
    return index


def _built(tools: Sequence[Tool], engine: str, parts: _Parts) -> ToolSearchIndex:
    floor = _DEFAULTS[1] if parts.settings is None else parts.settings.min_relevance
    index = _preset_index(tools, parts.settings.preset if parts.settings else None, engine, floor)
    if index is not None:
        return index
    builder = ENGINES.get(engine)
    if builder is None:
        return _index_of_plugin(tools, engine, parts.settings)
    return RankedIndex(
        builder(tools, parts), min_relevance=floor, has_operators=engine not in _OWN_SYNTAX
    )


def _how(engine: str, parts: _Parts) -> str:
    """All that an index depends on beside its tools."""
    settings = parts.settings
    if settings is None:
        floor, preset = _DEFAULTS[1], None
    else:
        floor, preset = settings.min_relevance, settings.preset
    how = f"{engine} {floor!r} {parts.segmenter} {preset}"
    if engine in EMBEDDING_ENGINES:
        named = (settings.hybrid, settings.embedder) if settings else ()
        how += f" {named!r} {parts.embedder.identity if parts.embedder else None}"
    return how if engine in ENGINES else f"{how} {settings!r}"


def _index_of_plugin(
    tools: Sequence[Tool], engine: str, settings: SearchSettings | None
) -> ToolSearchIndex:
    """What another package builds; see `tool_search.config.plugins`."""
    entry = installed_engines().get(engine)
    if entry is None:
        known = ", ".join(sorted(ENGINES.keys() | installed_engines().keys()))
        raise SearchError(f"no search engine {engine!r}; there are {known}")
    try:
        index = entry.load()(tools, settings)
    except Exception as exc:
        raise SearchError(
            f"the search engine {engine!r} ({entry.value}) cannot be built: "
            f"{type(exc).__name__}: {exc}"
        ) from exc
    if not isinstance(index, ToolSearchIndex):
        raise SearchError(
            f"the search engine {engine!r} ({entry.value}) built no ToolSearchIndex, which has "
            f"search and updated, but {index!r}"
        )
    return index


def _preset_index(
    tools: Sequence[Tool], preset: str | None, engine: str, floor: float
) -> ToolSearchIndex | None:
    if preset is None:
        return None
    from tool_search.search.presets import preset_index  # noqa: PLC0415 - few ask for one

    return preset_index(tools, preset=preset, engine=engine, min_relevance=floor)


def _check_names(tools: Sequence[Tool]) -> None:
    counts = Counter(tool.name for tool in tools)
    if len(counts) < len(tools):
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise DuplicateToolError(
            f"two tools to search have the same name: {', '.join(map(repr, twice[:5]))}; "
            "rename one, or give its server a prefix"
        )


def _content_key(tools: Sequence[Tool], how: str) -> str:
    digest = hashlib.sha256(how.encode())
    for fingerprint in sorted(tool.fingerprint for tool in tools):
        digest.update(fingerprint.encode())
    return digest.hexdigest()
