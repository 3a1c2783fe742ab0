"""Tool search: the seam, and what stands behind it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tool_search.search.build import build_index
from tool_search.search.index.protocol import SearchMatch, SearchResult, ToolSearchIndex
from tool_search.search.vectors.embedder import Embedder
from tool_search.search.vectors.store import VectorStore

if TYPE_CHECKING:
    from tool_search.config.search import SearchSettings
    from tool_search.search.evaluation import EvaluationReport, JudgedQuery, evaluate
    from tool_search.search.vectors.cache import VectorCache

__all__ = [
    "Embedder",
    "EvaluationReport",
    "JudgedQuery",
    "SearchMatch",
    "SearchResult",
    "SearchSettings",
    "ToolSearchIndex",
    "VectorCache",
    "VectorStore",
    "build_index",
    "evaluate",
]


_HOMES = {
    "SearchSettings": "tool_search.config.search",
    "EvaluationReport": "tool_search.search.evaluation",
    "JudgedQuery": "tool_search.search.evaluation",
    "evaluate": "tool_search.search.evaluation",
    "VectorCache": "tool_search.search.vectors.cache",
}


def __getattr__(name: str) -> Any:
    """What is loaded when it is asked for: the settings' library is slow, and so is SQLite."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
