"""OpenAI Responses' rules for the shape of `input`.

Source: OpenAI, Responses API; `InputParam` of its OpenAPI document and
`ResponseInputItemParam` of the openai SDK; GitHub issues that quote the service
(continue 11785, 9router 393, helm-api 906).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import (
    missing,
    text_violations,
    too_long,
    type_violations,
    unknown_parameters,
    unsupported_value,
    wrong_type,
)
from tool_search.testing.openai_responses.rules_tools import (
    MAX_NAME,
    NAME,
    supports_tool_search,
    tool_violations,
)
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["item_violations"]

_MAX_ID = 64
_ROLES = ("assistant", "system", "developer", "user")
_STATUSES = ("in_progress", "completed", "incomplete")
_SAID = ("input_text", "input_image", "input_file", "input_audio")
_ANSWERED = ("output_text", "refusal")

_FIELDS: dict[str, tuple[str, ...]] = {
    "message": ("content", "id", "phase", "role", "status", "type"),
    "function_call": (
        "arguments",
        "async",
        "call_id",
        "caller",
        "id",
        "name",
        "namespace",
        "status",
        "type",
    ),
    "function_call_output": (
        "call_id",
        "caller",
        "id",
        "name",
        "namespace",
        "output",
        "status",
        "type",
    ),
    "tool_search_call": ("arguments", "call_id", "execution", "id", "status", "type"),
    "tool_search_output": ("call_id", "execution", "id", "status", "tools", "type"),
    "additional_tools": ("id", "role", "tools", "type"),
    "reasoning": ("content", "encrypted_content", "id", "status", "summary", "type"),
    "item_reference": ("id", "type"),
}
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "reasoning": "rs",
}
_SEARCH_ITEMS = ("tool_search_call", "tool_search_output", "additional_tools")
# Items of hosted tools, whose contents are not checked here.
_OTHER = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_trigger",
        "computer_call",
        "computer_call_output",
        "configuration_update",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "web_search_call",
    }
)


def item_violations(items: Any, model: str, endpoint: Endpoint) -> Iterator[Violation]:
    """Yield the violations of each item of `input` alone."""
    if items is None or isinstance(items, str):
        return
    if not isinstance(items, list):
        yield wrong_type("input", "one of a string or array of input items", items)
        return
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if not isinstance(item, dict):
            yield wrong_type(where, "an object", item)
            continue
        kind = kind_of(item)
        known = kind in _FIELDS and (endpoint.supports_tool_search or kind not in _SEARCH_ITEMS)
        if known:
            yield from _item(where, kind, item, endpoint)
        elif kind not in _OTHER:
            supported = sorted({*_FIELDS, *_OTHER} - {*_SEARCH_ITEMS})
            yield unsupported_value(f"{where}.type", kind, supported)
        if kind.startswith("tool_search_") and not supports_tool_search(model):
            yield invalid(f"Tool 'tool_search' is not supported with {model}.", param=where)


def kind_of(item: JSON) -> str:
    """Return an item's type, which a message may lack."""
    return str(item.get("type") or ("message" if "role" in item else "None"))


def _item(where: str, kind: str, item: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    yield from unknown_parameters(where, item, _FIELDS[kind])
    yield from _id(where, kind, item.get("id"))
    status = item.get("status")
    if status is not None and status not in _STATUSES:
        yield unsupported_value(f"{where}.status", status, _STATUSES)
    if kind in _JUDGES:
        yield from _JUDGES[kind](where, item)
    else:
        yield from _definitions(where, kind, item, endpoint)


def _id(where: str, kind: str, value: Any) -> Iterator[Violation]:
    if value is None:
        return
    prefix = _PREFIXES.get(kind, "")
    if not isinstance(value, str):
        yield wrong_type(f"{where}.id", "a string", value)
    elif len(value) > _MAX_ID:
        yield too_long(f"{where}.id", value, _MAX_ID)
    elif not value.startswith(prefix):
        yield invalid(
            f"Invalid '{where}.id': '{value}'. Expected an ID that begins with '{prefix}'.",
            param=f"{where}.id",
            code="invalid_value",
        )


def _call_id(where: str, value: Any) -> Iterator[Violation]:
    yield from text_violations(f"{where}.call_id", value, most=_MAX_ID)


def _message(where: str, item: JSON) -> Iterator[Violation]:
    role = item.get("role")
    if role not in _ROLES:
        yield unsupported_value(f"{where}.role", role, _ROLES)
    kinds = _ANSWERED if role == "assistant" else _SAID
    yield from _content(f"{where}.content", item.get("content"), kinds)


def _content(where: str, content: Any, kinds: tuple[str, ...]) -> Iterator[Violation]:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield from _type(where, content, list, "one of an array of objects or string")
        return
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in kinds:
            yield unsupported_value(f"{where}[{index}]", kind, kinds)
        elif kind in ("input_text", "output_text"):
            yield from _type(f"{where}[{index}].text", part.get("text"), str, "a string")


def _call(where: str, item: JSON) -> Iterator[Violation]:
    yield from _call_id(where, item.get("call_id"))
    for field in ("name", "arguments"):
        yield from _type(f"{where}.{field}", item.get(field), str, "a string")
    yield from text_violations(f"{where}.name", item["name"], most=MAX_NAME, pattern=NAME)
    yield from type_violations(f"{where}.namespace", item.get("namespace"), str, "a string")


def _output(where: str, item: JSON) -> Iterator[Violation]:
    yield from _call_id(where, item.get("call_id"))
    yield from _content(f"{where}.output", item.get("output"), _SAID)


def _search_call(where: str, item: JSON) -> Iterator[Violation]:
    yield from _search(where, item)
    yield from _type(f"{where}.arguments", item.get("arguments"), dict, "an object")


def _check_reasoning(where: str, item: JSON) -> Iterator[Violation]:
    yield from _type(f"{where}.summary", item.get("summary"), list, "an array of objects")


def _reference(where: str, item: JSON) -> Iterator[Violation]:
    if item.get("id") is None:
        yield missing(f"{where}.id")


def _search(where: str, item: JSON) -> Iterator[Violation]:
    execution = item.get("execution", "server")
    if execution not in ("server", "client"):
        yield unsupported_value(f"{where}.execution", execution, ("server", "client"))
    if item.get("call_id") is not None or execution == "client":
        yield from _call_id(where, item.get("call_id"))


def _definitions(where: str, kind: str, item: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    """Yield the violations of an item that loads tools."""
    if kind == "tool_search_output":
        yield from _search(where, item)
    elif item.get("role") != "developer":
        yield unsupported_value(f"{where}.role", item.get("role"), ("developer",))
    yield from _type(f"{where}.tools", item.get("tools"), list, "an array of objects")
    yield from tool_violations(f"{where}.tools", item["tools"], endpoint, top=False)


def _type(where: str, value: Any, kind: type, expected: str) -> Iterator[Violation]:
    return type_violations(where, value, kind, expected, required=True)


_JUDGES: dict[str, Callable[[str, JSON], Iterator[Violation]]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "tool_search_call": _search_call,
    "reasoning": _check_reasoning,
    "item_reference": _reference,
}
