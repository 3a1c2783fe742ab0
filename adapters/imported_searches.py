"""Searches in another system's history, as the neutral history has them.

A search there may have any arguments, and found what its result names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tool_search.adapters.wire_values import text_of
from tool_search.messages import ContentPart, Message, TextPart, ToolCall
from tool_search.schema import compact_json
from tool_search.search.result import SearchMatch, SearchResult

__all__ = ["found", "query_of", "search_call", "search_message", "simple"]


def query_of(arguments: Mapping[str, Any]) -> str:
    """What was searched for, under whatever name a search tool has its query."""
    values = [arguments.get("query"), arguments.get("pattern"), *arguments.values()]
    for value in values:
        text = " | ".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
        if text.strip():
            return text
    return ""


def search_call(call_id: str, query: str, *, name: str) -> ToolCall:
    """A call of the search tool for a query."""
    return ToolCall(id=call_id, name=name, arguments=compact_json({"query": query}))


def found(query: str, names: Iterable[str], canonical: Callable[[str], str]) -> SearchResult:
    """A result that names these tools, each once; empty names are left out."""
    matches = tuple(SearchMatch(name=canonical(name)) for name in dict.fromkeys(names) if name)
    return SearchResult(
        query=query, matches=matches, total_found=len(matches), total_tools=len(matches)
    )


def search_message(call_id: str, result: SearchResult, *, name: str) -> Message:
    """The message of a search's result."""
    return Message(
        role="tool",
        tool_call_id=call_id,
        name=name,
        content=result.to_json(),
        is_error=result.error is not None,
    )


def simple(parts: tuple[ContentPart, ...]) -> str | tuple[ContentPart, ...]:
    """Plain text where the content is one text or none."""
    if not parts:
        return ""
    only = parts[0]
    return only.text if len(parts) == 1 and isinstance(only, TextPart) else parts
