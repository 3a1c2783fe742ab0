"""Items of a Responses reply, as a request takes them back.

Needs no SDK. Sources: OpenAI, "Responses API" (output and input items), "Reasoning
models", "Tool search".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tool_search.adapters.wire.arguments import arguments_json
from tool_search.adapters.wire.values import list_of, mapping_of, text_of
from tool_search.messages import ToolCall

__all__ = ["is_call", "message_text", "own_items", "says_more"]

JSON = Mapping[str, Any]

# What an item holds when a request sends it back; the rest is the service's to say.
_FIELDS = {
    "message": ("role", "phase"),
    "function_call": ("call_id", "name", "namespace"),
    "tool_search_call": ("call_id", "execution", "status", "arguments"),
    "tool_search_output": ("call_id", "execution", "status", "tools"),
    "reasoning": ("id", "summary", "content", "encrypted_content"),
}


def is_call(item: JSON) -> bool:
    """True if an item is a call for us to answer."""
    kind = item.get("type")
    return kind == "function_call" or (
        kind == "tool_search_call" and item.get("execution") == "client"
    )


def message_text(item: JSON) -> str:
    """Return what a message says, a refusal too; empty for another item."""
    if item.get("type") != "message":
        return ""
    parts = map(mapping_of, list_of(item.get("content")))
    return "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts)


def own_items(items: Iterable[JSON], calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Return a reply's items as they are sent back.

    Args:
        items: The reply's.
        calls: The calls among them, in order, as the history has them.
    """
    made = iter(calls)
    sent = [_sendable(item, next(made) if is_call(item) else None) for item in items]
    blocks = [item for item in sent if _is_worth_sending(item)]
    # Cut short, or before an empty message: refused without what it was about.
    while blocks and blocks[-1]["type"] == "reasoning":
        blocks.pop()
    return blocks


def says_more(item: JSON) -> bool:
    """True if an item holds what the neutral form cannot carry."""
    if item["type"] == "tool_search_call":
        return item.get("execution") != "client"
    if item["type"] in ("message", "function_call"):
        return "phase" in item or "namespace" in item
    return True


def _is_worth_sending(item: JSON) -> bool:
    """Not an empty message, and not reasoning that the service would have to look up."""
    if item["type"] == "message":
        return bool(item["content"].strip())
    # DeepSeek and vLLM give reasoning as text: there is nothing to look up.
    return item["type"] != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _sendable(item: JSON, call: ToolCall | None) -> dict[str, Any]:
    """An item as a request takes it back; one of an unknown kind unchanged.

    A message is told by its text: with parts, it would need the id that it had.
    """
    kind = item["type"]
    if kind not in _FIELDS:
        return dict(item)
    sent = {"type": kind}
    sent |= {key: item[key] for key in _FIELDS[kind] if item.get(key) is not None}
    if kind == "reasoning" and not sent.get("content"):
        sent.pop("content", None)  # OpenAI's own is empty, and not wanted back
    if kind == "message":
        sent["content"] = message_text(item)
    elif call is not None:
        sent["call_id"] = call.id
        if kind == "function_call":
            sent["arguments"] = arguments_json(call)
    elif kind != "reasoning":
        sent["call_id"] = None
    return {key: _without_nulls(value) if key == "tools" else value for key, value in sent.items()}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
