"""Changes of sources, given to a runner: each conversation has them from its next turn on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.errors import ToolSearchError
from tool_search.runner.execution import ToolExecutor
from tool_search.search.discovery.catalog_notices import catalog_notices
from tool_search.sources.base import ToolSource, Unsubscribe
from tool_search.sources.combined import CombinedTools
from tool_search.sources.following import Follower

__all__ = ["CatalogUpdates"]

# A server that lists again and again costs one new catalog in this time.
_PAUSE_S = 1.0
_log = logging.getLogger(__name__)

Apply = Callable[[ToolCatalog, ToolExecutor], Awaitable[None]]


class CatalogUpdates:
    """A task that gives a new catalog to a runner after changes of sources.

    Args:
        tools: The functions and sources.
        sources: The sources to listen to.
        apply: Takes the new catalog and its executor.
    """

    def __init__(self, tools: CombinedTools, sources: Iterable[ToolSource], apply: Apply) -> None:
        self._tools = tools
        self._sources = tuple(sources)
        self._apply = apply
        self._ends: list[Unsubscribe] = []
        self._follower = Follower(self._update, name="catalog-updates")
        self._before = ""

    def start(self) -> None:
        """Begin to listen; changes that came before are not missed."""
        self._ends = [source.subscribe(self._follower.hear) for source in self._sources]
        self._follower.hear()
        self._follower.start()

    async def aclose(self) -> None:
        """Stop to listen."""
        for end in self._ends:
            end()
        await self._follower.aclose()

    def _build(self) -> tuple[ToolCatalog, ToolExecutor]:
        catalog, executor = self._tools.build()
        # Kept by the catalog: at 10,000 tools each would hold the event loop for 40 ms.
        hash(catalog.fingerprint)
        catalog.view(policy=catalog.policy).once(catalog_notices)
        return catalog, executor

    async def _update(self) -> None:
        try:
            catalog, executor = await asyncio.to_thread(self._build)
            if self._before != catalog.fingerprint:
                await self._apply(catalog, executor)
                self._before = catalog.fingerprint
        except ToolSearchError as exc:
            _log.warning("catalog_refused: the tools of the last turn stay: %s", exc)
        await asyncio.sleep(_PAUSE_S)
