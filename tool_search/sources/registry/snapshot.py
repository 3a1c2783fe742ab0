"""The tools of a registry at one version: catalog, index, order and filters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import normal_tags
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import SearchMatch, ToolSearchIndex
from tool_search.errors import SearchError, ToolSearchError, UnstableOrderError
from tool_search.runner.execution.results import describe_exception
from tool_search.search.build import build_index
from tool_search.search.text.query_language import selected_names
from tool_search.sources.registry.facts import ToolSummary

if TYPE_CHECKING:
    # Loading pydantic takes longer than indexing 1,000 tools.
    from tool_search.config.search import SearchSettings

__all__ = ["Filters", "IndexMaker", "Snapshot"]

IndexMaker = Callable[[Sequence[Tool]], ToolSearchIndex]
"""Makes an index of one's own; the tools are sorted by id."""

_MAX_RANKINGS = 16
_SCORE_TYPES = {"semantic": "embedding", "rank_bm25": "bm25"}


@dataclass(frozen=True, slots=True)
class Filters:
    """The tools that a search or a page is about.

    Attributes:
        namespace: Exactly this one; None for all. No tool is in the namespace "".
        tags: Tools with any of these tags; empty for all.
        category: This one, in any case; None for all. No tool is of the category "".
    """

    namespace: str | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None

    @property
    def is_open(self) -> bool:
        """True if every tool passes."""
        return self.namespace is None and self.category is None and not self.tags

    def select(self, tools: Iterable[Tool]) -> Iterable[Tool]:
        """Return the tools that pass."""
        wanted = _tag_keys(self.tags)
        category = self.category.strip().casefold() if self.category is not None else None
        return (
            tool
            for tool in tools
            if (self.namespace is None or tool.namespace == (self.namespace or ()))
            and (category is None or (tool.category or "").strip().casefold() == (category or ()))
            and (not self.tags or not wanted.isdisjoint(_tag_keys(tool.tags)))
        )


@contextmanager
def _typed_errors(problem: str) -> Iterator[None]:
    """Raise what an engine of one's own raises as a `SearchError`."""
    try:
        yield
    except ToolSearchError:
        raise
    except Exception as exc:
        raise SearchError(f"{problem}: {describe_exception(exc)}") from exc


def _tag_keys(tags: Iterable[str]) -> set[str]:
    """Return the forms in which tags are compared; normalizing drops other scripts."""
    written = tuple(tags)
    return {*normal_tags(written), *("-".join(tag.casefold().split()) for tag in written)} - {""}


