"""The registry: tools from many places, under ids, with backends and documentation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import shown
from tool_search.core.values.redaction import log_failure
from tool_search.errors import (
    InvalidBackendError,
    InvalidToolError,
    RegistryError,
    ToolNotFoundError,
)
from tool_search.sources.registry.backends import Backend, check_backend, default_backend
from tool_search.sources.registry.documentation import (
    DescriptionLevel,
    DocumentationStore,
    ToolDescription,
    ToolDocs,
    ToolExample,
    checked_docs,
    not_found,
)
from tool_search.sources.registry.entries import Entry, Registration, read_tool, with_registration
from tool_search.sources.registry.executor import RegistryExecutor
from tool_search.sources.registry.facts import ToolSummary
from tool_search.sources.registry.following import FollowedSource, ListsTools
from tool_search.sources.registry.pages import Page, check_limit, page_of
from tool_search.sources.registry.snapshot import Filters, IndexMaker, Snapshot
from tool_search.sources.registry.sources import SourceBook

if TYPE_CHECKING:
    # Loading pydantic takes longer than indexing 1,000 tools.
    from tool_search.config.search import SearchSettings
    from tool_search.runner.execution.context import ToolExecutor

__all__ = ["RegistryEvent", "RegistryEventKind", "ToolRegistry"]

RegistryEventKind = Literal["registered", "updated", "backend_removed", "tool_removed", "refreshed"]
"""The kind of a change."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistryEvent:
    """A change of a registry.

    Attributes:
        kind: The kind of the change.
        tool_id: The tool's id; "" for `refreshed`.
        backend: The backend that was registered or removed; None for `refreshed`.
        version: The registry's version after the change.
    """

    kind: RegistryEventKind
    tool_id: str
    backend: Backend | None
    version: int


Listener = Callable[[RegistryEvent], object]


