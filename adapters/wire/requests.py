"""Requests of any dialect: their options, their frame, and their messages as bytes.

A request of a conversation repeats the messages of the request before it. Messages of earlier
turns no longer change, so their bytes are kept with the conversation; the current turn is
written for each request. The bytes are the same with and without the kept ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    ContentPart,
    ImagePart,
    KeptWork,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.strategies import strategy_class
from tool_search.core.values.json import compact_json, json_bytes

__all__ = [
    "Pieces",
    "RequestOptions",
    "WrittenHistory",
    "definitions_in",
    "encoded_body",
    "encoded_messages",
    "named_picture",
    "refers",
    "request_object",
    "result_text",
    "result_texts",
    "settled_count",
    "user_content",
    "with_extra_body",
]

_PLACE = re.compile(r"\b(?:messages|input)[.\[]\d[\w.\[\]]{0,100}")

JSON = Mapping[str, Any]
_NOTHING_KEPT = KeptWork()
Pieces = list[bytes | bytearray]
"""JSON in pieces, to be joined once: a long history is not copied at each step."""
Write = Callable[[Sequence[Message], int], Iterable[JSON]]
"""Writes consecutive messages of a history, the first of which has this index."""


class RequestOptions(TypedDict, total=False):
    """Options of a request, the same in every dialect.

    Attributes:
        stream: True if the reply is streamed; the default.
        extra_body: More fields. They replace fields of the same name; a null removes one.
    """

    stream: bool
    extra_body: Mapping[str, Any] | None


def with_extra_body(body: Mapping[str, Any], options: RequestOptions) -> dict[str, Any]:
    """Return the fields of a request and those of `extra_body`, without nulls."""
    merged = {**body, **(options.get("extra_body") or {})}
    return {key: value for key, value in merged.items() if value is not None}


def request_object(
    encode: Callable[..., bytes],
    plan: RequestPlan,
    profile: ProviderProfile,
    options: RequestOptions,
) -> dict[str, Any]:
    """Return a request as a JSON object, written at once: nothing is kept for the next one."""
    read: dict[str, Any] = json.loads(encode(replace(plan, kept=_NOTHING_KEPT), profile, **options))
    return read


def user_content(
    content: str | Sequence[ContentPart], *, text_type: str, picture: Callable[[str], JSON]
) -> str | list[JSON]:
    """Return a user's text, or a list of parts if there are pictures among them.

    Args:
        content: The content of the message.
        text_type: The `type` of a text.
        picture: Returns the part of a picture's address.
    """
    if isinstance(content, str):
        return content
    if not any(isinstance(part, ImagePart) for part in content):
        return "\n".join(part.text for part in content if isinstance(part, TextPart))
    wire: list[JSON] = []
    for part in content:
        if isinstance(part, ImagePart):
            wire.append(picture(part.url))
        elif isinstance(part, TextPart) and part.text:
            wire.append({"type": text_type, "text": part.text})
    return wire


def definitions_in(message: Message) -> list[Tool]:
    """Return the definitions that a message sends, in order."""
    parts = () if isinstance(message.content, str) else message.content
    return [tool for part in parts if isinstance(part, ReferencePart) for tool in part.tools]


def refers(result: SearchResult, profile: ProviderProfile) -> bool:
    """True if a provider's strategy writes a result as references to the tools it found."""
    strategy = strategy_class(profile.strategy)()
    return result.error is None and isinstance(strategy.format_result(result), ReferencePart)


def result_text(result: SearchResult, profile: ProviderProfile) -> str:
    """Return a result as JSON text, under the names that a request calls by."""
    rule = profile.name_rule
    named = replace(
        result,
        matches=tuple(replace(m, name=wire_name(m.name, rule)) for m in result.matches),
        loaded=tuple(wire_name(name, rule) for name in result.loaded),
    )
    return named.to_json()


def result_texts(content: str | Iterable[ContentPart], rule: NameRule) -> Iterator[str]:
    """Yield the texts of a call's result; references without definitions become names."""
    parts = (TextPart(content),) if isinstance(content, str) else content
    for part in parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ReferencePart) and not part.tools:
            yield compact_json([wire_name(name, rule) for name in part.names])


