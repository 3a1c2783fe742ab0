"""Search indexes of many tool lists, each built once and from its nearest predecessor."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search import ToolSearchIndex, build_index

__all__ = ["SharedIndexes"]

_MAX_INDEXES = 64
# An engine that failed, such as a service for vectors, is asked again after this time.
_COOLDOWN_S = 60.0


class SharedIndexes:
    """The indexes of one `ToolSearch`, which any thread may ask for.

    Args:
        settings: The `search` section.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Future[ToolSearchIndex]] = OrderedDict()
        self._failed: dict[str, float] = {}
        self._latest: tuple[Mapping[str, Tool], ToolSearchIndex] | None = None

    def get(self, key: str, tools: Sequence[Tool]) -> ToolSearchIndex:
        """Return the index over some tools; threads that ask for it at once share the work.

        Args:
            key: The fingerprint of the tools.
            tools: The tools.

        Raises:
            SearchError: It cannot be built, now or less than a minute ago.
        """
        with self._lock:
            self._forget_failure(key)
            known = self._known.get(key)
            is_new = known is None
            if known is None:
                known = self._known[key] = Future()
            self._known.move_to_end(key)
            while len(self._known) > _MAX_INDEXES:
                self._known.popitem(last=False)
        if is_new:
            self._fill(known, key, tools)
        return known.result()

    def _forget_failure(self, key: str) -> None:
        failed = self._failed.get(key)
        if failed is not None and time.monotonic() - failed >= _COOLDOWN_S:
            del self._failed[key]
            self._known.pop(key, None)

    def _fill(self, future: Future[ToolSearchIndex], key: str, tools: Sequence[Tool]) -> None:
        try:
            future.set_result(self._build(tools))
        except Exception as exc:  # noqa: BLE001  # raised in each thread that waits for it
            with self._lock:
                if isinstance(exc, SearchError):
                    self._failed = {k: v for k, v in self._failed.items() if k in self._known}
                    self._failed[key] = time.monotonic()
                else:
                    self._known.pop(key, None)
            future.set_exception(exc)
        finally:
            if not future.done():  # the interpreter ends, or the thread was interrupted
                with self._lock:
                    self._known.pop(key, None)
                future.set_exception(SearchError("the index was not built to its end; try again"))

    def _build(self, tools: Sequence[Tool]) -> ToolSearchIndex:
        wanted = {tool.name: tool for tool in tools}
        latest = self._latest
        index = None if latest is None else _from_latest(*latest, wanted)
        if index is None:
            index = build_index(tools, self._settings)
        self._latest = wanted, index
        return index


def _from_latest(
    before: Mapping[str, Tool], index: ToolSearchIndex, wanted: Mapping[str, Tool]
) -> ToolSearchIndex | None:
    """Return an index made of another one; None if the lists have too little in common."""
    added = [tool for name, tool in wanted.items() if before.get(name) != tool]
    removed = [name for name in before if name not in wanted]
    if 2 * (len(added) + len(removed)) > len(wanted):
        return None
    return index.updated(added=added, removed=removed)
