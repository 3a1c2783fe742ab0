"""`build_index`, which builds every index by its row in `tool_search.config.engines`."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from importlib import import_module
from operator import attrgetter
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

from tool_search.config.engines import (
    EMBEDDING_ENGINES,
    ENGINES,
    PRESETS,
    EngineRow,
    PresetRow,
    installed_engines,
)
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import ToolSearchIndex
from tool_search.errors import (
    ConfigurationError,
    DuplicateToolError,
    InvalidToolError,
    SearchError,
)
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.ranking import RankedIndex, Scorer
from tool_search.search.vectors.embedder import Embedder, EmbeddingProgress
from tool_search.search.vectors.store import VectorStore

if TYPE_CHECKING:
    # Loading pydantic takes longer than indexing 1,000 tools.
    from tool_search.config.search import SearchSettings
    from tool_search.search.vectors.cache import VectorCache

__all__ = [
    "EMBEDDING_ENGINES",
    "ENGINES",
    "PRESETS",
    "EngineRow",
    "PresetRow",
    "build_index",
    "update_index",
]


_MAX_CACHED = 8
# The defaults of `SearchSettings`, repeated to load without pydantic; a test compares them.
_DEFAULTS = ("bm25", 0.1, "builtin")


class _RecentIndexes:
    """The indexes that were used last, by content key; safe to share between threads.

    An index that several threads ask for at the same time is built once: the first thread
    builds it, the others wait for it, and get its error if it fails.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._indexes: OrderedDict[str, ToolSearchIndex] = OrderedDict()
        self._building: dict[str, _Building] = {}

    def get(self, key: str, build: Callable[[], ToolSearchIndex]) -> ToolSearchIndex:
        while True:
            with self._lock:
                index = self._indexes.get(key)
                if index is not None:
                    self._indexes.move_to_end(key)
                    return index
                building = self._building.get(key)
                if building is None:
                    own = self._building[key] = _Building()
                    break
            if building.thread == get_ident():
                raise SearchError(
                    "an engine asks for the index that it builds at this moment; call the "
                    "engine that it wraps with other settings"
                )
            try:
                return building.result.result()
            except CancelledError:
                continue  # the builder was interrupted: somebody else builds it
        try:
            index = build()
        except BaseException as exc:
            self._finish(key, None)
            if isinstance(exc, Exception):
                own.result.set_exception(exc)
            else:
                own.result.cancel()
            raise
        self._finish(key, index)
        own.result.set_result(index)
        return index

    def _finish(self, key: str, index: ToolSearchIndex | None) -> None:
        with self._lock:
            del self._building[key]
            if index is not None:
                self._indexes[key] = index
            while len(self._indexes) > _MAX_CACHED:
                self._indexes.popitem(last=False)


