"""Tool search for FastMCP servers, as a transform of its list of tools.

::

    server = FastMCP("tools", transforms=[ToolSearchTransform()])

Clients see the core tools, `search_tools` and `call_tool`, as with FastMCP's own
`BM25SearchTransform`, of which this is a subclass: the ranking, and what it learns from calls,
are those of this library. The server's authorization applies to searches and calls alike.

fastmcp 3.1 or later. Source: FastMCP, "Tool Search" (`transforms`); its `_search` is private,
so each release is tested.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

try:
    from fastmcp.server.context import Context
    from fastmcp.server.dependencies import get_access_token, get_context
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools import Tool, ToolResult
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.fastmcp needs fastmcp 3.1 or later: "
        "pip install 'tool-search-middleware[fastmcp]'; in a clone: pip install '.[fastmcp]'"
    ) from exc

if not hasattr(BM25SearchTransform, "_search"):
    raise ImportError(
        "tool_search.adapters.fastmcp works with fastmcp 3.1 to 4.1: in the installed release "
        "BM25SearchTransform has no method _search; install one of these"
    )

from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.services import SearchResult
from tool_search.core.values.json import shown
from tool_search.errors import ConfigurationError

__all__ = ["ToolSearchTransform"]

_MAX_SESSIONS = 1_000
_MAX_SEARCHES = 4
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Trail:
    """The last searches of one client, and the tools called since."""

    tools: list[dict[str, Any]] = field(default_factory=list)
    results: list[SearchResult] = field(default_factory=list)
    called: list[str] = field(default_factory=list)


class ToolSearchTransform(BM25SearchTransform):
    """Lists the core, a search tool and `call_tool`; searches rank as this library does.

    A list within the configuration's `threshold` stays as it is.

    Args:
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several servers share, instead of `config`.
        max_results: The largest number of tools that a search returns.
        always_visible: Names of tools that are always listed, in addition to those that
            `always_loaded_tools` names.
        search_tool_name: The name of the search tool.
        call_tool_name: The name of the tool that calls what was found.

    Raises:
        ConfigurationError: The settings cannot be used.
    """

    def __init__(
        self,
        config: ToolSearchConfig | None = None,
        *,
        search: ToolSearch | None = None,
        max_results: int = 5,
        always_visible: list[str] | None = None,
        search_tool_name: str = "search_tools",
        call_tool_name: str = "call_tool",
    ) -> None:
        super().__init__(
            max_results=max_results,
            always_visible=always_visible,
            search_tool_name=search_tool_name,
            call_tool_name=call_tool_name,
        )
        self.search = search or ToolSearch((), config)
        if self.search.config.tool_schema_mode == "skills_like":
            raise ConfigurationError(
                "tool_schema_mode is 'skills_like', which takes two requests a step: an MCP "
                "server makes none; set it to auto, tool_search or full"
            )
        self._own_names = {search_tool_name, call_tool_name, self.search.config.search_tool_name}
        self._trails: OrderedDict[str, _Trail] = OrderedDict()
        self._warned: set[str] = set()

    async def transform_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the core and the two tools of the search; a short list as it is."""
        view = await asyncio.to_thread(self.search.view, tools=self._definitions(tools))
        if view.search_tool is None:
            return tools
        core = self._always_visible.union(tool.name for tool in view.catalog.core)
        pinned = [tool for tool in tools if tool.name in core]
        return [*pinned, self._make_search_tool(), self._make_call_tool()]

    async def _search(self, tools: Sequence[Tool], query: str) -> Sequence[Tool]:
        definitions = self._definitions(tools)
        result = await self.search.arank(query, definitions, limit=self._max_results, user=_user())
        if result.error is not None:
            return tools  # the ranking has failed: the client gets every tool
        self._record_search(definitions, result)
        by_name = {tool.name: tool for tool in tools}
        return [by_name[name] for name in result.names]

    def _make_call_tool(self) -> Tool:
        inner = super()._make_call_tool()

        async def call_tool(
            name: Annotated[str, "The name of the tool to call"],
            arguments: Annotated[dict[str, Any] | None, "Arguments to pass to the tool"] = None,
        ) -> ToolResult:
            result = await inner.run({"name": name, "arguments": arguments})
            if not getattr(result, "is_error", False):
                await self._learn(name)
            return result

        return Tool.from_function(
            fn=call_tool, name=self._call_tool_name, description=inner.description
        )

    def _definitions(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        found = []
        for tool in tools:
            if tool.name in self._own_names:
                self._warn_of_name(tool.name)
                continue
            definition = {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description or "",
                "inputSchema": tool.parameters,
                "tags": sorted(tool.tags),  # a set, whose order changes with each process
            }
            found.append(definition)
        return found

    def _warn_of_name(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            _log.warning("no search finds the tool %s, which has a search tool's name", shown(name))

    def _record_search(self, definitions: list[dict[str, Any]], result: SearchResult) -> None:
        client = _client(get_context())
        if client is None:
            return
        trail = self._trails.get(client)
        if trail is None or trail.called:  # a search after a call begins another task
            trail = self._trails[client] = _Trail()
        trail.tools = definitions
        trail.results = [*trail.results, result][-_MAX_SEARCHES:]
        self._trails.move_to_end(client)
        while len(self._trails) > _MAX_SESSIONS:
            self._trails.popitem(last=False)

    async def _learn(self, name: str) -> None:
        """Let the client's last searches learn from a call that a tool has answered."""
        client = _client(get_context())
        trail = self._trails.get(client) if client is not None else None
        if trail is None or name in trail.called:
            return
        trail.called.append(name)
        view = await asyncio.to_thread(self.search.view, tools=trail.tools, user=_user())
        view.read(trail.results)
        view.returned(name)
        await self.search.learn(view)


def _client(context: Context) -> str | None:
    """Return the name of one client's requests; None if nothing tells it from others.

    Since MCP 2026-07-28 a request has no session. FastMCP then has the authenticated user, or
    the process of a server that one client started.
    """
    scope = getattr(context, "_session_scope_key", None)
    name: str | None = context.session_id if scope is None else scope()
    return name


def _user() -> str | None:
    """Return the authenticated user, whose searches teach under that name; None: unknown."""
    token = get_access_token()
    return None if token is None else str(token.claims.get("sub") or token.client_id)
