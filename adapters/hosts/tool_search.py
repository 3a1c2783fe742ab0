"""`ToolSearch`: everything of a bot that no conversation owns."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tool_search.adapters.hosts.indexes import SharedIndexes
from tool_search.adapters.hosts.learning import HostLearning
from tool_search.adapters.hosts.tool_lists import HostTools
from tool_search.adapters.hosts.view import ToolView
from tool_search.catalog.near_copies import copies_of
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.view import ViewServices
from tool_search.core.messages import Notice
from tool_search.core.services import Lesson, SearchResult, Votes
from tool_search.core.strategies import ToolsAssembler
from tool_search.core.values.json import shown
from tool_search.core.values.redaction import log_failure
from tool_search.errors import ConfigurationError
from tool_search.i18n import language_of, text
from tool_search.search import ToolSearchIndex
from tool_search.search.discovery.search_services import SearchServices
from tool_search.search.discovery.search_tool import clean_match
from tool_search.search.explained import explained_matches
from tool_search.search.index.older_first import search_older_first
from tool_search.search.learned import with_votes
from tool_search.stores.base import EvidenceStore
from tool_search.stores.record import ConversationRecord

__all__ = ["ToolSearch"]

_MAX_WARNED = 1_000
_MAX_FAILED = 256
# After an engine has failed, views declare every tool for this long.
_ENGINE_COOLDOWN_S = 60.0
_log = logging.getLogger(__name__)


class Taught(Protocol):
    """A conversation whose searches have taught something, such as a `ToolView`."""

    user: str | None

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return what searches have taught since the last call of this method."""
        ...