class Snapshot:
    """The registered tools at one version, with an index that is built at its first use.

    Args:
        version: The registry's version.
        catalog: The tools under the names that a conversation calls them by.
        ids: The id of each tool of the catalog, by name.
        summaries: The summary of each tool, by id.
        settings: The `search` section; None for the defaults.
        make_index: Makes an index of one's own; None for `build_index`.
        before: `built` of an older snapshot: its index is changed if the tools are nearly the
            same.
    """

    def __init__(
        self,
        *,
        version: int,
        catalog: ToolCatalog,
        ids: Mapping[str, str],
        summaries: Mapping[str, ToolSummary],
        settings: SearchSettings | None,
        make_index: IndexMaker | None,
        before: tuple[Sequence[Tool], ToolSearchIndex] | None,
    ) -> None:
        self.version = version
        self.catalog = catalog
        self.ids = ids
        self._summaries = summaries
        self._settings = settings
        self._make_index = make_index
        self._before = before
        # The documents of a search: only tools that are switched on, by id.
        self.tools = tuple(sorted(catalog.active, key=lambda tool: ids[tool.name]))
        self.names = {tool_id: name for name, tool_id in ids.items()}
        self._build_lock = Lock()
        self._index: ToolSearchIndex | None = None
        self._rankings: OrderedDict[tuple[str, Filters], tuple[ToolSummary, ...]] = OrderedDict()

    @property
    def index(self) -> ToolSearchIndex:
        """The index; threads that ask for it at once wait for one build."""
        if self._index is None:
            with self._build_lock:
                if self._index is None:
                    self._index = self._build()
                    self._before = None
        return self._index

    @property
    def built(self) -> tuple[Sequence[Tool], ToolSearchIndex] | None:
        """The tools and the index if it was asked for, or else those of an older snapshot."""
        return self._before if self._index is None else (self.tools, self._index)

    def _build(self) -> ToolSearchIndex:
        if self._make_index is not None:
            with _typed_errors("index= failed to make an index"):
                return self._make_index(self.tools)
        if self._before is not None:
            tools, index = self._before
            old = {tool.name: tool for tool in tools}
            new = {tool.name: tool for tool in self.tools}
            added = [tool for name, tool in new.items() if old.get(name) != tool]
            removed = [name for name in old if name not in new]
            if 2 * (len(added) + len(removed)) <= len(new):
                return index.updated(added=added, removed=removed)
        return build_index(self.tools, self._settings)

    def in_order(self, filters: Filters) -> tuple[ToolSummary, ...]:
        """Return the tools that pass, by id."""
        return tuple(self._summaries[self.ids[tool.name]] for tool in filters.select(self.tools))

    def search(self, query: str, limit: int, filters: Filters) -> tuple[ToolSummary, ...]:
        """Return the best tools for a query, equal scores by id; an empty query gives the first."""
        if limit <= 0:
            return ()
        if not query.strip():
            return self.in_order(filters)[:limit]
        index = self.index
        with _typed_errors(f"{type(index).__name__} failed in a search"):
            found = self._rank(index, query, limit, filters)
        return tuple(map(self._as_summary, found))

    def ranking(self, query: str, filters: Filters) -> tuple[ToolSummary, ...]:
        """Return every tool that a query finds, for pages.

        Raises:
            UnstableOrderError: The index does not declare a stable order.
        """
        # Not a property of the protocol: engines of others are asked for it here alone.
        if getattr(self.index, "has_stable_order", False) is not True:
            raise UnstableOrderError(
                f"{type(self.index).__name__} does not declare a stable order, which pages need: "
                "set its attribute has_stable_order to True if equal queries give equal orders, "
                "or use search()"
            )
        if not query.strip():
            return self.in_order(filters)
        key = query, filters
        known = self._rankings.get(key)
        if known is None:
            known = self.search(query, len(self.tools), filters)
            self._rankings[key] = known
            while len(self._rankings) > _MAX_RANKINGS:
                self._rankings.popitem(last=False)
        return known

    def _rank(
        self, index: ToolSearchIndex, query: str, limit: int, filters: Filters
    ) -> Sequence[SearchMatch]:
        allowed = None
        if not filters.is_open:
            allowed = {tool.name for tool in filters.select(self.tools)}.__contains__
        # An order of one's own is kept, and so is that of `select:a,b`.
        if self._make_index is not None or selected_names(query):
            return index.search(query, limit=limit, allowed=allowed).matches[:limit]
        found = index.search(query, limit=limit + 1, allowed=allowed)
        matches = found.matches
        if len(matches) > limit and matches[limit].score == matches[limit - 1].score:
            # Which of the equal ones are among the best is decided by their ids.
            matches = index.search(query, limit=found.total_found, allowed=allowed).matches
        best = sorted(matches, key=lambda match: (-match.score, self.ids[match.name]))
        return best[:limit]

    def _as_summary(self, match: SearchMatch) -> ToolSummary:
        summary = self._summaries[self.ids[match.name]]
        return replace(summary, score=match.score, score_type=self._score_type)

    @property
    def _score_type(self) -> str:
        if self._make_index is not None:
            return ""
        engine = self._settings.engine if self._settings is not None else "bm25"
        return _SCORE_TYPES.get(engine, engine)
