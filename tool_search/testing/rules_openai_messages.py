"""OpenAI Chat Completions' rules for `messages`.

Source: OpenAI, Chat Completions API and its OpenAPI document; Function calling;
GitHub issues that quote the service's texts. The service's own spelling
"preceeding" is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["message_violations"]

_MAX_ID = 40
_TEXT = ("text",)
_PARTS = {
    "system": _TEXT,
    "developer": _TEXT,
    "tool": _TEXT,
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}
# `reasoning_content` is DeepSeek's and Kimi's, which the SDK sends as it is given.
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
        "reasoning_content",
    ),
    "function": ("name",),
}


def message_violations(messages: Any) -> Iterator[Violation]:
    """What is wrong with the messages: each in itself, then their order."""
    if not isinstance(messages, list):
        yield _wrong_type("messages", "an array of objects", messages)
        return
    if not messages:
        yield _empty_array("messages")
    for index, message in enumerate(messages):
        yield from _message(f"messages[{index}]", message)
    yield from _pairing(messages)


def _message(where: str, message: Any) -> Iterator[Violation]:
    if not isinstance(message, dict):
        yield _wrong_type(where, "an object", message)
        return
    role = str(message.get("role"))
    if role not in _FIELDS:
        yield _value(f"{where}.role", role, tuple(_FIELDS))
        return
    for name in message:
        if name not in ("role", "content", *_FIELDS[role]):
            yield invalid(
                f"Unknown parameter: '{where}.{name}'.",
                param=f"{where}.{name}",
                code="unknown_parameter",
            )
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
        yield _wrong_type(f"{where}.content", "one of a string or array of objects", content)
        return
    if not content:
        yield _empty_array(f"{where}.content")
    for index, part in enumerate(content):
        kind = str(part.get("type")) if isinstance(part, dict) else None
        if kind not in _PARTS.get(role, _TEXT):
            yield _value(f"{where}.content[{index}].type", kind, _PARTS.get(role, _TEXT))
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield _missing(f"{where}.content[{index}].text")


def _calls(where: str, calls: Any) -> Iterator[Violation]:
    if not isinstance(calls, list):
        yield _wrong_type(where, "an array of objects", calls)
        return
    if not calls:
        yield _empty_array(where)
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        kind = str(call.get("type")) if isinstance(call, dict) else None
        if kind not in ("function", "custom"):
            yield _value(f"{at}.type", kind, ("function", "custom"))
            continue
        yield from _id(f"{at}.id", call.get("id"))
        if kind == "function":
            yield from _function(f"{at}.function", call.get("function"))


def _function(where: str, function: Any) -> Iterator[Violation]:
    if not isinstance(function, dict):
        yield _missing(where)
        return
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        yield _missing(f"{where}.name")
    elif not name:
        yield invalid(
            f"Invalid '{where}.name': empty string. Expected a string with minimum length 1, but "
            "got an empty string instead.",
            param=f"{where}.name",
            code="empty_string",
        )
    if arguments is None:
        yield _missing(f"{where}.arguments")
    elif not isinstance(arguments, str):
        yield _wrong_type(f"{where}.arguments", "a string", arguments)


def _id(where: str, value: Any) -> Iterator[Violation]:
    if not isinstance(value, str):
        yield _missing(where)
    elif len(value) > _MAX_ID:
        yield invalid(
            f"Invalid '{where}': string too long. Expected a string with maximum length {_MAX_ID}, "
            f"but got a string with length {len(value)} instead.",
            param=where,
            code="string_above_max_length",
        )


def _pairing(messages: list[JSON]) -> Iterator[Violation]:
    """Calls and results: the results directly after their call, each once."""
    waiting: list[str] = []
    answered: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call = message["tool_call_id"]
            if call in waiting:
                waiting.remove(call)
                answered.add(call)
                continue
            yield _orphan(index, call, duplicate=call in answered)
        if waiting:
            yield _unanswered(index, waiting)
        answered = set()
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            yield invalid(
                f"Invalid 'messages[{index}].tool_calls': the ids must be unique.",
                param=f"messages[{index}].tool_calls",
                code="invalid_value",
            )
    if waiting:
        yield _unanswered(len(messages), waiting)


def _orphan(index: int, call: str, *, duplicate: bool) -> Violation:
    if duplicate:
        return invalid(
            f"Duplicate value for 'tool_call_id' of '{call}'", param=f"messages.[{index}]"
        )
    return invalid(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        param=f"messages.[{index}].role",
    )


def _unanswered(index: int, waiting: list[str]) -> Violation:
    return invalid(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(waiting),
        param=f"messages.[{index}].role",
    )


def _wrong_type(where: str, expected: str, value: object) -> Violation:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    got = "null" if value is None else names.get(type(value), "a number")
    return invalid(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.",
        param=where,
        code="invalid_type",
    )


def _value(where: str, value: object, supported: tuple[str, ...]) -> Violation:
    listed = ", ".join(f"'{name}'" for name in supported)
    return invalid(
        f"Invalid value: '{value}'. Supported values are: {listed}.",
        param=where,
        code="invalid_value",
    )


def _empty_array(where: str) -> Violation:
    return invalid(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=where,
        code="empty_array",
    )


def _missing(where: str) -> Violation:
    return invalid(
        f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
    )