class ToolSearch:
    """Tool search for loops that people already have: one object for all conversations.

    It holds the catalog, the settings, the indexes and what was learned. Threads and event
    loops may share it. A tool without a valid definition is left out, and a warning names it.

    Args:
        tools: `Tool`s, a `ToolCatalog`, Python functions, or definitions as OpenAI, Anthropic
            or MCP write them, mixed. Not needed if each request brings its own.
        config: The settings, such as `load_config("bot.yaml").tool_search`.
        store: The store of what is learned; None: memory of this object.

    Raises:
        ConfigurationError: `config` or `store` is of another type.
        DuplicateToolError: Two tools have the same name.
        InvalidToolError: An item is not a tool, or a function cannot be described.

    >>> search = ToolSearch([{"name": "count_words", "description": "Counts words."}])
    >>> [match.name for match in search.rank("words").matches]
    ['count_words']
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        config: ToolSearchConfig | None = None,
        *,
        store: EvidenceStore | None = None,
    ) -> None:
        self._config = _checked_config(config)
        if store is not None and not isinstance(store, EvidenceStore):
            raise ConfigurationError(
                f"store must be an EvidenceStore, such as SQLiteStore or MemoryStore, not "
                f"{shown(store)}"
            )
        self._lock = threading.Lock()
        self._warned: set[Notice] = set()
        self._failed: dict[str, float] = {}
        self._host_tools = HostTools(self._warn)
        self._indexes = SharedIndexes(self._config.search)
        learning = self._config.learning
        self._learning = HostLearning(
            store, is_shared=learning.shared is not False, keeps_vectors=learning.vectors
        )
        self._services = ViewServices(
            assembler=ToolsAssembler(),
            search=SearchServices(self._config, self._index_of_deferred),
            notify=self._notify,
            has_failed=self._has_failed,
            report_failure=self._report_failure,
        )
        self._catalog = self._own(self._host_tools.own_catalog(tools))

    @property
    def catalog(self) -> ToolCatalog:
        """The bot's own tools, divided into core and deferred."""
        return self._catalog

    @property
    def config(self) -> ToolSearchConfig:
        """The settings."""
        return self._config

    def view(
        self,
        found: Iterable[str] = (),
        *,
        tools: Iterable[Any] | None = None,
        first_message: str = "",
        user: str | None = None,
        allowed: Callable[[str], bool] | None = None,
        record: ConversationRecord | None = None,
    ) -> ToolView:
        """Return what one conversation, or one request of it, shows of the catalog.

        A new list is read and indexed, which takes about 0.3 s for 1,000 definitions: in an
        event loop, await `prepare` first, or call this in a thread. An equal list costs a
        lookup, a list that changed a little the difference.

        Args:
            found: The names that the host kept, in their order: `ToolView.found`.
            tools: The tools of this request, if they differ from one to the next; of two of
                one name the first counts. None: the bot's own.
            first_message: The conversation's first message, whose language `language: auto`
                takes.
            user: The user who asks. What a user's searches taught counts in full for that user,
                and for others as far as several users agree.
            allowed: Returns True for the name of a tool that this caller may call; None: all
                tools without `roles`.
            record: A conversation to go on with, as `ToolView.record` returned it.

        Raises:
            ConfigurationError: The mode is `skills_like`, or an argument is of another type.
            InvalidToolError: An item of `tools` is not a tool.
            SessionError: A tool has the search tool's name.
        """
        if allowed is not None and not callable(allowed):
            raise ConfigurationError(
                f"allowed must be a function of a tool's name, not {shown(allowed)}"
            )
        return ToolView(
            self._catalog if tools is None else self._host_tools.catalog(tools),
            config=self._config,
            services=replace(self._services, votes=lambda: self._votes(user)),
            found=found,
            first_message=first_message,
            user=user,
            denial_reason=None if allowed is None else _denial(allowed),
            record=record,
        )

    def rank(
        self,
        query: str | Sequence[str],
        tools: Iterable[Any] | None = None,
        *,
        limit: int | None = None,
        allowed: Callable[[str], bool] | None = None,
        user: str | None = None,
    ) -> SearchResult:
        """Rank every active tool for a query, with what was learned; core tools count too.

        If the engine fails, the result has its `error`, and a warning is logged.

        Args:
            query: Words in any language; the results of several queries are merged.
            tools: The tools to rank, as for `view`; None: the bot's own.
            limit: Maximum number of matches; None: `max_results`.
            allowed: Returns True for the name of a tool that may be found.
            user: The user who asks, as for `view`.

        Raises:
            InvalidToolError: An item of `tools` is not a tool.
        """
        catalog = self._catalog if tools is None else self._host_tools.catalog(tools)
        try:
            index = self._indexes.get(f"all {catalog.fingerprint}", catalog.active)
            found = search_older_first(
                with_votes(index, self._votes(user)),
                query,
                limit=self._config.max_results if limit is None else limit,
                allowed=allowed,
                copies=copies_of(catalog),
                tools=catalog,
            )
        except Exception as exc:  # noqa: BLE001  # engines are pluggable: the host goes on without a ranking
            log_failure(_log, "the ranking for %r failed", query)
            said = query if isinstance(query, str) else " | ".join(query)
            language = self._config.language
            if language == "auto":
                language = language_of(said)
            cause = f"{type(exc).__name__}: {exc}"
            return SearchResult(query=said, error=text("search.unavailable", language, cause=cause))
        return _clean(found)

    def explain(
        self,
        query: str,
        names: Iterable[str],
        tools: Iterable[Any] | None = None,
        *,
        user: str | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Return the reasons for which `rank` finds tools for one query, by name.

        They have the form of `tool-search search --explain --json`.

        Args:
            query: The query.
            names: Canonical names; unknown ones are left out.
            tools: The tools to rank, as for `view`; None: the bot's own.
            user: The user who asks, as for `view`.

        Raises:
            InvalidToolError: An item of `tools` is not a tool.
            SearchError: The engine failed.
        """
        catalog = self._catalog if tools is None else self._host_tools.catalog(tools)
        index = self._indexes.get(f"all {catalog.fingerprint}", catalog.active)
        return explained_matches(with_votes(index, self._votes(user)), catalog, query, [*names])

    async def arank(
        self,
        query: str | Sequence[str],
        tools: Iterable[Any] | None = None,
        *,
        limit: int | None = None,
        allowed: Callable[[str], bool] | None = None,
        user: str | None = None,
    ) -> SearchResult:
        """Rank tools as `rank` does, off the event loop."""
        return await asyncio.to_thread(
            self.rank, query, tools, limit=limit, allowed=allowed, user=user
        )

    def replace_tools(self, tools: Iterable[Any]) -> ToolCatalog:
        """Replace the bot's own tools for later views and rankings, and return their catalog.

        Raises:
            DuplicateToolError: Two tools have the same name; nothing has changed.
            InvalidToolError: An item is not a tool; nothing has changed.
        """
        names = self._catalog.book
        self._catalog = self._own(self._host_tools.own_catalog(tools, names=names))
        return self._catalog

    async def prepare(self) -> None:
        """Build the index of the bot's own tools and read what was learned, off the event loop.

        Optional: otherwise the first view does it.
        """
        if self._config.learning.enabled:
            await self._learning.prepare()
        if self._config.tool_schema_mode != "skills_like":
            await asyncio.to_thread(self.view)

    async def learn(self, view: Taught) -> int:
        """Keep what a view has taught since the last call; return the number of lessons.

        Failures of the store are logged, and the lessons wait in memory.

        Args:
            view: A view, or anything with `user` and `drain_lessons`.
        """
        lessons = view.drain_lessons()
        if not lessons or not self._config.learning.enabled:
            return 0
        await self._learning.alearn(lessons, view.user)
        return len(lessons)

    def learn_now(self, view: ToolView) -> int:
        """Keep what a view has taught as `learn` does, without an event loop."""
        lessons = view.drain_lessons()
        if not lessons or not self._config.learning.enabled:
            return 0
        self._learning.learn(lessons, view.user)
        return len(lessons)

    def _own(self, catalog: ToolCatalog) -> ToolCatalog:
        policy = CorePolicy(
            always_loaded_tools=self._config.always_loaded_tools,
            auto_always_load_builtin=self._config.auto_always_load_builtin,
        )
        return catalog.with_policy(policy)

    def _index_of_deferred(self, catalog: ToolCatalog) -> ToolSearchIndex:
        return self._indexes.get(f"deferred {catalog.fingerprint}", catalog.deferred)

    def _votes(self, user: str | None = None) -> Votes | None:
        return self._learning.votes(user) if self._config.learning.enabled else None

    def _has_failed(self, catalog: ToolCatalog) -> bool:
        failed = self._failed.get(catalog.fingerprint) if self._failed else None
        return failed is not None and time.monotonic() - failed < _ENGINE_COOLDOWN_S

    def _report_failure(self, catalog: ToolCatalog, cause: str) -> None:
        self._notify(
            Notice("search_unavailable", f"the host gets every tool for a minute: {cause}")
        )
        with self._lock:
            if len(self._failed) >= _MAX_FAILED:
                self._failed.clear()
            self._failed[catalog.fingerprint] = time.monotonic()

    def _warn(self, problem: str) -> None:
        self._notify(Notice("catalog_refused", problem))

    def _notify(self, notice: Notice) -> None:
        """Log a notice once: most views have those of the view before."""
        with self._lock:
            if notice in self._warned:
                return
            if len(self._warned) >= _MAX_WARNED:
                self._warned.clear()
            self._warned.add(notice)
        _log.warning("%s: %s", notice.code, notice.message)


def _checked_config(config: ToolSearchConfig | None) -> ToolSearchConfig:
    given: object = config
    if given is None:
        return ToolSearchConfig()
    if not isinstance(given, ToolSearchConfig):
        raise ConfigurationError(
            f"config must be a ToolSearchConfig, such as load_config('bot.yaml').tool_search, "
            f"not {shown(given)}"
        )
    return given


def _denial(allowed: Callable[[str], bool]) -> Callable[[Tool], str | None]:
    """Return the reasons of denials: an empty one, so that the model learns of no tool."""
    return lambda tool: None if allowed(tool.name) else ""


def _clean(result: SearchResult) -> SearchResult:
    return replace(result, matches=tuple(map(clean_match, result.matches)))
