"""The engines by name, and the one place where an index is built."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from tool_search.catalog import Tool
from tool_search.errors import DuplicateToolError, SearchError
from tool_search.search.bm25 import Bm25Engine
from tool_search.search.index import ToolSearchIndex
from tool_search.search.jieba_words import jieba_segmenter
from tool_search.search.lexical import LexicalEngine
from tool_search.search.rank_bm25 import RankBm25Engine
from tool_search.search.ranked import Engine, RankedIndex
from tool_search.search.regex import RegexEngine

if TYPE_CHECKING:
    # At run time the settings' library takes longer to load than 1,000 tools to index.
    from tool_search.config import SearchSettings

__all__ = ["ENGINES", "build_index"]

EngineBuilder = Callable[[Iterable[Tool], str], Engine]

_MOST_CACHED = 8
# Those of `SearchSettings`, which a test compares.
_DEFAULTS = ("bm25", 0.1, "builtin")


def _bm25(tools: Iterable[Tool], segmenter: str) -> Engine:
    return Bm25Engine(tools, segmenter=jieba_segmenter() if segmenter == "jieba" else None)


def _rank_bm25(tools: Iterable[Tool], _segmenter: str) -> Engine:
    return RankBm25Engine(tools)


def _lexical(tools: Iterable[Tool], _segmenter: str) -> Engine:
    return LexicalEngine(tools)


def _regex(tools: Iterable[Tool], segmenter: str) -> Engine:
    return RegexEngine(tools, segmenter=jieba_segmenter() if segmenter == "jieba" else None)


ENGINES: Mapping[str, EngineBuilder] = {
    "bm25": _bm25,
    "rank_bm25": _rank_bm25,
    "lexical": _lexical,
    "regex": _regex,
}
"""What builds each engine. An engine is one module and one line here."""

_OWN_SYNTAX = frozenset(("regex",))
"""Engines whose queries are not in the query language."""


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
        SearchError: There is no such engine, or what it needs is not installed.

    >>> index = build_index([Tool(name="get_weather"), Tool(name="send_mail")])
    >>> [match.name for match in index.search("weather in Paris", limit=5).matches]
    ['get_weather']
    """
    engine, floor, segmenter = _DEFAULTS
    preset = None
    if settings is not None:
        engine, floor, segmenter = settings.engine, settings.min_relevance, settings.segmenter
        preset = settings.preset
    builder = ENGINES.get(engine)
    if builder is None:
        raise SearchError(f"no search engine {engine!r}; there are {', '.join(sorted(ENGINES))}")
    _check_names(tools)
    key = _content_key(tools, f"{engine} {floor!r} {segmenter} {preset}")
    index = _recent.get(key)
    if index is None:
        index = _preset_index(tools, preset, engine, floor)
        if index is None:
            index = RankedIndex(
                builder(tools, segmenter),
                min_relevance=floor,
                has_operators=engine not in _OWN_SYNTAX,
            )
        _recent.keep(key, index)
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
