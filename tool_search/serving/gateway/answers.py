"""The gateway's own tools, and the texts with which it answers a search.

Source: MCProxy's document, "Tool search": the name and parameter of its tool, and the numbered
lines of its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.schema.declared import schema_json
from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.clean_text import clean_line
from tool_search.i18n import Language, text

__all__ = [
    "CALL_TOOL",
    "SEARCH_TOOL",
    "Hit",
    "call_tool",
    "schemas_text",
    "search_text",
    "search_tool",
]

SEARCH_TOOL = "search_available_tools"
CALL_TOOL = "call_tool"
_MAX_QUERY_CHARS = 200
_MAX_DESCRIPTION_CHARS = 300
_LIMITS = TextLimits()


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that a search found.

    Attributes:
        name: The name that clients are shown.
        tool: The definition.
        description: The description that clients read, if middleware changes it.
    """

    name: str
    tool: Tool
    description: str | None = None


def search_tool(hidden: int, language: Language) -> Tool:
    """Return the search tool; its description says how many tools are not in the list."""
    return Tool(
        name=SEARCH_TOOL,
        description=text("gateway.search_tool", language, count=hidden),
        parameters=_object({"query": _text("gateway.query", language)}, ("query",)),
        kind="builtin",
        annotations={"read_only": True},
    )


def call_tool(language: Language) -> Tool:
    """Return the tool that calls a tool which is not in the list."""
    arguments = {"type": "object", "description": text("call_tool.arguments", language)}
    return Tool(
        name=CALL_TOOL,
        description=text("call_tool.description", language),
        parameters=_object(
            {"name": _text("call_tool.name", language), "arguments": arguments}, ("name",)
        ),
        kind="builtin",
    )


def search_text(query: str, hits: Iterable[Hit], language: Language) -> str:
    """Return the answer to a search: a numbered line for each hit, best first.

    Args:
        query: The query.
        hits: What was found.
        language: The gateway's language.
    """
    found, lines = tuple(hits), []
    if not found:
        asked = clean_line(query, _MAX_QUERY_CHARS)
        return text("gateway.found_nothing", language, query=asked)
    for number, hit in enumerate(found, start=1):
        described = hit.tool.description if hit.description is None else hit.description
        lines.append(f"{number}. {hit.name} - {clean_line(described, _MAX_DESCRIPTION_CHARS)}")
    return "\n".join((text("gateway.found", language, count=len(found)), *lines))


def schemas_text(hits: Iterable[Hit], language: Language) -> str:
    """Return what a client whose list cannot change needs to call the hits of a search.

    Args:
        hits: What was found.
        language: The gateway's language.
    """
    lines = [f"{hit.name}: {schema_json(_LIMITS.cut(hit.tool))}" for hit in hits]
    return "\n".join((*lines, text("gateway.call_by_name", language, tool=CALL_TOOL)))


def _text(key: str, language: Language) -> dict[str, Any]:
    return {"type": "string", "description": text(key, language)}


def _object(properties: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}
