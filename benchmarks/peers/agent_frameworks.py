"""The searches of agent frameworks: FastMCP, pydantic-ai, adk-tool-search.

Each is asked below its protocol: the ranking alone is measured. FastMCP hashes its
catalog at every search, and is measured with it, as that is what its users pay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from adk_tool_search import BM25ToolIndex, ToolEntry
from ask import DEPTH, Build, Row, Search
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets._tool_search import keywords_search_fn


def fastmcp_bm25(tools: Sequence[Row]) -> Search:
    """FastMCP's BM25SearchTransform, with ten results instead of five."""
    transform = BM25SearchTransform(max_results=DEPTH)
    listed = [
        Tool(
            name=str(tool["name"]),
            description=str(tool["description"] or ""),
            parameters=tool["parameters"] or {},
        )
        for tool in tools
    ]
    loop = asyncio.new_event_loop()

    def search(query: str) -> list[str]:
        found = loop.run_until_complete(transform._search(listed, query))  # noqa: SLF001
        return [tool.name for tool in found]

    return search


def pydantic_ai_keywords(tools: Sequence[Row]) -> Search:
    """pydantic-ai's local search: how many words of the query a tool has."""
    listed = [
        ToolDefinition(
            name=str(tool["name"]),
            description=str(tool["description"] or ""),
            parameters_json_schema=tool["parameters"] or {},
        )
        for tool in tools
    ]
    context: Any = None

    def search(query: str) -> list[str]:
        return list(keywords_search_fn(context, [query], listed)[:DEPTH])

    return search


def adk(tools: Sequence[Row]) -> Search:
    """adk-tool-search's index over name, description and parameters."""
    nothing: Any = None
    index = BM25ToolIndex()
    index.rebuild(
        tuple(
            ToolEntry(
                name=str(tool["name"]),
                description=str(tool["description"] or ""),
                parameters=_parameters(tool),
                tool=nothing,
            )
            for tool in tools
        )
    )

    def search(query: str) -> list[str]:
        return [found.name for found in index.search(query, limit=DEPTH)]

    return search


def _parameters(tool: Row) -> tuple[tuple[str, str], ...]:
    properties = (tool["parameters"] or {}).get("properties") or {}
    return tuple(
        (name, str(schema.get("description", "")) if isinstance(schema, dict) else "")
        for name, schema in properties.items()
    )


SYSTEMS: dict[str, Build] = {
    "FastMCP": fastmcp_bm25,
    "pydantic-ai": pydantic_ai_keywords,
    "adk-tool-search": adk,
}
