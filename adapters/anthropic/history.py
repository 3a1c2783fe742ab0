"""Histories in Anthropic's Messages format, read into the neutral form.

Needs no SDK. Sources: Anthropic, "Messages API" (neighbours of one role are one turn);
"Tool search tool" (a server-side search and its result, which may come first in the next
reply; `tool_reference` as the result of a client's own search); "Mid-conversation tool
changes" (`tool_addition`); "Compaction"; "Citations" (`document`, `search_result`); "Files API".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any, Unpack

from tool_search.adapters.anthropic.reply import blocks_of, is_search_block, references_in
from tool_search.adapters.wire.searches import (
    HistoryOptions,
    HistoryReader,
    normalized_result,
    query_of,
    result_of,
    simplified,
)
from tool_search.adapters.wire.values import (
    arguments_object,
    attachment,
    fields_of,
    label_of,
    mappings_of,
    text_of,
)
from tool_search.core.conversation.history import results_in_place
from tool_search.core.messages import ContentPart, Message, NativeReply, TextPart, ToolCall
from tool_search.core.services import SearchResult
from tool_search.i18n import LANGUAGES, Language, locale

__all__ = ["history_from_wire"]

JSON = Mapping[str, Any]

_NEUTRAL = ("text", "tool_use")


def history_from_wire(
    messages: Iterable[JSON], **options: Unpack[HistoryOptions]
) -> tuple[Message, ...]:
    """Return the neutral history of a Messages conversation.

    Neighbours of one role are one message, as the service reads them. Searches become
    ordinary calls of the search tool with its JSON as their result, each before the
    calls that came after it in the same reply, so that any provider takes the history:
    Claude's own server-side searches, calls whose result has references, and tools that
    were added in mid-conversation. Compactions and documents become their text, a
    document without one a line that names it; thinking and blocks of other server-side
    tools have none.

    Args:
        messages: The `messages` of a request, and the reply after them.
        options: See `HistoryOptions`.
    """
    turns = list(_turns(messages))
    found = _by_id(turns, "tool_search_tool_result", "tool_use_id")
    read = (
        _Reader(
            # Only the neighbours': some models use an id again in the same history.
            calls=_by_id(turns[max(0, index - 1) : index], "tool_use", "id"),
            results=_by_id(turns[index + 1 : index + 2], "tool_result", "tool_use_id"),
            found=found,
            **options,
        ).read(turn)
        for index, turn in enumerate(turns)
    )
    return results_in_place([message for messages_read in read for message in messages_read])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """Neighbouring messages of one role.

    Attributes:
        role: The role of all of them.
        place: The index of the first.
        messages: The blocks of each.
    """

    role: str
    place: int
    messages: tuple[tuple[JSON, ...], ...]

    @property
    def blocks(self) -> list[JSON]:
        """The blocks of all messages, in order."""
        return [block for blocks in self.messages for block in blocks]


def _turns(messages: Iterable[JSON]) -> Iterator[_Turn]:
    listed = [fields_of(message) for message in messages]
    for role, group in groupby(enumerate(listed), key=lambda entry: text_of(entry[1].get("role"))):
        entries = list(group)
        blocks = tuple(tuple(blocks_of(message)) for _, message in entries)
        yield _Turn(role=role, place=entries[0][0], messages=blocks)


def _by_id(turns: Iterable[_Turn], kind: str, key: str) -> dict[str, JSON]:
    """Return the blocks of one type by the id in a field; the first block of each id."""
    found: dict[str, JSON] = {}
    for turn in turns:
        for block in turn.blocks:
            if block.get("type") == kind:
                found.setdefault(label_of(block.get(key)), block)
    return found


@dataclass(slots=True)
class _Reply:
    """The blocks of a reply since the last search in it.

    Attributes:
        calls: Calls of the client's tools, which come after the last search.
    """

    calls: list[tuple[JSON, ToolCall]] = field(default_factory=list)
    _paragraphs: list[list[str]] = field(default_factory=list)
    _blocks: list[JSON] = field(default_factory=list)

    def begin_paragraph(self) -> None:
        """Separate the text that follows from the text before it."""
        self._paragraphs.append([])

    def add(self, block: JSON) -> None:
        """Add a block that is not a call."""
        kind = block.get("type")
        if kind == "text":
            self._paragraphs[-1].append(text_of(block.get("text")))
        elif kind == "compaction":
            self._paragraphs += [[text_of(block.get("content"))], []]
        self._blocks.append(block)

    def message(self, calls: Sequence[ToolCall], called: Sequence[JSON], origin: str) -> Message:
        """Return the message of the blocks so far, and begin the next one.

        Args:
            calls: Its calls.
            called: Their blocks.
            origin: The origin that gets the blocks back; empty for none.
        """
        texts = ["".join(texts) for texts in self._paragraphs]
        blocks = [*_kept_blocks(self._blocks), *called]
        says_more = any(block["type"] not in _NEUTRAL for block in blocks)
        self._paragraphs, self._blocks = [[]], []
        return Message(
            role="assistant",
            content="\n\n".join(text for text in texts if text.strip()),
            tool_calls=tuple(calls),
            native=NativeReply(origin, tuple(blocks)) if origin and says_more else None,
        )


@dataclass(slots=True, kw_only=True)
class _Reader(HistoryReader):
    """A reader of one turn of a history.

    Attributes:
        calls: The ordinary calls of the turn before, by id.
        results: The results in the turn after, by the call's id.
        found: The results of all server-side searches, by the call's id.
    """

    calls: Mapping[str, JSON]
    results: Mapping[str, JSON]
    found: Mapping[str, JSON]

    def read(self, turn: _Turn) -> Iterator[Message]:
        """Yield the neutral messages of a turn."""
        if turn.role == "assistant":
            yield from self._assistant(turn)
        elif turn.role == "user":
            yield from self._user(turn.blocks)
        else:
            yield from self._system(turn)

    def _assistant(self, turn: _Turn) -> Iterator[Message]:
        """Yield replies, cut after each server-side search: its result precedes the rest."""
        reply = _Reply()
        for blocks in turn.messages:
            reply.begin_paragraph()
            for block in blocks:
                kind = block.get("type")
                if kind == "tool_use":
                    call = self._call(block)
                    reply.calls.append((self._call_block(block, call), call))
                elif kind == "server_tool_use" and is_search_block(block):
                    yield from self._server_search(block, reply)
                elif kind != "tool_search_tool_result":
                    reply.add(block)
        called, calls = [block for block, _ in reply.calls], [call for _, call in reply.calls]
        message = reply.message(calls, called, self.origin)
        if message.text or calls:
            yield message

    def _server_search(self, block: JSON, reply: _Reply) -> Iterator[Message]:
        wire_id = label_of(block.get("id"))
        answer = self.found.get(wire_id, {})
        found = fields_of(answer.get("content"))
        query = query_of(fields_of(block.get("input")))
        code = text_of(found.get("error_code"))
        if code or not found:
            result = SearchResult(
                query=query, error=f"search is unavailable: {code or 'it was interrupted'}"
            )
        else:
            result = self._result(query, references_in(answer))
        # The service refuses its own ids in an ordinary result.
        call_id = f"search_{wire_id.removeprefix('srvtoolu_')}"
        call = self.search_call(call_id, query)
        yield reply.message([call], [self._call_block({"type": "tool_use"}, call)], self.origin)
        yield self.search_message(call_id, result)

    def _result(self, query: str, references: Iterable[JSON]) -> SearchResult:
        # `tool_name` in a result, `name` in a `tool_addition`.
        names = (label_of(r.get("tool_name")) or label_of(r.get("name")) for r in references)
        return result_of(query, names, self.canonical)

    def _call(self, block: JSON) -> ToolCall:
        call_id = label_of(block.get("id"))
        if references_in(self.results.get(call_id, {})):
            return self.own_search_call(call_id, fields_of(block.get("input")))
        return self.call(call_id, block.get("name"), block.get("input"))

    def _call_block(self, block: JSON, call: ToolCall) -> JSON:
        """Return the block of a call, with the id, name and arguments of the neutral call."""
        said = {"id": call.id, "name": call.name, "input": arguments_object(call)}
        (kept,) = _kept_blocks([{**block, **said}])
        return kept

    def _user(self, blocks: Sequence[JSON]) -> Iterator[Message]:
        """Yield each result as a message, and then the user's own content."""
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield self._tool(block)
        rest = [block for block in blocks if block.get("type") != "tool_result"]
        if any(map(references_in, results)):
            # Clients add a line after references: the user did not write it.
            rest = [
                b for b in rest if text_of(b.get("text")).strip() not in _lines_after_references()
            ]
        content = simplified(self.parts(rest))
        if content:
            yield Message(role="user", content=content, native=self._native(rest))

    def _tool(self, block: JSON) -> Message:
        call_id = label_of(block.get("tool_use_id"))
        call = fields_of(self.calls.get(call_id))
        references = references_in(block)
        if references:
            query = query_of(fields_of(call.get("input")))
            result = self._result(query, references)
            return self.search_message(call_id, result)
        content = blocks_of(block)
        message = Message(
            role="tool",
            tool_call_id=call_id,
            name=self.canonical(label_of(call.get("name"))),
            content=simplified(self.parts(content)),
            is_error=block.get("is_error") is True,
            native=self._native(content),
        )
        if message.name != self.search_tool_name:
            return message
        return normalized_result(message, query_of(fields_of(call.get("input"))), self.canonical)

    def _native(self, blocks: Iterable[JSON]) -> NativeReply | None:
        """Return the blocks of a user or a result, if the neutral form cannot carry them all."""
        kept = _kept_blocks(blocks)
        says_more = any(block["type"] not in ("text", "image") for block in kept)
        return NativeReply(self.origin, tuple(kept)) if self.origin and says_more else None

    def _system(self, turn: _Turn) -> Iterator[Message]:
        """Yield system text in mid-conversation as the user's, and added tools as a search."""
        content = simplified(self.parts(turn.blocks))
        if content:
            yield Message(role="user", content=content)
        added = [fields_of(b.get("tool")) for b in turn.blocks if b.get("type") == "tool_addition"]
        result = self._result("", [fields_of(tool.get("definition")) or tool for tool in added])
        yield from self.added(turn.place, result.names)

    def part(self, part: JSON) -> ContentPart:
        """Return a block in the neutral form; a blank text if it says nothing."""
        if part.get("type") == "image":
            return self.picture(_image_url(fields_of(part.get("source"))))
        return TextPart("\n".join(filter(str.strip, _texts(part, self.language))))


