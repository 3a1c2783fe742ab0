"""Histories in Anthropic's Messages format, read into the neutral form.

Needs no SDK. Sources: Anthropic, "Messages API"; "Tool search tool" (a server-side
search and its result, which may come first in the next reply; `tool_reference` as the
result of a client's own search); "Mid-conversation tool changes" (`tool_addition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tool_search.adapters.anthropic_reply import is_search_block
from tool_search.adapters.arguments import arguments_text
from tool_search.adapters.imported_searches import (
    found,
    query_of,
    search_call,
    search_message,
    simple,
)
from tool_search.adapters.wire_values import list_of, mapping_of, text_of
from tool_search.i18n import LANGUAGES, locale
from tool_search.messages import ContentPart, ImagePart, Message, TextPart, ToolCall
from tool_search.search.result import SearchResult

__all__ = ["history_from_wire"]

JSON = Mapping[str, Any]


def history_from_wire(
    messages: Iterable[JSON],
    *,
    search_tool_name: str = "tool_search",
    canonical: Callable[[str], str] = str,
) -> tuple[Message, ...]:
    """The neutral history of a Messages conversation.

    Searches become ordinary calls of the search tool with its JSON as their result,
    each before the calls that came after it in the same reply, so that any provider
    takes the history: Claude's own server-side searches, calls whose result has
    references, and tools that were added in mid-conversation. Thinking, documents and
    blocks of other server-side tools are left out.

    Args:
        messages: The `messages` of a request, and the reply behind them.
        search_tool_name: What the search tool is called in the neutral history.
        canonical: Gives the canonical name for a wire name.
    """
    listed = list(messages)
    found = _by_id(listed, "tool_search_tool_result", "tool_use_id")
    read = (
        _Reader(
            search_tool_name=search_tool_name,
            canonical=canonical,
            # Only the neighbours': some models use an id again in the same history.
            calls=_by_id(listed[max(0, place - 1) : place], "tool_use", "id"),
            results=_by_id(listed[place + 1 : place + 2], "tool_result", "tool_use_id"),
            found=found,
        ).read(message, place)
        for place, message in enumerate(listed)
    )
    return tuple(message for messages_read in read for message in messages_read)


def _by_id(messages: Iterable[JSON], kind: str, key: str) -> dict[str, JSON]:
    """The blocks of one type, by an id of theirs; the first of each id."""
    found: dict[str, JSON] = {}
    for message in messages:
        for block in _blocks(message):
            if block.get("type") == kind:
                found.setdefault(text_of(block.get(key)), block)
    return found


def _blocks(message: JSON) -> list[JSON]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in list_of(content) if isinstance(block, Mapping)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads one message of a history.

    Attributes:
        search_tool_name: What the search tool is called.
        canonical: Gives the canonical name for a wire name.
        calls: The ordinary calls of the message before, by id.
        results: The results in the message behind, by the call's id.
        found: The results of all server-side searches, by the call's id.
    """

    search_tool_name: str
    canonical: Callable[[str], str]
    calls: Mapping[str, JSON]
    results: Mapping[str, JSON]
    found: Mapping[str, JSON]

    def read(self, message: JSON, place: int) -> Iterator[Message]:
        """The neutral messages of one message at its place in the history."""
        role = message.get("role")
        if role == "assistant":
            yield from self._assistant(_blocks(message))
        elif role == "user":
            yield from self._user(_blocks(message))
        else:
            yield from self._system(_blocks(message), place)

    def _assistant(self, blocks: Sequence[JSON]) -> Iterator[Message]:
        """A reply, cut behind each server-side search: its result comes before what follows.

        A client's calls of the same reply wait till behind the last search.
        """
        texts: list[str] = []
        calls: list[ToolCall] = []
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                texts.append(text_of(block.get("text")))
            elif kind == "tool_use":
                calls.append(self._call(block))
            elif kind == "server_tool_use" and is_search_block(block):
                yield from self._server_search(block, "".join(texts))
                texts.clear()
        text = "".join(texts)
        if text.strip() or calls:
            yield Message(role="assistant", content=text, tool_calls=tuple(calls))

    def _server_search(self, block: JSON, text: str) -> Iterator[Message]:
        wire_id = text_of(block.get("id"))
        found = mapping_of(mapping_of(self.found.get(wire_id)).get("content"))
        query = query_of(mapping_of(block.get("input")))
        code = text_of(found.get("error_code"))
        if code or not found:
            result = SearchResult(
                query=query, error=f"search is unavailable: {code or 'it was interrupted'}"
            )
        else:
            result = self._result(query, list_of(found.get("tool_references")))
        # An id of the service's own is refused in an ordinary result.
        yield from self._exchange(f"search_{wire_id.removeprefix('srvtoolu_')}", result, text)

    def _exchange(self, call_id: str, result: SearchResult, text: str = "") -> Iterator[Message]:
        name = self.search_tool_name
        call = search_call(call_id, result.query, name=name)
        yield Message(role="assistant", content=text, tool_calls=(call,))
        yield search_message(call_id, result, name=name)

    def _result(self, query: str, references: Iterable[object]) -> SearchResult:
        listed = (mapping_of(reference) for reference in references)
        # `tool_name` in a result, `name` in a `tool_addition`.
        names = (text_of(r.get("tool_name")) or text_of(r.get("name")) for r in listed)
        return found(query, names, self.canonical)

    def _call(self, block: JSON) -> ToolCall:
        call_id = text_of(block.get("id"))
        if _references(self.results.get(call_id)):
            query = query_of(mapping_of(block.get("input")))
            return search_call(call_id, query, name=self.search_tool_name)
        return ToolCall(
            id=call_id,
            name=self.canonical(text_of(block.get("name"))),
            arguments=arguments_text(block.get("input")),
        )

    def _user(self, blocks: Sequence[JSON]) -> Iterator[Message]:
        """The results first, each a message, then what the user said."""
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield self._tool(block)
        rest: Iterable[JSON] = blocks
        if any(map(_references, results)):
            # What a client lets follow references is nothing that a user said.
            rest = (b for b in blocks if text_of(b.get("text")).strip() not in _boundaries())
        parts = _parts(rest)
        if parts:
            yield Message(role="user", content=simple(parts))

    def _tool(self, block: JSON) -> Message:
        call_id = text_of(block.get("tool_use_id"))
        call = mapping_of(self.calls.get(call_id))
        references = _references(block)
        if references:
            query = query_of(mapping_of(call.get("input")))
            result = self._result(query, references)
            return search_message(call_id, result, name=self.search_tool_name)
        parts = _parts(_blocks(block))
        return Message(
            role="tool",
            tool_call_id=call_id,
            name=self.canonical(text_of(call.get("name"))),
            content=simple(parts),
            is_error=block.get("is_error") is True,
        )

    def _system(self, blocks: Sequence[JSON], place: int) -> Iterator[Message]:
        """Text in mid-conversation as the user's; tools added there as a search for them."""
        parts = _parts(blocks)
        if parts:
            yield Message(role="user", content=simple(parts))
        added = [mapping_of(b.get("tool")) for b in blocks if b.get("type") == "tool_addition"]
        result = self._result("", [mapping_of(tool.get("definition")) or tool for tool in added])
        if result.names:
            query = f"select:{','.join(result.names)}"
            yield from self._exchange(f"added_{place}", replace(result, query=query))


@cache
def _boundaries() -> frozenset[str]:
    """Ours in each language, and Claude Code's."""
    return frozenset({"Tool loaded.", *(locale(each)["search.loaded"] for each in LANGUAGES)})


def _references(block: JSON | None) -> list[JSON]:
    return [part for part in _blocks(block or {}) if part.get("type") == "tool_reference"]


def _parts(blocks: Iterable[JSON]) -> tuple[ContentPart, ...]:
    parts: list[ContentPart] = []
    for block in blocks:
        if block.get("type") == "text" and text_of(block.get("text")).strip():
            parts.append(TextPart(text_of(block.get("text"))))
        elif block.get("type") == "image":
            parts.append(ImagePart(_image_url(mapping_of(block.get("source")))))
    return tuple(parts)


def _image_url(source: JSON) -> str:
    if source.get("type") == "base64":
        kind = text_of(source.get("media_type"))
        return f"data:{kind};base64,{text_of(source.get('data'))}"
    return text_of(source.get("url"))
