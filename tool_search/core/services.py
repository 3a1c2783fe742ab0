"""The protocols of search as a conversation is given it: nothing here loads an engine or a text.

`tool_search.search.discovery.search_services.SearchServices` answers with the engines and texts of
this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.schemas import Schemas
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice
from tool_search.core.results import SearchResult, ToolSearchIndex, Votes
from tool_search.i18n import Language

__all__ = ["Lesson", "SearchTool", "SearchesCatalogs", "Trail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A query that a tool answered.

    Attributes:
        query: The query as it was asked.
        tool: The tool's canonical name.
        strength: 1; one half if another query found the tool, one quarter if the call was
            in the next turn.
    """

    query: str
    tool: str
    strength: float = 1.0


class Trail(Protocol):
    """The searches of one conversation that may still teach something."""

    def begin_turn(self) -> None:
        """Begin a user turn; searches before the last turn teach no more."""
        ...

    def replied(self) -> None:
        """Begin a reply of the model; its calls are made at once."""
        ...

    def searched(self, result: SearchResult) -> None:
        """Record a search, which may teach later."""
        ...

    def succeeded(self, name: str) -> None:
        """Record a call that a tool answered: the searches that led to it teach now."""
        ...

    def called_before(self, name: str) -> None:
        """Record a call of an earlier request: the searches that led to it teach no more."""
        ...

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons since the last call of this method."""
        ...


class SearchTool(Protocol):
    """The search tool of one conversation, over one catalog; see `ToolSearchTool`."""

    def definition(self) -> Tool:
        """Return the search tool as a definition; its text depends on the catalog."""
        ...

    def run(
        self,
        arguments: Mapping[str, Any],
        *,
        callable_now: frozenset[str] = frozenset(),
        discovered: int = 0,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Answer one call; no arguments of a model raise."""
        ...


class SearchesCatalogs(Protocol):
    """The search of the conversations that share some settings; any thread may ask it.

    Attributes:
        embeds: True if a search embeds its query, and so may wait for an embedder.
        schemas: The readers of tools' schemas.
    """

    embeds: bool
    schemas: Schemas

    def index_of(self, catalog: ToolCatalog) -> ToolSearchIndex:
        """Return the index over a catalog's deferred tools.

        Raises:
            SearchError: The engine is unknown, or has failed.
        """
        ...

    def updated(
        self, index: ToolSearchIndex, before: ToolCatalog, after: ToolCatalog
    ) -> ToolSearchIndex:
        """Return the index over a changed catalog's deferred tools.

        Raises:
            SearchError: The engine has failed.
        """
        ...

    def with_votes(self, index: ToolSearchIndex, votes: Votes | None) -> ToolSearchIndex:
        """Return the index with votes added to its scores, if it can take votes."""
        ...

    def search_tool(
        self, index: ToolSearchIndex, catalog: ToolCatalog, *, name: str, language: Language
    ) -> SearchTool:
        """Return the search tool over an index, under the name that the model calls."""
        ...

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
        ...

    def explain(
        self, index: ToolSearchIndex, catalog: ToolCatalog, query: str, names: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return the reasons for which a query found tools, by name, as JSON values."""
        ...

    def listing(
        self,
        catalog: ToolCatalog,
        *,
        name: str,
        language: Language,
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> str:
        """Return the listing of tools that wait to be found; empty for none.

        Args:
            catalog: The tools.
            name: The search tool's name.
            language: The language of the conversation.
            denied: Returns the names of those tools that its first user may not call.
        """
        ...

    def notices(self, catalog: ToolCatalog, *, is_searched: bool) -> Iterable[Notice]:
        """Return what an operator should know of a catalog, and of copies that are searched."""
        ...

    def text_bytes(self, catalog: ToolCatalog) -> int:
        """Return the UTF-8 bytes of the active tools' definitions as JSON, keys included."""
        ...

    def trail(self) -> Trail:
        """Return the trail of a new conversation."""
        ...
