"""Tool search: the seam, and what stands behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.search.embedder import Embedder
from tool_search.search.engines import build_index
from tool_search.search.evaluate import EvaluationReport, JudgedQuery, evaluate
from tool_search.search.index import ToolSearchIndex
from tool_search.search.result import SearchMatch, SearchResult
from tool_search.search.vector_store import VectorStore

if TYPE_CHECKING:
    from tool_search.config import SearchSettings
    from tool_search.search.vector_cache import VectorCache

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


def __getattr__(name: str) -> Any:
    """What is loaded when it is asked for: the settings' library is slow, and so is SQLite."""
    if name == "SearchSettings":
        from tool_search.config import SearchSettings  # noqa: PLC0415

        return SearchSettings
    if name == "VectorCache":
        from tool_search.search.vector_cache import VectorCache  # noqa: PLC0415

        return VectorCache
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