class ToolRegistry:
    """Tools from many places under namespaces and versions.

    The registry keeps registrations and makes a `ToolCatalog` of them; definitions, search and
    execution are those of the rest of the library. Safe to share between threads.

    Args:
        choose: Chooses the backend that runs a tool, of several; default: a local one, or else
            a provider's, or else an MCP server's.
        strict: True if names must be of 1 to 128 characters of `A-Za-z0-9_.-`, and definitions
            must have an input schema. MCP servers may name their tools otherwise.
        max_examples: The most examples that are given for a tool; 0 for all.
        settings: The `search` section; None for the defaults.
        index: Makes the index from the tools, which are sorted by id; default: `build_index`
            with the settings. It declares a stable order by an attribute `has_stable_order`,
            or it is refused for pages.

    >>> registry = ToolRegistry()
    >>> tool = Tool(name="status", namespace="git", description="Show what has changed.")
    >>> registry.register(tool, Backend.mcp("git-server"))
    'git:status'
    >>> [found.id for found in registry.search("what changed")]
    ['git:status']
    """

    def __init__(
        self,
        *,
        choose: Callable[[Sequence[Backend]], Backend] | None = None,
        strict: bool = True,
        max_examples: int = 10,
        settings: SearchSettings | None = None,
        index: IndexMaker | None = None,
    ) -> None:
        self._choose = choose
        self._strict = strict
        self._settings = settings
        self._make_index = index
        self._lock = Lock()
        self._entries: dict[str, Entry] = {}
        self._version = 0
        self._listeners: dict[int, Listener] = {}
        self._listener_ids = count()
        self._snapshot_lock = Lock()
        self._last: Snapshot | None = None
        self._book = NameBook()
        self._sources = SourceBook()
        self._docs = DocumentationStore(self._find_tool, max_examples=max_examples)
        self._executor = RegistryExecutor(self)

    def register(self, tool: Any, backend: Backend, *, docs: ToolDocs | None = None) -> str:
        """Register a tool, or one more backend of it; return its id.

        A registered tool's `tags` and `version` may change, all else of its definition must be
        equal. A backend that the tool has already is replaced.

        Args:
            tool: A `Tool`, or a definition as the library, OpenAI, Anthropic or MCP writes it.
            backend: The place that runs its calls.
            docs: Documentation of the tool.

        Raises:
            InvalidToolError: The tool is wrong, or differs from the registered one.
            InvalidBackendError: The backend is incomplete.
            InvalidDocsError: The documentation is wrong.
        """
        checked = None if docs is None else checked_docs(docs)
        (tool_id,) = self.register_all([(tool, backend)])
        if checked is not None:
            self._docs.document(tool_id, checked)
        return tool_id

    def register_all(self, items: Iterable[tuple[Any, Backend]]) -> tuple[str, ...]:
        """Register several tools with their backends, all or none; return their ids.

        Raises:
            InvalidToolError: As for `register`; nothing is registered.
            InvalidBackendError: As for `register`; nothing is registered.
        """
        read = []
        for given, backend in items:
            check_backend(backend)
            read.append((*read_tool(given, backend, strict=self._strict), backend))
        kinds: list[tuple[RegistryEventKind, str, Backend]] = []
        with self._lock:
            staged: dict[str, Entry] = {}
            for tool, extras, backend in read:
                known = staged.get(tool.id) or self._entries.get(tool.id)
                staged[tool.id] = with_registration(known, tool, extras, backend)
                kinds.append(("updated" if known else "registered", tool.id, backend))
            try:
                for tool_id, entry in staged.items():
                    staged[tool_id] = entry.offered_as(self._sources.claim(entry.tool))
            except InvalidToolError:
                for tool_id in staged.keys() - self._entries.keys():
                    self._sources.release(tool_id)
                raise
            events = self._commit(staged, kinds)
        self._notify(events)
        return tuple(tool_id for _, tool_id, _ in kinds)

    def _commit(
        self,
        staged: dict[str, Entry],
        kinds: Sequence[tuple[RegistryEventKind, str, Backend]],
    ) -> list[RegistryEvent]:
        """Take over staged entries; the caller holds the lock."""
        events: list[RegistryEvent] = []
        changed = {
            tool_id
            for tool_id, entry in staged.items()
            if tool_id not in self._entries or not entry.has_text_of(self._entries[tool_id])
        }
        for kind, tool_id, backend in kinds:
            if tool_id in changed:
                changed.discard(tool_id)
                self._version += 1
            events.append(RegistryEvent(kind, tool_id, backend, self._version))
        self._entries.update(staged)
        return events

    def unregister(self, tool_id: str, backend: Backend) -> None:
        """Remove a backend of a tool; the last one takes the tool with it.

        A namespace without tools is not listed any more. Documentation stays.

        Raises:
            ToolNotFoundError: The tool or the backend is unknown.
            InvalidBackendError: The backend is incomplete.
        """
        key = check_backend(backend).key
        with self._lock:
            entry = self._entry(tool_id)
            removed = entry.backend(key)
            if removed is None:
                listed = ", ".join(map(str, entry.backends))
                raise ToolNotFoundError(
                    f"backend not found: {tool_id!r} has no backend {backend}; it has {listed}"
                )
            kind: RegistryEventKind = "backend_removed"
            if len(entry.backends) == 1:
                kind = "tool_removed"
                del self._entries[tool_id]
                self._sources.release(tool_id)
                self._version += 1
            else:
                self._entries[tool_id] = entry.without(key)
            event = RegistryEvent(kind, tool_id, removed, self._version)
        self._notify([event])

    def get(self, tool_id: str) -> Registration:
        """Return a tool and its backends.

        Raises:
            ToolNotFoundError: The tool is unknown.
        """
        with self._lock:
            entry = self._entry(tool_id)
        return Registration(entry.tool, entry.backends)

    def backend(self, tool_id: str) -> Backend:
        """Return the backend that runs a tool.

        Raises:
            ToolNotFoundError: The tool is unknown.
            InvalidBackendError: `choose` returned something else than one of the backends.
        """
        backends = self.get(tool_id).backends
        if self._choose is None:
            return default_backend(backends)
        chosen = self._choose(backends)
        if chosen not in backends:
            raise InvalidBackendError(
                f"choose returned {shown(chosen)} for {tool_id!r}: it must return one of its "
                f"backends: {', '.join(map(str, backends))}"
            )
        return chosen

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        namespace: str | None = None,
        tags: Iterable[str] = (),
        category: str | None = None,
        min_score: float | None = None,
    ) -> tuple[ToolSummary, ...]:
        """Return the tools that fit a query, best first, equal scores by id.

        An empty query gives the first tools by id. The index is built at the first search
        after a change, which may block.

        Args:
            query: Words in any language, or the query language.
            limit: The most tools; 0 or less gives none.
            namespace: Only tools of this namespace.
            tags: Only tools with one of these tags.
            category: Only tools of this category, in any case.
            min_score: Only tools with at least this score, from 0 to 1.

        Raises:
            SearchError: The engine failed.
        """
        snapshot = self.snapshot()
        filters = _filters(namespace, tags, category)
        found = snapshot.search(_text(query), limit, filters)
        if min_score is None:
            return found
        return tuple(summary for summary in found if summary.score >= min_score)

    def page(
        self,
        query: str = "",
        *,
        limit: int,
        cursor: str | None = None,
        namespace: str | None = None,
        tags: Iterable[str] = (),
        category: str | None = None,
    ) -> Page[ToolSummary]:
        """Return a page of the tools that fit a query; an empty query lists all by id.

        Args:
            query: As for `search`.
            limit: The most tools of the page.
            cursor: `next_cursor` of the page before; None for the first page.
            namespace: As for `search`.
            tags: As for `search`.
            category: As for `search`.

        Raises:
            InvalidCursorError: The cursor is malformed, negative, stale, or of another request.
            RegistryError: The limit is not positive.
            UnstableOrderError: The engine does not declare a stable order.
        """
        check_limit(limit)
        snapshot = self.snapshot()
        filters = _filters(namespace, tags, category)
        return page_of(
            snapshot.ranking(_text(query), filters),
            limit=limit,
            cursor=cursor,
            version=snapshot.version,
            request=["tools", query, filters.namespace, sorted(filters.tags), filters.category],
        )

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces that have tools, sorted."""
        with self._lock:
            return self._namespaces()

    def page_namespaces(self, *, limit: int, cursor: str | None = None) -> Page[str]:
        """Return a page of the namespaces, sorted.

        Raises:
            InvalidCursorError: As for `page`.
            RegistryError: The limit is not positive.
        """
        with self._lock:
            listed, version = self._namespaces(), self._version
        return page_of(listed, limit=limit, cursor=cursor, version=version, request=["namespaces"])

    def describe(self, tool_id: str, level: DescriptionLevel = "summary") -> ToolDescription:
        """Return a tool at a level of detail: `summary`, `schema` or `full`.

        Raises:
            InvalidDocsError: The level is unknown, or only documentation of the tool is known.
            ToolNotFoundError: There is neither a tool nor documentation.
        """
        return self._docs.describe(tool_id, level)

    def document(self, tool_id: str, docs: ToolDocs) -> None:
        """Keep documentation of a tool, which may be registered later.

        Raises:
            InvalidDocsError: An example is too large or is not JSON, or a part has a wrong type.
        """
        self._docs.document(tool_id, docs)

    def examples(self, tool_id: str, *, limit: int = 0) -> tuple[ToolExample, ...]:
        """Return example calls of a tool, at most `max_examples`.

        Raises:
            ToolNotFoundError: There is neither a tool nor documentation.
        """
        return self._docs.examples(tool_id, limit=limit)

    def subscribe(self, callback: Listener | None) -> Callable[[], None]:
        """Call a function after each change, in the thread that made it; return the end of it.

        The registry is not locked meanwhile. The returned function can be called repeatedly.
        """
        if callback is None:
            return lambda: None
        with self._lock:
            key = next(self._listener_ids)
            self._listeners[key] = callback

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return unsubscribe

    def refresh(self) -> int:
        """Build the index anew, tell listeners, and return the new version."""
        with self._lock:
            self._version += 1
            event = RegistryEvent("refreshed", "", None, self._version)
        _ = self.snapshot().index
        self._notify([event])
        return event.version

    @property
    def version(self) -> int:
        """The number of changes so far; cursors are of one version."""
        return self._version

    @property
    def catalog(self) -> ToolCatalog:
        """The tools, each under a name of its own.

        A plain name belongs to the tool that was registered first under it; the tool of another
        namespace is `namespace__name`.
        """
        return self.snapshot().catalog

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the catalog: with `executor` and `subscribe`, a registry is a source."""
        return tuple(self.catalog.values())

    @property
    def executor(self) -> ToolExecutor:
        """Runs calls by the catalog's names, and by ids."""
        return self._executor

    def attach(
        self, executor: Any, *, server: str | None = None, provider: str | None = None
    ) -> None:
        """Say what runs the tools of an MCP server or of a provider.

        Args:
            executor: A `ToolExecutor`, or a source that has one as `executor`. It gets the
                backend's name for the tool.
            server: The name in `Backend.mcp(server)`.
            provider: The id in `Backend.provider(provider, tool)`.

        Raises:
            InvalidBackendError: It cannot run tools, or neither or both of the names are given.
        """
        self._executor.attach(executor, server=server, provider=provider)

    def follow(self, source: ListsTools, *, namespace: str | None = None) -> Callable[[], None]:
        """Register the tools of a source, such as `MCPSource`, and follow its changes.

        Each has a backend of its MCP server, which the source runs. A definition that the
        registry refuses is left out with a warning: `strict=False` takes servers' names.

        Args:
            source: The source.
            namespace: The namespace of all its tools; None: each server's name.

        Returns:
            A function that ends it, and takes the tools out again.
        """
        return FollowedSource(
            self, source, (lambda _: namespace) if namespace else (lambda server: server or None)
        ).start()

    def tool_id(self, name: str) -> str:
        """Return the id of a tool by its name in the catalog, or by its id.

        Raises:
            ToolNotFoundError: The tool is unknown.
        """
        snapshot = self.snapshot()
        if name in snapshot.ids:
            return snapshot.ids[name]
        if name in snapshot.names:
            return name
        raise not_found(name)

    def snapshot(self) -> Snapshot:
        """Return the tools at the current version."""
        last = self._last
        if last is not None and last.version == self._version:
            return last
        with self._snapshot_lock:
            with self._lock:
                version, entries = self._version, dict(self._entries)
            last = self._last
            if last is None or last.version != version:
                last = self._last = self._build(version, entries, last)
            return last

    def _build(self, version: int, entries: dict[str, Entry], before: Snapshot | None) -> Snapshot:
        """Return a new snapshot; the caller holds the lock of snapshots."""
        listed = [entry.listed for entry in entries.values()]
        catalog = ToolCatalog(listed, names=self._book)
        self._book = catalog.book
        ids = {
            catalog.by_source[tool.source].name: tool_id
            for tool, tool_id in zip(listed, entries, strict=True)
        }
        return Snapshot(
            version=version,
            catalog=catalog,
            ids=ids,
            summaries={tool_id: entry.summary for tool_id, entry in entries.items()},
            settings=self._settings,
            make_index=self._make_index,
            before=None if before is None else before.built,
        )

    def _entry(self, tool_id: object) -> Entry:
        entry = self._entries.get(tool_id) if isinstance(tool_id, str) else None
        if entry is None:
            raise not_found(tool_id)
        return entry

    def _find_tool(self, tool_id: str) -> Tool | None:
        with self._lock:
            entry = self._entries.get(tool_id)
        return None if entry is None else entry.tool

    def _namespaces(self) -> tuple[str, ...]:
        spaces = {entry.tool.namespace for entry in self._entries.values()}
        return tuple(sorted(space for space in spaces if space))

    def _notify(self, events: Iterable[RegistryEvent]) -> None:
        for event in events:
            with self._lock:
                listeners = tuple(self._listeners.values())
            for listener in listeners:
                try:
                    listener(event)
                except Exception:  # noqa: BLE001  # a listener may raise anything; others go on
                    log_failure(_log, "a listener failed on %s of %r", event.kind, event.tool_id)


def _filters(namespace: str | None, tags: Iterable[str], category: str | None) -> Filters:
    for name, value in (("namespace", namespace), ("category", category)):
        if value is not None and not isinstance(value, str):
            raise RegistryError(f"{name} must be text or None, not {shown(value)}")
    listed = (tags,) if isinstance(tags, str) else tuple(tags)
    if not all(isinstance(tag, str) for tag in listed):
        raise RegistryError(f"tags must be a list of texts, not {shown(tags)}")
    return Filters(namespace, listed, category)


def _text(query: object) -> str:
    if not isinstance(query, str):
        raise RegistryError(f"a query must be text, not {shown(query)}")
    return query
