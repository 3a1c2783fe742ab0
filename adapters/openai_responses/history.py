"""Histories in OpenAI's Responses format, read into the neutral form.

Needs no SDK. Sources: OpenAI, "Responses API" (items of `input`); "Tool search" (the
service's searches have no `call_id`; `additional_tools`; namespaces).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from tool_search.adapters.openai_responses.parts import functions_in, own_items, says_more
from tool_search.adapters.wire.searches import (
    HistoryOptions,
    HistoryReader,
    normalized_searches,
    query_of,
    result_of,
    simplified,
)
from tool_search.adapters.wire.values import arguments_object, fields_of, label_of, text_of
from tool_search.core.conversation.history import results_in_place
from tool_search.core.messages import (
    ContentPart,
    Message,
    NativeReply,
    TextPart,
    ToolCall,
    plain_text,
)

__all__ = ["history_from_wire"]

JSON = Mapping[str, Any]

_BETWEEN_MESSAGES = "\n\n"


def history_from_wire(
    items: str | Iterable[JSON], **options: Unpack[HistoryOptions]
) -> tuple[Message, ...]:
    """Return the neutral history of a Responses conversation.

    Neighbouring messages of one role are one message. Searches become ordinary calls of
    the search tool with its JSON as their result: a client's, the service's own, and
    tools that were added in mid-conversation. A file or a sound becomes a line that
    names it; reasoning and items of the service's other tools have no text.

    Args:
        items: The `input` of a request, and the `output` after it.
        options: See `HistoryOptions`.
    """
    if isinstance(items, str):
        return (Message(role="user", content=items),)
    reader = _Reader(**options)
    read = [message for item in items for message in reader.read(fields_of(item))]
    placed = results_in_place([*read, *reader.close()])
    return normalized_searches(placed, name=reader.search_tool_name, canonical=reader.canonical)


@dataclass(slots=True)
class _Draft:
    """The part of a reply that was read so far.

    Attributes:
        texts: The texts of its messages.
        calls: Its calls.
        items: Its items that a request sends back.
        reasoning: The last items of reasoning, before the item that they belong to is read.
    """

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    items: list[JSON] = field(default_factory=list)
    reasoning: list[JSON] = field(default_factory=list)

    def add(self, item: JSON) -> None:
        """Add an item, after the reasoning that belongs to it."""
        if item["type"] == "reasoning":
            self.reasoning.append(item)
        else:
            self.items += [*self.reasoning, item]
            self.reasoning = []

    def messages(self, origin: str) -> Iterator[Message]:
        """Yield the reply, or nothing if it is empty."""
        text = _BETWEEN_MESSAGES.join(filter(str.strip, self.texts))
        if not (text or self.calls):
            return
        blocks = own_items(self.items, self.calls)
        keeps = bool(origin) and any(map(says_more, blocks))
        yield Message(
            role="assistant",
            content=text,
            tool_calls=tuple(self.calls),
            native=NativeReply(origin, tuple(blocks)) if keeps else None,
        )


@dataclass(slots=True, kw_only=True)
class _Reader(HistoryReader):
    """A reader of a history, item by item."""

    _reply: _Draft = field(default_factory=_Draft)
    _results: list[Message] = field(default_factory=list)
    _added: list[tuple[int, list[str]]] = field(default_factory=list)
    _user_parts: list[ContentPart] = field(default_factory=list)
    _user_role: str = ""
    _queries: dict[str, str] = field(default_factory=dict)
    _hosted: deque[tuple[str, frozenset[str]]] = field(default_factory=deque)
    _place: int = 0

    def read(self, item: JSON) -> Iterator[Message]:
        """Yield the messages that an item completes."""
        self._place += 1
        kind = text_of(item.get("type")) or "message"
        if kind == "message" and item.get("role") != "assistant":
            yield from self._user(item)
            return
        yield from self._close_user_message()
        if kind == "message":
            yield from self._next_reply()
            self._speak(item)
        elif kind in ("function_call", "custom_tool_call"):
            yield from self._next_reply()
            self._call(item)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield from self._result(item)
        elif kind == "additional_tools":
            self._added.append((self._place, _names(item)))
        elif kind not in ("tool_search_call", "tool_search_output"):
            yield from self._next_reply()
            self._reply.add({**item, "type": kind})
        elif item.get("execution") == "client":
            yield from self._search(kind, item)
        else:
            yield from self._hosted_search(kind, item)

    def close(self) -> Iterator[Message]:
        """Yield what is still open: a message, a reply, its results, and tools added after them."""
        yield from self._close_user_message()
        yield from self._reply.messages(self.origin)
        yield from self._results
        for place, names in self._added:
            yield from self.added(place, names)
        self._reply, self._results, self._added = _Draft(), [], []

    def _user(self, item: JSON) -> Iterator[Message]:
        """Read a message of the user or of another role; neighbours of one role are one."""
        role = text_of(item.get("role"))
        if role != self._user_role:
            yield from self._close_user_message()
        if not self._user_parts:
            yield from self.close()
        self._hosted.clear()
        self._user_role = role
        self._user_parts += self.parts(item.get("content"))

    def _close_user_message(self) -> Iterator[Message]:
        if self._user_parts:
            yield Message(role="user", content=simplified(tuple(self._user_parts)))
        self._user_parts = []

    def _next_reply(self) -> Iterator[Message]:
        """Close the reply, if results or new tools came after it."""
        if self._results or self._added:
            yield from self.close()

    def _speak(self, item: JSON) -> None:
        said = plain_text(self.parts(item.get("content")))
        self._reply.texts.append(said)
        content = [{"type": "output_text", "text": said}]
        self._reply.add({**item, "type": "message", "content": content})

    def _call(self, item: JSON) -> None:
        name = self.canonical(label_of(item.get("name")))
        is_custom = item["type"] == "custom_tool_call"
        given = {"input": item.get("input")} if is_custom else item.get("arguments")
        self._reply.calls.append(self.call(item.get("call_id"), item.get("name"), given))
        self._reply.add({**item, "type": "function_call", "name": name})

    def _result(self, item: JSON) -> Iterator[Message]:
        call_id = label_of(item.get("call_id"))
        content = simplified(self.parts(item.get("output")))
        hosted = next((search for search in self._hosted if call_id in search[1]), None)
        if hosted is None:
            self._results.append(Message(role="tool", tool_call_id=call_id, content=content))
            return
        # Recorded: a client has answered a search by the service as if it were a function.
        self._hosted.remove(hosted)
        yield from self._search_reply(call_id, hosted[0])
        name = self.search_tool_name
        yield Message(role="tool", tool_call_id=call_id, name=name, content=content)

    def _search(self, kind: str, item: JSON) -> Iterator[Message]:
        """Read a client's search: its call or its output."""
        call_id = label_of(item.get("call_id"))
        if kind == "tool_search_call":
            yield from self._next_reply()
            arguments = fields_of(item.get("arguments"))
            self._queries[call_id] = query_of(arguments)
            self._reply.calls.append(self.own_search_call(call_id, arguments))
            self._reply.add(item)
        else:
            result = result_of(self._queries.get(call_id, ""), _names(item), str)
            self._results.append(self.search_message(call_id, result))

    def _hosted_search(self, kind: str, item: JSON) -> Iterator[Message]:
        """Read a search by the service, which comes before the rest of its reply."""
        if kind == "tool_search_call":
            ids = frozenset(filter(None, (label_of(item.get(key)) for key in ("call_id", "id"))))
            self._hosted.append((query_of(fields_of(item.get("arguments"))), ids))
            # Reasoning goes back with the item after it, and a search by the service does not.
            self._reply.reasoning = []
            return
        query = self._hosted.popleft()[0] if self._hosted else ""
        call_id = f"search_{self._place}"
        yield from self._search_reply(call_id, query)
        yield self.search_message(call_id, result_of(query, _names(item), str))

    def _search_reply(self, call_id: str, query: str) -> Iterator[Message]:
        """Yield a search in a reply with the text before it; calls come after it."""
        yield from self._next_reply()
        call = self.search_call(call_id, query)
        before, waiting = self._reply, _Draft()
        if before.calls:
            waiting.calls, waiting.items = before.calls, _without_messages(before.items)
            before.items = []
        else:
            before.add(
                {
                    "type": "tool_search_call",
                    "execution": "client",
                    "status": "completed",
                    "arguments": arguments_object(call),
                }
            )
        before.calls = [call]
        self._reply = waiting
        yield from before.messages(self.origin)

    def part(self, part: JSON) -> ContentPart:
        """Return a part in the neutral form; a blank text if it says nothing."""
        kind = part.get("type")
        if kind == "input_image":
            return self.picture(text_of(part.get("image_url")))
        if kind == "input_audio":
            return self.attached("audio")
        if kind == "input_file":
            return self.attached("file", *map(part.get, ("filename", "file_url", "file_id")))
        return TextPart(text_of(part.get("text")) or text_of(part.get("refusal")))


def _without_messages(items: Iterable[JSON]) -> list[JSON]:
    """Return items without messages, and without the reasoning that belongs to these."""
    kept: list[JSON] = []
    for item in items:
        if item["type"] != "message":
            kept.append(item)
            continue
        while kept and kept[-1]["type"] == "reasoning":
            kept.pop()
    return kept


def _names(item: JSON) -> list[str]:
    """Return the names of the functions that an item declares, those in namespaces too."""
    return [label_of(function.get("name")) for _, function in functions_in(item.get("tools"))]
