"""The engines of this project, by their default settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ask import DEPTH, Build, Row, Search

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index


def engine(name: Any) -> Build:
    """Return an engine of `build_index`."""

    def build(tools: Sequence[Row]) -> Search:
        index = build_index([_tool(row) for row in tools], SearchSettings(engine=name))

        def search(query: str) -> list[str]:
            return [match.name for match in index.search(query, limit=DEPTH).matches]

        return search

    return build


def _tool(row: Row) -> Tool:
    return Tool(
        name=row["name"],
        description=row["description"] or "",
        parameters=row["parameters"],
        server=row.get("server"),
        kind="mcp" if row.get("server") else "plugin",
    )


SYSTEMS: dict[str, Build] = {
    "ours: bm25": engine("bm25"),
    "ours: hybrid": engine("hybrid"),
    "ours: semantic": engine("semantic"),
    "rank_bm25": engine("rank_bm25"),
}
