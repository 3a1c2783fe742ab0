"""Tool search: the seam, and what stands behind it."""

from tool_search.search.engines import build_index
from tool_search.search.evaluate import EvaluationReport, JudgedQuery, evaluate
from tool_search.search.index import SearchSettings, ToolSearchIndex
from tool_search.search.result import SearchMatch, SearchResult

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
