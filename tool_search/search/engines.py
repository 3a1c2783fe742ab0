"""The engines by name, and the one place where an index is built."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from tool_search.catalog import Tool
from tool_search.errors import DuplicateToolError, SearchError
from tool_search.search.bm25 import Bm25Engine
from tool_search.search.index import SearchSettings, ToolSearchIndex
from tool_search.search.jieba_words import jieba_segmenter
from tool_search.search.rank_bm25 import RankBm25Engine
from tool_search.search.ranked import Engine, RankedIndex

__all__ = ["ENGINES", "build_index"]

EngineBuilder = Callable[[Iterable[Tool], SearchSettings], Engine]

_MOST_CACHED = 8


def _bm25(tools: Iterable[Tool], settings: SearchSettings) -> Engine:
    segmenter = jieba_segmenter() if settings.segmenter == "jieba" else None
    return Bm25Engine(tools, segmenter=segmenter)


def _rank_bm25(tools: Iterable[Tool], _settings: SearchSettings) -> Engine:
    return RankBm25Engine(tools)


ENGINES: Mapping[str, EngineBuilder] = {"bm25": _bm25, "rank_bm25": _rank_bm25}
"""What builds each engine. An engine is one module and one line here."""


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
            while len(self._indexes) > _MOST_CACHED:
                self._indexes.popitem(last=False)


_recent = _RecentIndexes()


def build_index(tools: Sequence[Tool], settings: SearchSettings | None = None) -> ToolSearchIndex:
    """An index over the tools; the same one for equal tools and settings.

    Args:
        tools: What is searched, in any order; names must differ.
        settings: How; without them the defaults.

    Raises:
        DuplicateToolError: Two tools have the same name.
        SearchError: There is no such engine.

    >>> index = build_index([Tool(name="get_weather"), Tool(name="send_mail")])
    >>> [match.name for match in index.search("weather in Paris", limit=5).matches]
    ['get_weather']
    """
    settings = settings or SearchSettings()
    builder = ENGINES.get(settings.engine)
    if builder is None:
        known = ", ".join(sorted(ENGINES))
        raise SearchError(f"no search engine {settings.engine!r}; there are {known}")
    _check_names(tools)
    key = _content_key(tools, settings)
    index = _recent.get(key)
    if index is None:
        index = RankedIndex(builder(tools, settings), min_relevance=settings.min_relevance)
        _recent.keep(key, index)
    return index


def _check_names(tools: Sequence[Tool]) -> None:
    counts = Counter(tool.name for tool in tools)
    if len(counts) < len(tools):
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise DuplicateToolError(
            f"two tools to search have the same name: {', '.join(map(repr, twice[:5]))}; "
            "rename one, or give its server a prefix"
        )


def _content_key(tools: Sequence[Tool], settings: SearchSettings) -> str:
    digest = hashlib.sha256(repr(settings).encode("utf-8", "replace"))
    for fingerprint in sorted(tool.fingerprint for tool in tools):
        digest.update(fingerprint.encode())
    return digest.hexdigest()
