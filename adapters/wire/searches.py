"""Searches in another system's history, as the neutral history has them.

A search there may have any arguments, and found what its result names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tool_search.adapters.wire.values import mapping_of, text_of
from tool_search.messages import ContentPart, Message, TextPart, ToolCall
from tool_search.search.index.protocol import SearchMatch, SearchResult
from tool_search.values.json import compact_json, read_json

__all__ = [
    "ADDED",
    "answered_search",
    "found",
    "normalized_searches",
    "query_of",
    "search_call",
    "search_message",
    "simple",
]


ADDED = "added_"
"""The beginning of the id of a search that stands for tools added in mid-conversation."""


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


def normalized_searches(
    history: Iterable[Message], *, name: str, canonical: Callable[[str], str]
) -> tuple[Message, ...]:
    """Return a history in which calls of the search tool and their results have our form.

    A result that names no tools in any form that is known stays as it is. An exchange
    that stands for added tools is left out if searches before it have found them all.

    Args:
        history: Results directly after their calls, names as on the wire.
        name: The search tool's name.
        canonical: Gives the canonical name for a wire name.
    """
    queries: dict[str, str] = {}
    found: set[str] = set()
    read: list[Message] = []
    for message in history:
        if message.role == "tool" and message.name == name:
            call_id = message.tool_call_id or ""
            answer = answered_search(message, queries.get(call_id, ""), canonical)
            result = SearchResult.from_json(answer.text)
            names = result.names if result else ()
            if call_id.startswith(ADDED) and found.issuperset(names) and read:
                read.pop()
                continue
            found.update(names)
            read.append(answer)
            continue
        calls = tuple(_asked(c) if c.name == name else c for c in message.tool_calls)
        queries |= {c.id: query_of(c.parsed_arguments() or {}) for c in calls if c.name == name}
        read.append(message if calls == message.tool_calls else replace(message, tool_calls=calls))
    return tuple(read)


def answered_search(message: Message, query: str, canonical: Callable[[str], str]) -> Message:
    """Return a search's result with canonical names, and in our form if it had another."""
    result = SearchResult.from_json(message.text)
    if result is None:
        result = _foreign(message.text, query)
        if result is None:
            return message
    matches = tuple(replace(match, name=canonical(match.name)) for match in result.matches)
    loaded = tuple(map(canonical, result.loaded))
    read = replace(result, matches=matches, loaded=loaded)
    return message if SearchResult.from_json(message.text) == read else _with(message, read)


def _with(message: Message, result: SearchResult) -> Message:
    return replace(message, content=result.to_json())


def _asked(call: ToolCall) -> ToolCall:
    """A search with its query under our argument's name."""
    given = call.parsed_arguments() or {}
    if isinstance(given.get("query"), str) or not query_of(given):
        return call
    return search_call(call.id, query_of(given), name=call.name)


def _foreign(text: str, query: str) -> SearchResult | None:
    """The tools that another client's search found: objects with a name, or names alone."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    lists = value.items() if isinstance(value, dict) else [("tools", value)]
    for key, items in lists:
        matches = _matches(items, by_name="tool" in key) if isinstance(items, list) else ()
        if matches:
            count = len(matches)
            return SearchResult(query=query, matches=matches, total_found=count, total_tools=count)
    return None


def _matches(items: Iterable[object], *, by_name: bool) -> tuple[SearchMatch, ...]:
    """A match for each item, or nothing if one of them is no tool.

    Args:
        items: What a list in a result holds.
        by_name: True if texts in it are names of tools.
    """
    matches = []
    for item in items:
        fields = mapping_of(item)
        name = text_of(item if by_name and not fields else fields.get("name"))
        if not name:
            return ()
        matches.append(SearchMatch(name=name, description=text_of(fields.get("description"))))
    return tuple(matches)
