"""Messages of OpenAI's Chat Completions and what is in them, wherever they are read.

Requests, replies, their streams and histories have them. Needs no SDK. Sources: OpenAI, "Chat
Completions API" (calls and their chunks), "Function calling" (`tool_choice`, `allowed_tools`);
Moonshot AI, "Dynamic tool loading" (a system message with `tools`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tool_search.adapters.wire.values import (
    ObjectEnd,
    arguments_text,
    mapping_of,
    mappings_of,
    position_of,
    text_of,
)

__all__ = [
    "SYSTEM",
    "StreamedCall",
    "StreamedCalls",
    "called_name",
    "defined_in",
    "extend",
    "function_name",
    "instructed",
    "message_text",
    "required_names",
]

JSON = Mapping[str, Any]

SYSTEM = ("system", "developer")
"""The roles of system text."""

# Fields of a message or a call that come once, or are repeated, and never come in pieces.
_WHOLE = ("id", "type", "role", "name")


def message_text(message: JSON) -> str:
    """Return the text of a message, whose content is a text or parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(text_of(part.get("text")) for part in mappings_of(content))


def function_name(definition: JSON) -> str:
    """Return the name in a function's definition."""
    return text_of(mapping_of(definition.get("function")).get("name"))


def called_name(call: JSON) -> str:
    """Return the name that a call has, of a function or of a custom tool; empty: not yet."""
    return text_of(mapping_of(call.get("function") or call.get("custom")).get("name"))


def defined_in(message: JSON) -> list[dict[str, Any]]:
    """Return the definitions in a system message, which replies and results do not have."""
    return mappings_of(message.get("tools")) if message.get("role") in SYSTEM else []


def required_names(body: JSON) -> list[str]:
    """Return the names of the functions that the `tool_choice` of a request names."""
    choice = mapping_of(body.get("tool_choice"))
    allowed = choice.get("allowed_tools")
    named = mappings_of(allowed.get("tools")) if isinstance(allowed, Mapping) else [choice]
    return list(filter(None, map(function_name, named)))


def instructed(
    messages: Sequence[dict[str, Any]], instruct: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Return messages whose first one has the instructions of a search.

    Args:
        messages: The messages of a request.
        instruct: Returns a system text with the instructions.
    """
    first = messages[0] if messages and messages[0].get("role") in SYSTEM else None
    if first is None:
        return [{"role": "system", "content": instruct("")}, *messages]
    content = first.get("content")
    if isinstance(content, list):
        # Marks of the cache are on the client's own parts, so these stay as they are.
        before = message_text(first)
        more = [] if instruct(before) == before else [{"type": "text", "text": instruct("")}]
        content = [*content, *more]
    else:
        content = instruct(text_of(content))
    return [{**first, "content": content}, *messages[1:]]


def extend(whole: dict[str, Any], delta: JSON) -> None:
    """Add a piece of a message: texts and lists grow, except for ids and names of kinds."""
    for key, value in delta.items():
        known = whole.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            extend(known, value)
        elif isinstance(value, str) and isinstance(known, str):
            whole[key] = known or value if key in _WHOLE else known + value
        elif isinstance(value, list) and isinstance(known, list):
            whole[key] = [*known, *value]
        elif value is not None or key not in whole:
            whole[key] = dict(value) if isinstance(value, dict) else value


class StreamedCalls:
    """The calls of a stream, in the order in which they began."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._last: dict[int | None, StreamedCall] = {}
        self._by_id: dict[tuple[int | None, str], StreamedCall] = {}

    def extend(self, delta: JSON) -> StreamedCall:
        """Add a delta to its call, or begin a call; return the call.

        Calls of every index are also under the key None: a delta may have no index.
        """
        index = position_of(delta.get("index"))
        call = self._find(index, delta)
        if call is None:
            call = StreamedCall(index, len(self.calls))
            self.calls.append(call)
            self._last[index] = self._last[None] = call
        call.extend(delta)
        if call.id:
            self._by_id[call.index, call.id] = self._by_id[None, call.id] = call
        return call

    def _find(self, index: int | None, delta: JSON) -> StreamedCall | None:
        """Return the call that a delta continues; None if it begins one.

        The id decides if there is one, since some endpoints give every call the index 0 or
        none; else the index decides. A second name under one index is another call, unless
        the arguments of the first one are incomplete.
        """
        call_id = text_of(delta.get("id"))
        same_id = self._by_id.get((index, call_id)) if call_id else None
        last = self._last.get(index)
        if same_id is not None or last is None:
            return same_id
        return None if called_name(delta) and last.is_over(call_id) else last


class StreamedCall:
    """A call of a stream, with the pieces received so far.

    Args:
        index: Its index, if it has one.
        place: Its place among the calls.
    """

    def __init__(self, index: int | None, place: int) -> None:
        self.index = index
        self.place = place
        self._fields: dict[str, Any] = {}
        self._arguments: list[str] = []
        self._end = ObjectEnd()

    @property
    def id(self) -> str:
        """Its id; empty: it has none yet."""
        return text_of(self._fields.get("id"))

    @property
    def name(self) -> str:
        """The name that it calls; empty: it has none yet."""
        return called_name(self._fields)

    def is_over(self, next_id: str) -> bool:
        """True if a delta with a name and this id begins another call."""
        if not self.name:
            return False
        return next_id != self.id if next_id and self.id else self._end.is_over

    def extend(self, delta: JSON) -> None:
        """Add a delta; arguments are kept in pieces, and put together once."""
        fields = {key: value for key, value in delta.items() if key != "index"}
        # Google repeats a signature whole.
        if fields.get("extra_content"):
            self._fields["extra_content"] = fields.pop("extra_content")
        function = dict(mapping_of(fields.pop("function", None)))
        arguments = function.pop("arguments", None)
        extend(self._fields, {**fields, "function": function} if function else fields)
        if isinstance(arguments, str):
            self._arguments.append(arguments)
            self._end.feed(arguments)
        elif arguments is not None:
            self._arguments = [arguments_text(arguments)]
            self._end = ObjectEnd()
            self._end.feed(self._arguments[0])

    def whole(self, missing_id: str = "") -> dict[str, Any]:
        """Return the call, which has this id if the service gave it none."""
        if not self.id and missing_id:
            self._fields["id"] = missing_id
        if not self._arguments:
            return dict(self._fields)
        function = {
            **mapping_of(self._fields.get("function")),
            "arguments": "".join(self._arguments),
        }
        return {**self._fields, "function": function}
