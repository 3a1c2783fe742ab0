"""The search that conversations are given: the engines, texts and lessons of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from tool_search.catalog.near_copies import copies_of
from tool_search.catalog.schema.declared import text_bytes
from tool_search.catalog.validation import SCHEMAS
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog, catalog_changes
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice
from tool_search.core.services import SearchResult, SearchTool, ToolSearchIndex, Votes
from tool_search.i18n import Language
from tool_search.search.build import PRESETS, build_index, update_index
from tool_search.search.discovery.catalog_notices import catalog_notices, copy_notices
from tool_search.search.discovery.listing import list_tools
from tool_search.search.discovery.search_tool import ToolSearchTool
from tool_search.search.discovery.search_trail import SearchTrail
from tool_search.search.explained import explained_matches
from tool_search.search.index.older_first import search_older_first
from tool_search.search.learned import with_votes
from tool_search.search.text.query_language import parse_query, selected_names

__all__ = ["SearchServices"]


class SearchServices:
    """The search of the conversations that share some settings.

    Args:
        config: The settings.
        index_of: Returns the index over a catalog's deferred tools; raises SearchError if it
            cannot. None: `build_index`.

    Attributes:
        embeds: True if a search embeds its query, and so may wait for an embedder.
        schemas: The readers of tools' schemas.
    """

    def __init__(
        self,
        config: ToolSearchConfig,
        index_of: Callable[[ToolCatalog], ToolSearchIndex] | None = None,
    ) -> None:
        self._config = config
        self._given = index_of
        self.embeds = config.search.embeds
        self.schemas = SCHEMAS

    def index_of(self, catalog: ToolCatalog) -> ToolSearchIndex:
        """Return the index over a catalog's deferred tools."""
        if self._given is not None:
            return self._given(catalog)
        return build_index(catalog.deferred, self._config.search)

    def updated(
        self, index: ToolSearchIndex, before: ToolCatalog, after: ToolCatalog
    ) -> ToolSearchIndex:
        """Return the index over a changed catalog's deferred tools."""
        changes = catalog_changes(before, after)
        if self._given is not None:
            return index.updated(**changes)
        # Other conversations, which begin with this catalog, need not build theirs.
        return update_index(index, after.deferred, self._config.search, **changes)

    def with_votes(self, index: ToolSearchIndex, votes: Votes | None) -> ToolSearchIndex:
        """Return the index with votes added to its scores, if it can take votes."""
        return with_votes(index, votes)

    def search_tool(
        self, index: ToolSearchIndex, catalog: ToolCatalog, *, name: str, language: Language
    ) -> SearchTool:
        """Return the search tool over an index, under the name that the model calls."""
        home = self._preset_tool(name)
        kind: Any = ToolSearchTool
        more: dict[str, Any] = {}
        if home is not None:
            module, _, named = home.partition(":")
            kind, more = (
                getattr(import_module(module), named),
                {"answer": self._config.search.answer},
            )
        made: SearchTool = kind(
            index,
            catalog,
            name=name,
            max_results=self._config.max_results,
            max_results_total=self._config.max_results_total,
            language=language,
            **more,
        )
        return made

    def _preset_tool(self, name: str) -> str | None:
        """Return the `module:class` of a preset's own search tool, if it is the one of a name."""
        row = PRESETS.get(self._config.search.preset or "")
        return row.search_tools.get(name) if row else None

    def rank(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        message: str,
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the best tools for a message, by its words alone; none if it has operators."""
        if selected_names(message) or parse_query(message) is not None:
            return SearchResult(query=message)
        return search_older_first(
            index,
            message,
            limit=limit,
            allowed=allowed,
            copies=copies_of(catalog),
            tools=catalog,
        )

    def explain(
        self, index: ToolSearchIndex, catalog: ToolCatalog, query: str, names: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return the reasons for which a query found tools, by name, as JSON values."""
        return explained_matches(index, catalog, query, names)

    def listing(
        self,
        catalog: ToolCatalog,
        *,
        name: str,
        language: Language,
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> str:
        """Return the listing of tools that wait to be found; empty for none."""
        # The models of another system know its texts as they are.
        if self._preset_tool(name) is not None:
            return ""
        return list_tools(catalog, self._config, language, denied)

    def notices(self, catalog: ToolCatalog, *, is_searched: bool) -> Iterable[Notice]:
        """Return what an operator should know of a catalog, and of copies that are searched."""
        copied = catalog.once(copy_notices) if is_searched else ()
        return (*catalog.once(catalog_notices), *copied)

    def text_bytes(self, catalog: ToolCatalog) -> int:
        """Return the UTF-8 bytes of the active tools' definitions as JSON, keys included."""
        return catalog.once(text_bytes)

    def trail(self) -> SearchTrail:
        """Return the trail of a new conversation."""
        return SearchTrail()
