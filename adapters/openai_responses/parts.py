"""Items of OpenAI's Responses and what is in them, wherever they are read.

Requests, replies, their streams and histories have them. Needs no SDK. Sources: OpenAI,
"Responses API" (output and input items), "Reasoning models", "Streaming events", "Tool search".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tool_search.adapters.wire.values import (
    arguments_json,
    list_of,
    mapping_of,
    mappings_of,
    text_of,
)
from tool_search.core.messages import ToolCall

__all__ = [
    "ENDS",
    "functions_in",
    "grouped",
    "is_call",
    "is_client_search",
    "message_text",
    "own_items",
    "says_more",
]

JSON = Mapping[str, Any]

ENDS = ("response.completed", "response.incomplete", "response.failed")
"""The events that end a stream; each has the response."""

# The fields of an item that a request sends back; the service decides the others.
_FIELDS = {
    "message": ("role", "phase"),
    "function_call": ("call_id", "name", "namespace"),
    "tool_search_call": ("call_id", "execution", "status", "arguments"),
    "tool_search_output": ("call_id", "execution", "status", "tools"),
    "reasoning": ("id", "summary", "content", "encrypted_content"),
}


def functions_in(tools: object) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield the functions of a list of tools, each with its namespace."""
    for tool in mappings_of(tools):
        if tool.get("type") != "namespace":
            yield None, tool
            continue
        for function in mappings_of(tool.get("tools")):
            yield text_of(tool.get("name")), function


def grouped(functions: Iterable[tuple[JSON | None, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a list of tools with the functions of a namespace in it, at the place of its first.

    Args:
        functions: The functions, each with its namespace's own fields; None: it is in none.
    """
    written: list[dict[str, Any]] = []
    groups: dict[str, dict[str, Any]] = {}
    for group, function in functions:
        if group is None:
            written.append(function)
        elif group["name"] in groups:
            groups[group["name"]]["tools"].append(function)
        else:
            groups[group["name"]] = {**group, "tools": [function]}
            written.append(groups[group["name"]])
    return written


def is_client_search(tool: JSON) -> bool:
    """True for a client's own search in a list of tools."""
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def is_call(item: JSON) -> bool:
    """True if an item is a call for us to answer."""
    kind = item.get("type")
    return kind == "function_call" or (
        kind == "tool_search_call" and item.get("execution") == "client"
    )


def message_text(item: JSON) -> str:
    """Return the text of a message, a refusal too; empty for another item."""
    if item.get("type") != "message":
        return ""
    parts = map(mapping_of, list_of(item.get("content")))
    return "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts)


def own_items(items: Iterable[JSON], calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Return a reply's items as they are sent back.

    Args:
        items: The items of the reply.
        calls: Its calls, in order, as the history has them.
    """
    made = iter(calls)
    sent = [_sendable(item, next(made) if is_call(item) else None) for item in items]
    blocks = [item for item in sent if _is_worth_sending(item)]
    # Reasoning of a cut reply, or of an empty message, is refused without the item after it.
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
    """True if an item is not an empty message, nor reasoning that the service looks up."""
    if item["type"] == "message":
        return bool(item["content"].strip())
    # DeepSeek and vLLM send reasoning as text: there is nothing to look up.
    return item["type"] != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _sendable(item: JSON, call: ToolCall | None) -> dict[str, Any]:
    """Return an item as a request sends it back; one of an unknown kind is unchanged.

    A message becomes its text: with parts, it would need the id that it had.
    """
    kind = item["type"]
    if kind not in _FIELDS:
        return dict(item)
    sent = {"type": kind}
    sent |= {key: item[key] for key in _FIELDS[kind] if item.get(key) is not None}
    if kind == "reasoning" and not sent.get("content"):
        sent.pop("content", None)  # OpenAI's own is empty, and is refused
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
