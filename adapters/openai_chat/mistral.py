"""Histories for Mistral's models, at Mistral's own API and at servers with the same checks.

Ids of calls have nine letters or digits; a reply follows results; a reply has text or calls.
Every other service accepts such messages too, so they are safe for a gateway.
Needs no SDK. Source: mistralai/mistral-common, `protocol/instruct/validator.py`; its refusals
are quoted in avante.nvim 2562 and 2951, crush 279 and copilot-cli 4884.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tool_search.messages import Message, TextPart

__all__ = ["mistral_messages", "nine_characters"]

_LENGTH = 9
_OWN = re.compile(r"[a-zA-Z0-9]{9}")
_CHARACTERS = string.digits + string.ascii_letters
# The reply between results and the user's next message: a cancelled turn has none, nor has a
# search that was inserted into the history. An empty reply is refused.
_NOTHING_SAID = Message(role="assistant", content="…")


def mistral_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages in the order and under the ids that Mistral wants."""
    previous = None
    for message in messages:
        if previous == "tool" and message.role == "user":
            yield _NOTHING_SAID
        previous = message.role
        if message.role == "tool":
            yield replace(message, tool_call_id=nine_characters(message.tool_call_id or ""))
        elif message.tool_calls:
            yield from _text_and_calls(message)
        else:
            yield message


def _text_and_calls(message: Message) -> Iterator[Message]:
    if message.text.strip():
        yield replace(message, tool_calls=(), native=None)
    calls = tuple(replace(call, id=nine_characters(call.id)) for call in message.tool_calls)
    # Definitions in the reply stay with its calls.
    content = () if isinstance(message.content, str) else message.content
    parts = tuple(part for part in content if not isinstance(part, TextPart))
    yield replace(message, content=parts or "", tool_calls=calls)


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
