"""Histories in OpenAI's Chat Completions format, read into the neutral form.

Needs no SDK. Sources: OpenAI, "Chat Completions API" (roles, parts, the older
`function_call`); DeepSeek, "Thinking mode", and OpenRouter, "Reasoning tokens" (fields
that a reply takes back); Google, "OpenAI compatibility" (`extra_content` of a call);
Moonshot AI, "Dynamic tool loading" (tools in a system message).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Unpack

from tool_search.adapters.openai_chat.parts import SYSTEM, function_name
from tool_search.adapters.openai_chat.reply import reasoning_of
from tool_search.adapters.openai_chat.wire import REASONING_FIELDS
from tool_search.adapters.wire.searches import (
    HistoryOptions,
    HistoryReader,
    normalized_searches,
    simplified,
)
from tool_search.adapters.wire.values import fields_of, label_of, mappings_of, text_of
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

_RESULTS = ("tool", "function")
_FILES = ("file", "document_url", "video_url")


def history_from_wire(
    messages: Iterable[JSON], **options: Unpack[HistoryOptions]
) -> tuple[Message, ...]:
    """Return the neutral history of a Chat Completions conversation.

    Neighbouring messages of one role are one message. System messages before the first
    other message are left out: they are the prompt, which the session has itself. Later
    ones become the user's, and tools that they declare become a search. Results of a
    search are read in any known form. A file or a sound becomes a line that names it.

    Args:
        messages: The `messages` of a request, and the reply after them.
        options: See `HistoryOptions`.
    """
    reader = _Reader(**options)
    listed = [fields_of(message) for message in messages]
    prompt = next((n for n, m in enumerate(listed) if not _is_prompt(m)), len(listed))
    runs = groupby(enumerate(listed[prompt:]), key=lambda entry: _role(entry[1]))
    read = [
        message
        for role, run in runs
        for message in reader.read(role, [(prompt + place, given) for place, given in run])
    ]
    placed = results_in_place(read)
    return normalized_searches(placed, name=reader.search_tool_name, canonical=reader.canonical)


def _role(message: JSON) -> str:
    return text_of(message.get("role"))


def _is_prompt(message: JSON) -> bool:
    return _role(message) in SYSTEM and not mappings_of(message.get("tools"))


@dataclass(slots=True, kw_only=True)
class _Reader(HistoryReader):
    """A reader of a history by its runs of one role."""

    def read(self, role: str, run: Sequence[tuple[int, JSON]]) -> Iterator[Message]:
        """Yield the neutral messages of neighbours; each message comes with its place."""
        if role == "assistant":
            yield from self._replies(run)
        elif role in _RESULTS:
            yield from (self._result(message) for _, message in run)
        else:
            yield from self._user([message for _, message in run])
            for place, message in run if role in SYSTEM else ():
                tools = mappings_of(message.get("tools"))
                yield from self.added(place, list(filter(None, map(function_name, tools))))

    def _replies(self, run: Sequence[tuple[int, JSON]]) -> Iterator[Message]:
        texts = [self._reply_text(message) for _, message in run]
        given = [entry for place, message in run for entry in _calls_in(place, message)]
        calls = tuple(map(self._call, given))
        text = "\n\n".join(filter(str.strip, texts))
        if text or calls:
            native = self._native([message for _, message in run], given)
            yield Message(role="assistant", content=text, tool_calls=calls, native=native)

    def _reply_text(self, message: JSON) -> str:
        said = plain_text(self.parts(message.get("content")))
        audio = fields_of(message.get("audio"))
        if not said.strip() and audio:
            said = text_of(audio.get("transcript")) or self.attached("audio").text
        return said if said.strip() else text_of(message.get("refusal"))

    def _call(self, given: JSON) -> ToolCall:
        function = fields_of(given.get("function"))
        if not function and given.get("type") == "custom":
            custom = fields_of(given.get("custom"))
            function = {"name": custom.get("name"), "arguments": {"input": custom.get("input")}}
        return self.call(given.get("id"), function.get("name"), function.get("arguments"))

    def _native(self, messages: Sequence[JSON], calls: Sequence[JSON]) -> NativeReply | None:
        own = dict(reasoning_of(_merged_reasoning(messages)))
        extras = [call.get("extra_content") for call in calls]
        if any(extras):
            own["extra_content"] = extras
        return NativeReply(self.origin, (own,)) if self.origin and own else None

    def _result(self, message: JSON) -> Message:
        return Message(
            role="tool",
            tool_call_id=label_of(message.get("tool_call_id")),
            name=self.canonical(label_of(message.get("name"))),
            content=simplified(self.parts(message.get("content"))),
        )

    def _user(self, messages: Iterable[JSON]) -> Iterator[Message]:
        parts = [part for message in messages for part in self.parts(message.get("content"))]
        if parts:
            yield Message(role="user", content=simplified(tuple(parts)))

    def part(self, part: JSON) -> ContentPart:
        """Return a part in the neutral form; a blank text if it says nothing."""
        kind = text_of(part.get("type"))
        inner, fields = part.get(kind), fields_of(part.get(kind))
        address = text_of(inner) or text_of(fields.get("url"))
        if kind == "image_url":
            return self.picture(address)
        if kind == "input_audio":
            return self.attached("audio")
        if kind in _FILES:
            return self.attached("file", fields.get("filename"), address, fields.get("file_id"))
        return TextPart(text_of(part.get("text")) or text_of(part.get("refusal")))


def _calls_in(place: int, message: JSON) -> Iterator[JSON]:
    """Yield the calls of a reply; a call in the older form has no id, nor has its result."""
    yield from mappings_of(message.get("tool_calls"))
    function = fields_of(message.get("function_call"))
    if function and not message.get("tool_calls"):
        yield {"id": f"call_{place}", "function": function}


def _merged_reasoning(messages: Sequence[JSON]) -> JSON:
    """Return the reasoning of neighbouring replies, joined field by field."""
    merged: dict[str, Any] = {}
    for name in REASONING_FIELDS:
        values = [message[name] for message in messages if message.get(name)]
        if all(isinstance(value, str) for value in values):
            merged[name] = "\n\n".join(values)
        elif all(isinstance(value, list) for value in values):
            merged[name] = [entry for value in values for entry in value]
    return merged