class _Building:
    """An index that a thread is building."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.result: Future[ToolSearchIndex] = Future()


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
    """Return an index over the tools; the same object for equal tools and settings.

    May block; an index that several threads ask for at once is built once.

    Args:
        tools: The tools to search, in any order; names must differ.
        settings: The `search` section; None for the defaults.
        embedder: Makes the vectors of `semantic` and `hybrid`; replaces the embedder that
            the settings name.
        vector_cache: Keeps vectors; replaces the file that the settings name.
        vector_store: Searches vectors, in place of a store in memory. It must be empty,
            and belongs to this index alone.
        progress: Called with the number of embedded tools and of all tools to embed.

    Raises:
        DuplicateToolError: Two tools have the same name.
        SearchError: The engine is unknown, a package that it needs is not installed, or
            the embedder or the engine of another package failed.

    >>> index = build_index([Tool(name="get_weather"), Tool(name="send_mail")])
    >>> [match.name for match in index.search("weather in Paris", limit=5).matches]
    ['get_weather']
    """
    engine, segmenter = _engine_of(settings)
    if not (embedder is None and vector_store is None):
        _check_embeds(engine)
    _check_names(tools)
    options = EngineOptions(
        segmenter=segmenter,
        settings=settings,
        embedder=embedder,
        vector_cache=vector_cache,
        vector_store=vector_store,
        progress=progress,
    )
    if vector_store is not None:
        return _build(tools, engine, options)
    key = _content_key(tools, _options_key(engine, options))
    return _recent.get(key, partial(_build, tools, engine, options))


def _engine_of(settings: SearchSettings | None) -> tuple[str, str]:
    """Return the name of the engine, and that of what cuts texts into words."""
    if settings is None:
        return _DEFAULTS[0], _DEFAULTS[2]
    _check_settings(settings)
    return settings.engine, settings.segmenter


def _check_embeds(engine: str) -> None:
    if engine not in EMBEDDING_ENGINES:
        raise SearchError(
            f"engine {engine!r} takes no embedder and no vector store; "
            "set engine to semantic or hybrid"
        )


def update_index(
    index: ToolSearchIndex,
    tools: Sequence[Tool],
    settings: SearchSettings,
    *,
    added: Sequence[Tool],
    removed: Sequence[str],
) -> ToolSearchIndex:
    """Return the index over some tools, made from one over others, and keep it.

    `build_index` then returns it for these tools: 10,000 take seconds to index, and five
    more a few milliseconds.

    Args:
        index: The index over the tools of before, as `build_index` makes it.
        tools: All tools of the new index.
        settings: The settings of `index`.
        added: The tools that are new or changed.
        removed: The names of the tools that are gone.

    Raises:
        SearchError: The engine failed.
    """
    options = EngineOptions(segmenter=settings.segmenter, settings=settings)
    key = _content_key(tools, _options_key(settings.engine, options))
    return _recent.get(key, partial(index.updated, added=added, removed=removed))


def _build(tools: Sequence[Tool], engine: str, options: EngineOptions) -> ToolSearchIndex:
    settings = options.settings
    floor = _DEFAULTS[1] if settings is None else settings.min_relevance
    preset = PRESETS.get(settings.preset or "") if settings else None
    home = preset.indexes.get(engine) if preset else None
    if home is not None:
        index: ToolSearchIndex = _load(home)(tools, settings)
        return index
    row = ENGINES.get(engine)
    if row is None:
        return _index_of_plugin(tools, engine, settings)
    scorer = _build_scorer(tools, engine, row, options)
    return RankedIndex(scorer, min_relevance=floor, has_operators=not row.has_own_syntax)


def _build_scorer(
    tools: Sequence[Tool], engine: str, row: EngineRow, options: EngineOptions
) -> Scorer:
    try:
        scorer: Scorer = _load(row.build)(tools, options)
    except ModuleNotFoundError as exc:
        if row.extra is None:
            raise
        raise SearchError(
            f"the search engine {engine!r} needs the package {exc.name!r}: "
            f"pip install 'tool-search-middleware[{row.extra}]'; in a clone: "
            f"pip install '.[{row.extra}]'"
        ) from exc
    return scorer


def _load(home: str) -> Any:
    """Return the object that a row names as `module:name`."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def _options_key(engine: str, options: EngineOptions) -> str:
    """Return the identity of everything but the tools that an index depends on."""
    settings = options.settings
    if settings is None:
        floor, preset = _DEFAULTS[1], None
    else:
        floor, preset = settings.min_relevance, settings.preset
    key = f"{engine} {floor!r} {options.segmenter} {preset}"
    if settings is not None and settings.boosts is not None:
        key += f" {settings.boosts!r}"
    if engine in EMBEDDING_ENGINES:
        named = (settings.hybrid, settings.embedding, settings.embedder) if settings else ()
        key += f" {named!r} {options.embedder.identity if options.embedder else None}"
    return key if engine in ENGINES else f"{key} {settings!r}"


def _index_of_plugin(
    tools: Sequence[Tool], engine: str, settings: SearchSettings | None
) -> ToolSearchIndex:
    """Return the index that another package builds; see `tool_search.config.engines`."""
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


def _check_settings(settings: Any) -> None:
    if not hasattr(settings, "engine"):
        raise ConfigurationError(
            f"settings must be SearchSettings, not {settings!r}; "
            "write SearchSettings(engine='bm25'), or leave it out"
        )


def _check_names(tools: Sequence[Tool]) -> None:
    wrong: Any = next((tool for tool in tools if not isinstance(tool, Tool)), None)
    if wrong is not None:
        raise InvalidToolError(
            f"an index is built over Tool objects, not {wrong!r}; write item.tool of an "
            "ExecutableTool, or tool_from_function(function).tool"
        )
    counts = Counter(tool.name for tool in tools)
    if len(counts) < len(tools):
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise DuplicateToolError(
            f"two tools to search have the same name: {', '.join(map(repr, twice[:5]))}; "
            "rename one, or give its server a prefix"
        )


def _content_key(tools: Sequence[Tool], options_key: str) -> str:
    fingerprints = sorted(map(attrgetter("fingerprint"), tools))
    return hashlib.sha256("".join((options_key, *fingerprints)).encode()).hexdigest()
