"""Searches in another system's history, read into the neutral form.

A search there may have any arguments; the tools that its result names are those it found.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from tool_search.adapters.wire.values import (
    arguments_text,
    attachment,
    label_of,
    mapping_of,
    mappings_of,
    readable,
    text_of,
)
from tool_search.core.messages import ContentPart, ImagePart, Message, TextPart, ToolCall
from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.values.json import compact_json, read_json
from tool_search.i18n import Language

__all__ = [
    "ADDED",
    "HistoryOptions",
    "HistoryReader",
    "normalized_result",
    "normalized_searches",
    "query_of",
    "result_of",
    "simplified",
]


_FIRST_CHARS = 64  # of Base64: four characters are three bytes
ADDED = "added_"
"""The prefix of the id of a search that represents tools added in mid-conversation."""


class HistoryOptions(TypedDict, total=False):
    """Options of a history that is read into the neutral form, the same in every dialect.

    Attributes:
        search_tool_name: The search tool's name in the neutral history; `tool_search` if it is
            left out.
        canonical: Returns the canonical name of a wire name.
        origin: The `ProviderProfile.origin` that gets back, unchanged, what the neutral form
            cannot carry (reasoning, signatures, blocks of other tools of the service); without
            it, nobody does.
        language: The language of the lines in place of files; English if it is left out.
    """

    search_tool_name: str
    canonical: Callable[[str], str]
    origin: str
    language: Language


@dataclass(slots=True, kw_only=True)
class HistoryReader(ABC):
    """A reader of a history; `HistoryOptions` documents its attributes."""

    search_tool_name: str = "tool_search"
    canonical: Callable[[str], str] = str
    origin: str = ""
    language: Language = "en-US"

    def parts(self, content: object) -> tuple[ContentPart, ...]:
        """Return the parts of a content; blank texts are left out."""
        if not isinstance(content, list | tuple):
            return tuple(TextPart(said) for said in (readable(content),) if said.strip())
        given = [{"type": "text", "text": p} if isinstance(p, str) else p for p in content]
        read = (self.part(part) for part in mappings_of(given))
        return tuple(part for part in read if not isinstance(part, TextPart) or part.text.strip())

    @abstractmethod
    def part(self, part: Mapping[str, Any]) -> ContentPart:
        """Return a part in the neutral form; a blank text if it says nothing."""

    def picture(self, address: str) -> ContentPart:
        """Return a picture, or a line that names one without an address or without bytes."""
        return ImagePart(address) if _leads_to_bytes(address) else self.attached("picture")

    def attached(self, kind: str, *names: object) -> TextPart:
        """Return the line that names what the neutral history has no form for."""
        return TextPart(attachment(kind, self.language, names))

    def call(self, call_id: object, name: object, arguments: object) -> ToolCall:
        """Return a call of a client's tool."""
        return ToolCall(
            id=label_of(call_id),
            name=self.canonical(label_of(name)),
            arguments=arguments_text(arguments),
        )

    def added(self, place: int, names: Sequence[str]) -> Iterator[Message]:
        """Yield a search for the tools that a place of the history adds, if it adds any."""
        if not names:
            return
        call_id, query = f"{ADDED}{place}", f"select:{','.join(names)}"
        yield Message(role="assistant", tool_calls=(self.search_call(call_id, query),))
        yield self.search_message(call_id, result_of(query, names, str))

    def search_call(self, call_id: str, query: str) -> ToolCall:
        """Return a call of the search tool."""
        return _search_call(call_id, query, name=self.search_tool_name)

    def own_search_call(self, call_id: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Return a call of the search tool with its arguments, if they are our search tool's."""
        if _has_queries(arguments):
            return ToolCall(
                id=call_id, name=self.search_tool_name, arguments=compact_json(arguments)
            )
        return self.search_call(call_id, query_of(arguments))

    def search_message(self, call_id: str, result: SearchResult) -> Message:
        """Return the message of a search's result."""
        return Message(
            role="tool",
            tool_call_id=call_id,
            name=self.search_tool_name,
            content=result.to_json(),
            is_error=result.error is not None,
        )


def query_of(arguments: Mapping[str, Any]) -> str:
    """Return the query of a search, whatever name its argument has."""
    named = (arguments.get(key) for key in ("query", "queries", "pattern"))
    values = [*named, *arguments.values()]
    for value in values:
        text = " | ".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
        if text.strip():
            return text
    return ""


def result_of(query: str, names: Iterable[str], canonical: Callable[[str], str]) -> SearchResult:
    """Return a result that names these tools, each once; empty names are left out."""
    matches = tuple(SearchMatch(name=canonical(name)) for name in dict.fromkeys(names) if name)
    return SearchResult(
        query=query, matches=matches, total_found=len(matches), total_tools=len(matches)
    )


def simplified(parts: tuple[ContentPart, ...]) -> str | tuple[ContentPart, ...]:
    """Return content as plain text if it is a single text or empty."""
    if not parts:
        return ""
    only = parts[0]
    return only.text if len(parts) == 1 and isinstance(only, TextPart) else parts


def normalized_searches(
    history: Iterable[Message], *, name: str, canonical: Callable[[str], str]
) -> tuple[Message, ...]:
    """Return a history in which calls of the search tool and their results have our form.

    A result that names no tools in a known form stays as it is. A search that represents
    added tools is left out if searches before it have found them all.

    Args:
        history: Results directly after their calls, with wire names.
        name: The search tool's name.
        canonical: Returns the canonical name of a wire name.
    """
    queries: dict[str, str] = {}
    found: set[str] = set()
    read: list[Message] = []
    for message in history:
        if message.role == "tool" and message.name == name:
            call_id = message.tool_call_id or ""
            answer = normalized_result(message, queries.get(call_id, ""), canonical)
            result = SearchResult.from_json(answer.text)
            names = result.names if result else ()
            if call_id.startswith(ADDED) and found.issuperset(names) and read:
                read.pop()
                continue
            found.update(names)
            read.append(answer)
            continue
        calls = tuple(_with_our_query(c) if c.name == name else c for c in message.tool_calls)
        queries |= {c.id: query_of(c.parsed_arguments() or {}) for c in calls if c.name == name}
        read.append(message if calls == message.tool_calls else replace(message, tool_calls=calls))
    return tuple(read)


def normalized_result(message: Message, query: str, canonical: Callable[[str], str]) -> Message:
    """Return a search's result with canonical names, and in our form if it had another."""
    result = SearchResult.from_json(message.text)
    if result is None:
        result = _foreign_result(message.text, query)
        if result is None:
            return message
    matches = tuple(replace(match, name=canonical(match.name)) for match in result.matches)
    loaded = tuple(map(canonical, result.loaded))
    read = replace(result, matches=matches, loaded=loaded)
    return message if SearchResult.from_json(message.text) == read else _with_result(message, read)


def _search_call(call_id: str, query: str, *, name: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=compact_json({"query": query}))


def _with_result(message: Message, result: SearchResult) -> Message:
    return replace(message, content=result.to_json())


def _with_our_query(call: ToolCall) -> ToolCall:
    """Return a search with its query under our argument's name."""
    given = call.parsed_arguments() or {}
    if isinstance(given.get("query"), str) or _has_queries(given) or not query_of(given):
        return call
    return _search_call(call.id, query_of(given), name=call.name)


def _has_queries(arguments: Mapping[str, Any]) -> bool:
    """True if the arguments are a list of queries, as our search tool takes them."""
    queries = arguments.get("queries")
    return isinstance(queries, list) and any(text_of(query).strip() for query in queries)


def _foreign_result(text: str, query: str) -> SearchResult | None:
    """Return the result of another client's search: objects with a name, or names alone."""
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
    """Return a match for each item, or nothing if one of them is not a tool.

    Args:
        items: The items of a list in a result.
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


def _leads_to_bytes(address: str) -> bool:
    """Return True if a picture's address may be read; no service takes `data:` without bytes."""
    head, _, data = address.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        return bool(address)
    try:
        return bool(base64.b64decode(data[:_FIRST_CHARS], validate=True))
    except ValueError:
        return False
