"""The order and the shape of messages, as services of this dialect and their templates want it.

A person's messages in a row are one message for every service: Z.ai and the templates of many
models refuse a second one (lingtai-kernel 70, mini-swe-agent 759). By a profile's
`message_rules`: for Mistral's models ids of calls have nine letters or digits, a reply follows
results, and a reply has text or calls; where roles alternate it has both, and so has one that a
restored call follows, as Gemini wants it.
Needs no SDK. Sources: mistralai/mistral-common, `protocol/instruct/validator.py`, whose refusals
are quoted in avante.nvim 2562 and 2951, crush 279 and copilot-cli 4884; the templates of
Ministral 3 and Devstral 2 (unsloth 9491), Llama 3.1 and Gemma 2; Gemini API, "Function calling".
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tool_search.core.messages import ContentPart, Message, TextPart
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import MessageRules

__all__ = ["is_written", "nine_characters", "ordered_messages"]

_LENGTH = 9
_OWN = re.compile(r"[a-zA-Z0-9]{9}")
_CHARACTERS = string.digits + string.ascii_letters
# The reply between results and the user's next message: a cancelled turn has none, nor has a
# search that was inserted into the history. An empty reply is refused.
_NOTHING_SAID = Message(role="assistant", content="…")
_NOTHING_ASKED = Message(role="user", content="…")


def is_written(message: Message) -> bool:
    """True if a message has anything to send."""
    return message.role != "assistant" or bool(message.tool_calls or message.text.strip())


def ordered_messages(history: Iterable[Message], profile: ProviderProfile) -> Iterable[Message]:
    """Return messages as the service takes them.

    Args:
        history: Consecutive messages, from one of the user's on or from the beginning.
        profile: The service.
    """
    rules = profile.message_rules
    messages = _join(filter(is_written, history), replies=rules in ("joined", "alternating"))
    if profile.max_calls is not None:
        messages = _with_few_calls(list(messages), profile.max_calls)
    if rules in ("mistral", "alternating"):
        messages = _answer(messages, rules)
    return messages


def _join(messages: Iterable[Message], *, replies: bool) -> Iterator[Message]:
    """Yield the user's neighbouring messages as one, and replies if they are to be joined."""
    roles = ("user", "assistant") if replies else ("user",)
    last: Message | None = None
    for message in messages:
        if last is None:
            last = message
        elif message.role == last.role and message.role in roles and not last.tool_calls:
            # An empty line between them.
            content = (*_parts(last), TextPart(""), *_parts(message))
            last = replace(message, content=content, native=message.native or last.native)
        else:
            yield last
            last = message
    if last is not None:
        yield last


def _parts(message: Message) -> tuple[ContentPart, ...]:
    content = message.content
    if not isinstance(content, str):
        return content
    return (TextPart(content),) if content else ()


def _with_few_calls(messages: Sequence[Message], most: int) -> Iterator[Message]:
    """Yield a reply of many calls as several, each with its results."""
    place = 0
    while place < len(messages):
        reply = messages[place]
        place += 1
        calls = reply.tool_calls
        if len(calls) <= most:
            yield reply
            continue
        end = place
        while end < len(messages) and messages[end].role == "tool":
            end += 1
        for start in range(0, len(calls), most):
            some = calls[start : start + most]
            ids = {call.id for call in some}
            yield _part_of(reply, start, most)
            yield from (m for m in messages[place:end] if m.tool_call_id in ids)
        place = end


def _part_of(reply: Message, start: int, most: int) -> Message:
    """Return a reply with some of its calls; text, reasoning and definitions are in the first."""
    native = reply.native
    if native is not None and native.blocks:
        own = dict(native.blocks[0]) if start == 0 else {}
        if extras := native.blocks[0].get("extra_content"):
            own["extra_content"] = extras[start : start + most]
        native = replace(native, blocks=(own,))
    return replace(
        reply,
        content=reply.content if start == 0 else "",
        tool_calls=reply.tool_calls[start : start + most],
        native=native,
    )


def _answer(messages: Iterable[Message], rules: MessageRules) -> Iterator[Message]:
    """Yield messages with a reply after results, and ids that Mistral takes."""
    previous = None
    for message in messages:
        if previous == "tool" and message.role == "user":
            yield _NOTHING_SAID
        if rules == "alternating" and previous is None and message.role == "assistant":
            yield _NOTHING_ASKED
        previous = message.role
        if message.role == "tool":
            yield replace(message, tool_call_id=nine_characters(message.tool_call_id or ""))
        elif message.tool_calls:
            calls = (replace(call, id=nine_characters(call.id)) for call in message.tool_calls)
            named = replace(message, tool_calls=tuple(calls))
            yield from _text_and_calls(named) if rules == "mistral" else (named,)
        else:
            yield message


def _text_and_calls(message: Message) -> Iterator[Message]:
    if message.text.strip():
        yield replace(message, tool_calls=(), native=None)
    # Definitions in the reply stay with its calls.
    content = () if isinstance(message.content, str) else message.content
    parts = tuple(part for part in content if not isinstance(part, TextPart))
    yield replace(message, content=parts or "")


def nine_characters(call_id: str) -> str:
    """Return a call's id in `[a-zA-Z0-9]{9}`: itself, or 53 bits of its SHA-256.

    >>> nine_characters("D681PevKs"), nine_characters("call_abc")
    ('D681PevKs', 't4mxTRtst')
    """
    if _OWN.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest())
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_CHARACTERS))
        digits.append(_CHARACTERS[digit])
    return "".join(digits)
