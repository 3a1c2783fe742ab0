"""Tool search: the seam, and what stands behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.search.engines import build_index
from tool_search.search.evaluate import EvaluationReport, JudgedQuery, evaluate
from tool_search.search.index import ToolSearchIndex
from tool_search.search.result import SearchMatch, SearchResult

if TYPE_CHECKING:
    from tool_search.config import SearchSettings

__all__ = [
    "EvaluationReport",
    "JudgedQuery",
    "SearchMatch",
    "SearchResult",
    "SearchSettings",
    "ToolSearchIndex",
    "build_index",
    "evaluate",
]


def __getattr__(name: str) -> Any:
    """`SearchSettings` from `tool_search.config`, loaded when it is asked for."""
    if name != "SearchSettings":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tool_search.config import SearchSettings  # noqa: PLC0415 - the settings' library is slow

    return SearchSettings
