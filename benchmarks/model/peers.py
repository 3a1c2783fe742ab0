"""Searches of others as arms: a tool that searches, and one that calls what it found."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from tool_search.core.catalog.tool import Tool

__all__ = ["CALL", "PEERS", "SEARCH", "Peer", "PeerTools"]

SEARCH, CALL = "search_tools", "call_tool"
_RESULTS = 5
Run = Callable[[str, Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class PeerTools:
    """The tools of a peer over one catalog.

    Attributes:
        tools: The definitions that a model is given: `SEARCH` and `CALL`.
        run: Runs one of them by its name and arguments, and returns its text.
    """

    tools: tuple[Tool, ...]
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A search of another project.

    Attributes:
        package: The distribution that has it.
        open: Opens its tools over a catalog; every tool of the catalog returns the given text.
    """

    package: str
    open: Callable[[Sequence[Tool], Callable[[str], str]], AbstractAsyncContextManager[PeerTools]]

    @property
    def installed(self) -> str:
        """The package with its version; empty if it is absent."""
        try:
            return f"{self.package} {metadata.version(self.package)}"
        except metadata.PackageNotFoundError:
            return ""


@asynccontextmanager
async def _fastmcp(
    tools: Sequence[Tool], returned: Callable[[str], str]
) -> AsyncIterator[PeerTools]:
    """Open a FastMCP server with its BM25 transform, and its client in this process."""
    fastmcp, base = import_module("fastmcp"), import_module("fastmcp.tools.base")
    search = import_module("fastmcp.server.transforms.search")

    class Canned(base.Tool):  # type: ignore[misc, name-defined]  # an optional package
        async def run(self, arguments: dict[str, Any]) -> Any:
            del arguments
            return base.ToolResult(returned(self.name))

    server = fastmcp.FastMCP("bot", transforms=[search.BM25SearchTransform()])
    for tool in tools:
        server.add_tool(
            Canned(name=tool.name, description=tool.description, parameters=_schema(tool))
        )
    async with fastmcp.Client(server) as client:
        listed = [
            Tool(name=each.name, description=each.description or "", parameters=each.input_schema)
            for each in await client.list_tools()
        ]

        async def run(name: str, arguments: Mapping[str, Any]) -> str:
            result = await client.call_tool(name, dict(arguments), raise_on_error=False)
            return "".join(getattr(part, "text", "") for part in result.content)

        yield PeerTools(tuple(listed), run)


@asynccontextmanager
async def _rank_bm25(
    tools: Sequence[Tool], returned: Callable[[str], str]
) -> AsyncIterator[PeerTools]:
    """Open the usual way to write such a search: BM25Okapi over lower-case words."""
    words = [f"{tool.name} {tool.description}".lower().split() for tool in tools]
    index = import_module("rank_bm25").BM25Okapi(words)
    known = {tool.name for tool in tools}

    def found(query: str) -> list[dict[str, Any]]:
        scores = index.get_scores(query.lower().split())
        best = sorted(range(len(tools)), key=lambda place: (-scores[place], place))[:_RESULTS]
        return [
            {
                "name": tools[place].name,
                "description": tools[place].description,
                "inputSchema": _schema(tools[place]),
            }
            for place in best
            if scores[place] > 0
        ]

    async def run(name: str, arguments: Mapping[str, Any]) -> str:
        if name == SEARCH:
            return json.dumps(found(str(arguments.get("query", ""))), ensure_ascii=False)
        wanted = arguments.get("name")
        return returned(wanted) if wanted in known else f"Unknown tool: {wanted!r}"

    yield PeerTools(_OWN_TOOLS, run)


def _schema(tool: Tool) -> dict[str, Any]:
    return {"type": "object", "properties": {}, **json.loads(tool.parameters_json)}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


# The texts of FastMCP's two tools, so that the two peers differ by their search alone.
_OWN_TOOLS = (
    Tool(
        name=SEARCH,
        description="Search for tools using natural language.\n\nReturns matching tool definitions "
        "ranked by relevance,\nin the same format as list_tools.",
        parameters={
            "type": "object",
            "properties": {"query": _text("Natural language query to search for tools")},
            "required": ["query"],
        },
    ),
    Tool(
        name=CALL,
        description="Call a tool by name with the given arguments.\n\nUse this to execute tools "
        "discovered via search_tools.",
        parameters={
            "type": "object",
            "properties": {
                "name": _text("The name of the tool to call"),
                "arguments": {"type": "object", "description": "Arguments to pass to the tool"},
            },
            "required": ["name"],
        },
    ),
)

PEERS: Mapping[str, Peer] = {
    "search of FastMCP": Peer(package="fastmcp", open=_fastmcp),
    "search of rank_bm25": Peer(package="rank-bm25", open=_rank_bm25),
}
"""The searches, by the names of their arms."""
