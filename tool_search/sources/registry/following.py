"""The tools of a source in a registry, kept as the source lists them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from tool_search.core.catalog.tool import Tool
from tool_search.errors import InvalidToolError, ToolNotFoundError
from tool_search.sources.registry.backends import Backend

if TYPE_CHECKING:
    from tool_search.runner.execution.context import ToolExecutor
    from tool_search.sources.registry.registry import ToolRegistry

__all__ = ["FollowedSource", "ListsTools"]

_log = logging.getLogger(__name__)
_Entry = tuple[Tool, Backend]


class ListsTools(Protocol):
    """A source of tools, such as `MCPSource`."""

    @property
    def tools(self) -> Iterable[Tool]:
        """The current tools, each under a name of its own."""
        ...

    @property
    def executor(self) -> ToolExecutor:
        """The executor of the tools, by these names."""
        ...

    def subscribe(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function after each change of `tools`; return the end of it."""
        ...


class FollowedSource:
    """Keeps the tools of a source registered, each with a backend of its MCP server.

    Args:
        registry: The registry.
        source: The source.
        namespace: Returns the namespace of a server's tools.
    """

    def __init__(
        self, registry: ToolRegistry, source: ListsTools, namespace: Callable[[str], str | None]
    ) -> None:
        self._registry = registry
        self._source = source
        self._namespace = namespace
        self._lock = Lock()
        self._is_stopped = False
        self._is_waiting = False
        self._listed: dict[str, _Entry] = {}
        # What was made of each tool of the last list: most are the same objects in the next.
        self._made: dict[int, tuple[Tool, _Entry]] = {}

    def start(self) -> Callable[[], None]:
        """Register the tools, and follow their changes until the returned function is called."""
        unsubscribe = self._source.subscribe(self._hear)
        self.update()

        def stop() -> None:
            unsubscribe()
            with self._lock:
                self._is_stopped = True
                self._replace({})

        return stop

    def update(self) -> None:
        """Register what the source lists now, and remove what it does not list any more.

        A definition that the registry refuses is left out, with a warning; the others go on.
        """
        with self._lock:
            self._is_waiting = False
            if not self._is_stopped:
                self._replace(self._entries())

    def _hear(self, _: object) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.update()
            return
        # Thousands of definitions would hold up the event loop; one update takes what changed
        # while it waited.
        if not self._is_waiting:
            self._is_waiting = True
            loop.run_in_executor(None, self.update)

    def _entries(self) -> dict[str, _Entry]:
        """Return what the source lists, by id; of two tools of one id, the last."""
        before, self._made = self._made, {}
        found: dict[str, _Entry] = {}
        for listed in self._source.tools:
            known = before.get(id(listed))
            if known is not None and known[0] is listed:
                entry = known[1]
            else:
                made = self._entry(listed)
                if made is None:
                    continue
                entry = made
            self._made[id(listed)] = listed, entry
            found[entry[0].id] = entry
        return found

    def _entry(self, listed: Tool) -> _Entry | None:
        """Return a tool as it is registered; None, with a warning, if it cannot be."""
        server = listed.server or ""
        # The id has the server's own name for the tool, whatever the source calls it.
        name, space = listed.source[1], self._namespace(server)
        try:
            tool = replace(listed, name=name, listed_name=None, namespace=space)
        except InvalidToolError as exc:
            _log.warning("server %r: a tool is left out: %s", server, exc)
            return None
        return tool, Backend.mcp(server or "mcp", tool=listed.name)

    def _replace(self, wanted: dict[str, _Entry]) -> None:
        """Register and unregister the difference; the caller holds the lock."""
        before, self._listed = self._listed, {}
        for tool_id, (tool, backend) in before.items():
            if wanted.get(tool_id) != (tool, backend):
                # Somebody else may have unregistered it.
                with suppress(ToolNotFoundError):
                    self._registry.unregister(tool_id, backend)
        for tool_id, (tool, backend) in wanted.items():
            if before.get(tool_id) != (tool, backend):
                self._registry.attach(self._source, server=backend.name)
                try:
                    self._registry.register(tool, backend)
                except InvalidToolError as exc:
                    _log.warning("server %r: a tool is left out: %s", backend.name, exc)
                    continue
            self._listed[tool_id] = tool, backend
