"""One search of a bot's tools, explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tool_search.catalog.near_copies import copies_of
from tool_search.cli.doctor.findings import Finding
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.search import SearchResult, build_index
from tool_search.search.index.explanation import Explanation
from tool_search.search.index.older_first import search_older_first
from tool_search.search.index.ranking import RankedIndex

__all__ = ["ExplainedSearch", "explained_search", "query_findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedSearch:
    """One search, with the parts of each score.

    Attributes:
        result: The result.
        reasons: The explanations by tool; empty if the engine has none.
        core: Tools that the query fits, and that are always sent, so that no search has them.
    """

    result: SearchResult
    reasons: dict[str, Explanation]
    core: tuple[str, ...]


def explained_search(
    catalog: ToolCatalog, query: str, settings: SearchSettings, *, limit: int
) -> ExplainedSearch:
    """Search the deferred tools, as a model's search does.

    Raises:
        ConfigurationError: The engine cannot be built.
        SearchError: The engine cannot index these tools, or failed.
    """
    index = build_index(catalog.deferred, settings)
    copies = copies_of(catalog) if settings.preset is None else {}
    found = search_older_first(
        index, query, limit=limit, allowed=None, copies=copies, tools=catalog
    )
    names = [match.name for match in found.matches]
    reasons = index.explain(query, names) if isinstance(index, RankedIndex) else ()
    core = build_index(catalog.core, SearchSettings()).search(query, limit=limit)
    return ExplainedSearch(
        result=found,
        reasons={each.tool: each for each in reasons},
        core=tuple(match.name for match in core.matches),
    )


def query_findings(found: ExplainedSearch) -> Iterator[Finding]:
    """Yield why a search finds nothing, or which of its words no tool has."""
    result = found.result
    words = ", ".join(result.unmatched)
    if not result.matches:
        values = {"query": result.query, "words": words or "-", "tools": result.total_tools}
        yield Finding(code="query_finds_nothing", values=values)
    elif words:
        values = {"query": result.query, "words": words}
        yield Finding(code="query_words_unknown", values=values)
