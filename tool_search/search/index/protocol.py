"""The seam every search engine stands behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from tool_search.catalog.catalog import Tool
from tool_search.search.index.result import SearchResult

__all__ = ["ToolSearchIndex"]


@runtime_checkable
class ToolSearchIndex(Protocol):
    """A searchable, immutable set of tools."""

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """The tools that fit the query, best first, equal scores by name.

        Args:
            query: Words in any language; of several queries the results are merged.
            limit: How many matches at most; 0 or less gives none, but counts.
            allowed: Says by name which tools may be found; a tool that may not
                is in no match and in no count.

        Returns:
            Matches with scores from 0 to 1. A query without a letter or digit, and
            an empty index, give a result without matches. Nothing a model can
            write raises.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        """An index with tools added or replaced and others gone; this one stays as it is.

        Ranks exactly as an index built afresh, and shares structure with this one.
        """
        ...
