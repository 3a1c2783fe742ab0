"""Catalogs from MCP servers: `--mcp FILE` or `--mcp URL` in place of `--catalog`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tool_search.cli.exits import say
from tool_search.cli.files import read_catalog
from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.config.mcp_files import load_servers
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.errors import ConfigurationError, SourceError

__all__ = ["ListedServers", "list_servers", "read_tools"]

_START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedServers:
    """The tools of MCP servers, and the state of each server.

    Attributes:
        tools: The tools of all servers.
        servers: Server, state, number of tools, protocol and last error.
    """

    tools: ToolCatalog
    servers: tuple[Mapping[str, Any], ...]


def read_tools(catalog: Path | None, mcp: str | None) -> ToolCatalog:
    """Return the catalog of a file, or the tools of MCP servers.

    Raises:
        ConfigurationError: Both are given or none, or an entry of a server is wrong.
        CatalogError: The file of the catalog is wrong.
        SourceError: No server can be reached.
    """
    if (catalog is None) == (mcp is None):
        raise wrong_use("use.one_of", first="--catalog", second="--mcp")
    if catalog is not None:
        return read_catalog(catalog)
    return list_servers(str(mcp)).tools


def list_servers(place: str) -> ListedServers:
    """Return the tools of the servers in a file, or of the server at a url.

    A server that fails is named on standard error; the others count.

    Raises:
        ConfigurationError: The file or an entry is wrong, or the SDK is not installed.
        SourceError: No server can be reached.
    """
    if place.startswith(("http://", "https://")):
        servers: Mapping[str, Any] = {urlsplit(place).hostname or "mcp": {"url": place}}
    else:
        servers = load_servers(Path(place))
    try:
        source_class = import_module("tool_search.adapters.mcp").MCPSource
    except ImportError as exc:
        raise ConfigurationError(
            f"--mcp needs the MCP SDK: "
            f"pip install 'tool-search-middleware[mcp]'; in a clone: pip install '.[mcp]' ({exc})"
        ) from exc
    listed = asyncio.run(_list(source_class(servers, start_s=_START_S, whole_lists=True)))
    failed = [each for each in listed.servers if each["state"] not in ("connected", "disabled")]
    if failed and not any(each["state"] == "connected" for each in listed.servers):
        first = failed[0]
        raise SourceError(f"{first['error'] or 'did not answer'}", server=first["server"])
    for each in failed:
        cause = each["error"] or spoken("servers.silent")
        say(spoken("servers.left_out", server=repr(each["server"]), cause=cause))
    return listed


async def _list(source: Any) -> ListedServers:
    async with source:
        return ListedServers(
            tools=ToolCatalog(source.tools), servers=tuple(map(asdict, source.status))
        )
