"""What of a conversation's history AstrBot has saved, and what is to be saved yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tool_search.adapters.astrbot.tools import neutral_history
from tool_search.conversation.record import message_to_dict
from tool_search.messages import Message

__all__ = ["as_context", "is_new", "unsaved"]

_RESTORED = "restored_"  # what the ids of synthetic searches begin with


def is_new(request: Any) -> bool:
    """Whether a request opens its conversation: `/reset` leaves one without a history."""
    conversation = getattr(request, "conversation", None)
    if conversation is None:
        return not neutral_history(request.contexts)
    saved = getattr(conversation, "history", None)
    try:
        return not (json.loads(saved) if isinstance(saved, str) else saved)
    except ValueError:
        return False


def unsaved(history: Sequence[Message], known: int, saved: Iterable[Message]) -> Iterator[Message]:
    """The searches that show again what a history lost: new ones, and lost ones of earlier."""
    shown = {call.id for said in saved for call in said.tool_calls}
    for said in history[:known]:
        ids = {call.id for call in said.tool_calls} or {said.tool_call_id or ""}
        if any(call_id.startswith(_RESTORED) for call_id in ids - shown):
            yield said
    yield from history[known:-1]


def as_context(message: Message) -> dict[str, Any]:
    """A message as AstrBot keeps it: no name beside a result."""
    content = message_to_dict(message)
    if message.role == "assistant":
        content["content"] = content["content"] or None
    content.pop("name", None)
    return content