def named_picture(said: str, body: bytes) -> str:
    """Return the address of the picture at the first place that a refusal names, or nothing.

    Args:
        said: What the service says, as `messages.88.content.1.image.source: ...`.
        body: The request.
    """
    named = _PLACE.search(said)
    if named is None:
        return ""
    here = json.loads(body)
    for step in re.findall(r"\w+", named[0]):
        if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        elif isinstance(here, dict) and isinstance(here.get(step), dict | list):
            here = here[step]
    return next(_addresses(here), "")


def _addresses(part: Any) -> Iterator[str]:
    """Yield the addresses of the pictures in a part of a request, in any dialect."""
    if isinstance(part, list):
        for inner in part:
            yield from _addresses(inner)
    elif isinstance(part, dict):
        image = part.get("image_url")
        found = image.get("url") if isinstance(image, dict) else image
        found = found or part.get("data") or part.get("url")
        if isinstance(found, str):
            yield found
        else:
            yield from _addresses([part.get("source"), part.get("content")])


class WrittenHistory:
    """The beginning of a history in a dialect's JSON.

    Attributes:
        messages: The messages that are written.
        encoded: Its JSON, without the brackets of the array.
    """

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.encoded = bytearray()

    def precedes(self, messages: tuple[Message, ...]) -> bool:
        """True if these messages continue the written ones."""
        # Equal tuples are compared by identity first, which takes no time.
        return messages[: len(self.messages)] == self.messages

    def extend(self, messages: tuple[Message, ...], write: Write) -> None:
        """Write the messages that are not written yet."""
        done = len(self.messages)
        if len(messages) > done:
            _append(self.encoded, map(json_bytes, write(messages[done:], done)))
            self.messages = messages

    def with_rest(self, rest: Iterable[JSON]) -> Pieces:
        """Return the JSON array of the written messages and of the rest."""
        more = b",".join(map(json_bytes, rest))
        comma = b"," if more and self.encoded else b""
        return [b"[", self.encoded, comma, more, b"]"]


def _append(array: bytearray, entries: Iterable[bytes]) -> None:
    for entry in entries:
        if array:
            array += b","
        array += entry


def settled_count(
    plan: RequestPlan,
    *,
    marked: Collection[int] = (),
    is_written: Callable[[Message], bool] = lambda _: True,
) -> int:
    """Return the number of first messages that later requests repeat byte for byte.

    They are the messages of earlier turns: up to a message of the user's that follows one
    of the model's, since formats join neighbours of one role.

    Args:
        plan: The request.
        marked: Indexes of messages that this request writes with a mark.
        is_written: False for a message of the model's that the format leaves out.
    """
    if plan.kept is _NOTHING_KEPT:
        return 0
    messages, last = plan.messages, len(plan.messages) - 1
    for place in range(min((last, *marked)), 0, -1):
        before = messages[place - 1]
        if messages[place].role == "user" and before.role == "assistant" and is_written(before):
            return place
    return 0


def encoded_messages(
    plan: RequestPlan, key: object, write: Write, *, settled: int, rest: Iterable[JSON]
) -> Pieces:
    """Return the JSON array of a request's messages.

    Args:
        plan: The request.
        key: Everything besides the messages that the written form depends on.
        write: Writes messages; it must not join those before and after `settled`.
        settled: The number of messages that later requests repeat.
        rest: The others, written.
    """
    if not settled:
        return WrittenHistory().with_rest(rest)
    beginning = plan.messages[:settled]
    written = plan.kept.get(WrittenHistory, key)
    if written is None or not written.precedes(beginning):
        written = plan.kept.put(key, WrittenHistory())
    written.extend(beginning, write)
    return written.with_rest(rest)


def encoded_body(body: Mapping[str, Any], tools: bytes | None, **written: Pieces) -> bytes:
    """Return a request's body, copied into one text of bytes once.

    Args:
        body: Its members, in order.
        tools: The JSON of its tools, which come first; None if it has none.
        written: The JSON of the members that are written already.
    """
    pieces: Pieces = [] if tools is None else [b',"tools":', tools]
    for key, value in body.items():
        pieces.append(b",%b:" % json_bytes(key))
        pieces += written[key] if key in written else (json_bytes(value),)
    # The first member follows the brace, not a comma.
    pieces[0] = b"{" + bytes(pieces[0][1:])
    return b"".join((*pieces, b"}"))