@cache
def _lines_after_references() -> frozenset[str]:
    """Return the lines after references: ours in each language, and Claude Code's."""
    return frozenset({"Tool loaded.", *(locale(each)["search.loaded"] for each in LANGUAGES)})


def _kept_blocks(blocks: Iterable[JSON]) -> list[dict[str, Any]]:
    """Return blocks as a request takes them back: no empty text, no nulls, no cache mark."""
    kept = []
    for block in blocks:
        if not text_of(block.get("type")):
            continue
        if block["type"] != "text" or text_of(block.get("text")).strip():
            given = {k: v for k, v in block.items() if v is not None and k != "cache_control"}
            kept.append(given)
    return kept


def _texts(block: JSON, language: Language) -> Iterator[str]:
    """Yield what a block says, line by line."""
    kind = block.get("type")
    if kind == "text":
        yield text_of(block.get("text"))
    elif kind == "document":
        yield from _document(block, language)
    elif kind == "search_result":
        yield text_of(block.get("title"))
        yield text_of(block.get("source"))
        yield from (text_of(part.get("text")) for part in mappings_of(block.get("content")))
    elif kind == "container_upload":
        yield attachment("file", language, [block.get("file_id")])


def _document(block: JSON, language: Language) -> Iterator[str]:
    title, source = block.get("title"), fields_of(block.get("source"))
    content = source.get("content")
    inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [text_of(part.get("text")) for part in mappings_of(inner)]
    if source.get("type") == "text":
        texts.append(text_of(source.get("data")))
    if any(map(str.strip, texts)):
        yield from (text_of(title), text_of(block.get("context")), *texts)
    else:
        names = [title, source.get("url"), source.get("file_id"), source.get("media_type")]
        yield attachment("file", language, names)
        yield text_of(block.get("context"))


def _image_url(source: JSON) -> str:
    if source.get("type") == "base64":
        kind = text_of(source.get("media_type"))
        return f"data:{kind};base64,{text_of(source.get('data'))}"
    return text_of(source.get("url"))
