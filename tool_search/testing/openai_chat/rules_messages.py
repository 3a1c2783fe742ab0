"""OpenAI Chat Completions' rules for `messages`.

Source: OpenAI, Chat Completions API and its OpenAPI document; Function calling;
GitHub issues that quote the service's texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import (
    empty_array,
    missing,
    text_violations,
    too_long,
    type_violations,
    unknown_parameters,
    unsupported_value,
    wrong_type,
)
from tool_search.testing.openai_chat.rules_pairing import pairing_violations
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["loaded_by", "message_violations"]

_MAX_ID = 40
_TEXT = ("text",)
_PARTS = {
    "system": _TEXT,
    "developer": _TEXT,
    "tool": _TEXT,
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}
# `reasoning_content` is DeepSeek's and Kimi's, the other two OpenRouter's, Groq's, Ollama's and
# others': the SDK sends them as they are given.
_FIELDS = {
    "system": ("name",),
    "developer": ("name",),
    "user": ("name",),
    "tool": ("tool_call_id", "name"),
    "assistant": (
        "name",
        "tool_calls",
        "refusal",
        "audio",
        "function_call",
        "annotations",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
    ),
    "function": ("name",),
}


def loaded_by(messages: Any) -> list[Any]:
    """Return the tools that system messages load, in order."""
    listed = messages if isinstance(messages, list) else []
    entries = (message.get("tools") for message in listed if isinstance(message, dict))
    return [tool for tools in entries if isinstance(tools, list) for tool in tools]


def message_violations(messages: Any, *, takes_tools: bool = False) -> Iterator[Violation]:
    """Yield the violations of messages: of each alone, then of their order.

    Args:
        messages: The request's messages.
        takes_tools: True if the model supports tools in a system message.
    """
    if not isinstance(messages, list):
        yield wrong_type("messages", "an array of objects", messages)
        return
    if not messages:
        yield empty_array("messages")
    for index, message in enumerate(messages):
        if takes_tools and isinstance(message, dict) and "tools" in message:
            yield from _brings(f"messages[{index}]", message)
        else:
            yield from _message(f"messages[{index}]", message)
    yield from pairing_violations(messages)


def _brings(where: str, message: JSON) -> Iterator[Violation]:
    """Yield the violations of a system message with tools: it must have nothing else."""
    if message.get("role") != "system":
        yield unsupported_value(f"{where}.role", str(message.get("role")), ("system",))
    yield from unknown_parameters(where, message, ("role", "tools"))
    if not isinstance(message["tools"], list):
        yield wrong_type(f"{where}.tools", "an array of objects", message["tools"])
    elif not message["tools"]:
        yield empty_array(f"{where}.tools")


def _message(where: str, message: Any) -> Iterator[Violation]:
    if not isinstance(message, dict):
        yield wrong_type(where, "an object", message)
        return
    role = str(message.get("role"))
    if role not in _FIELDS:
        yield unsupported_value(f"{where}.role", role, tuple(_FIELDS))
        return
    yield from unknown_parameters(where, message, ("role", "content", *_FIELDS[role]))
    yield from _content(where, role, message)
    if role == "tool":
        yield from _id(f"{where}.tool_call_id", message.get("tool_call_id"))
    if message.get("tool_calls") is not None:
        yield from _calls(f"{where}.tool_calls", message["tool_calls"])


def _content(where: str, role: str, message: JSON) -> Iterator[Violation]:
    content = message.get("content")
    if content is None:
        speaks = any(
            message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
        )
        if role != "function" and not (role == "assistant" and speaks):
            yield invalid(
                "Invalid value for 'content': expected a string, got null.",
                param=f"{where}.content",
            )
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield wrong_type(f"{where}.content", "one of a string or array of objects", content)
        return
    if not content:
        yield empty_array(f"{where}.content")
    for index, part in enumerate(content):
        kind = str(part.get("type")) if isinstance(part, dict) else None
        if kind not in _PARTS.get(role, _TEXT):
            yield unsupported_value(f"{where}.content[{index}].type", kind, _PARTS.get(role, _TEXT))
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield missing(f"{where}.content[{index}].text")


def _calls(where: str, calls: Any) -> Iterator[Violation]:
    if not isinstance(calls, list):
        yield wrong_type(where, "an array of objects", calls)
        return
    if not calls:
        yield empty_array(where)
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        kind = str(call.get("type")) if isinstance(call, dict) else None
        if kind not in ("function", "custom"):
            yield unsupported_value(f"{at}.type", kind, ("function", "custom"))
            continue
        yield from _id(f"{at}.id", call.get("id"))
        if kind == "function":
            yield from _function(f"{at}.function", call.get("function"))


def _function(where: str, function: Any) -> Iterator[Violation]:
    if not isinstance(function, dict):
        yield missing(where)
        return
    if not isinstance(function.get("name"), str):
        yield missing(f"{where}.name")
    yield from text_violations(f"{where}.name", function["name"])
    yield from type_violations(
        f"{where}.arguments", function.get("arguments"), str, "a string", required=True
    )


def _id(where: str, value: Any) -> Iterator[Violation]:
    if not isinstance(value, str):
        yield missing(where)
    elif len(value) > _MAX_ID:
        yield too_long(where, value, _MAX_ID)
