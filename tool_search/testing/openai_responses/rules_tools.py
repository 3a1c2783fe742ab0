"""OpenAI Responses' rules for tool definitions, anywhere in a request.

Source: OpenAI, Tool search; Function calling ("strict mode"); `FunctionToolParam`,
`NamespaceToolParam` and `ToolSearchToolParam` of the OpenAPI document and the openai
SDK; recorded and quoted errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import (
    empty_array,
    missing,
    rejected_schema,
    text_violations,
    type_violations,
    unknown_parameters,
    unsupported_value,
    wrong_type,
)
from tool_search.testing.strict_schema import function_schema_problem
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = [
    "MAX_NAME",
    "NAME",
    "supports_tool_search",
    "tool_set_violations",
    "tool_violations",
]

NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME = 128

_FUNCTION = frozenset(
    {
        "allowed_callers",
        "async",
        "defer_loading",
        "description",
        "name",
        "output_schema",
        "parameters",
        "strict",
        "type",
    }
)
_NAMESPACE = frozenset({"description", "name", "tools", "type"})
_SEARCH = frozenset({"description", "execution", "parameters", "type"})
_HOSTED = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "custom",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "programmatic_tool_calling",
        "shell",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
_LOADING_ITEMS = ("tool_search_output", "additional_tools")

# Supported from gpt-5.4 on, except its nano.
_WITHOUT_TOOL_SEARCH = re.compile(
    r"(?:ft:)?(?:chatgpt-4o|codex-mini|computer-use|davinci|o[134](?!\d)|gpt-(?:[34](?!\d)|oss)"
    r"|gpt-5(?!\.?\d)|gpt-5\.[0-3](?!\d)|gpt-5\.4-nano)"
)


def supports_tool_search(model: str) -> bool:
    """True if a model supports `tool_search`; unknown names count as supporting it."""
    return _WITHOUT_TOOL_SEARCH.match(model) is None


def tool_violations(
    where: str, tools: list[Any], endpoint: Endpoint, *, top: bool = True
) -> Iterator[Violation]:
    """Yield the violations of the shape of single tools.

    Args:
        where: The path of the list.
        tools: The list.
        endpoint: The service that it is sent to.
        top: True for the request's own list, False for a list in an item.
    """
    for index, tool in enumerate(tools):
        at = f"{where}[{index}]"
        if not isinstance(tool, dict):
            yield wrong_type(at, "an object", tool)
            continue
        kind = str(tool.get("type"))
        if kind == "function":
            yield from _function(at, tool, endpoint)
        elif kind == "namespace" and endpoint.supports_tool_search:
            yield from _namespace(at, tool, endpoint)
        elif kind == "tool_search" and top and endpoint.supports_tool_search:
            yield from _search(at, tool)
        elif kind not in _HOSTED:
            yield unsupported_value(f"{at}.type", kind, ("function", *sorted(_HOSTED)))


def _function(where: str, tool: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    yield from text_violations(f"{where}.name", tool.get("name"), most=MAX_NAME, pattern=NAME)
    known = _FUNCTION if endpoint.supports_tool_search else _FUNCTION - {"defer_loading"}
    yield from unknown_parameters(where, tool, known)
    for field in ("defer_loading", "strict"):
        yield from type_violations(f"{where}.{field}", tool.get(field), bool, "a boolean")
    yield from type_violations(f"{where}.description", tool.get("description"), str, "a string")
    problem = function_schema_problem(tool.get("parameters"), strict=tool.get("strict") is True)
    if problem:
        yield invalid(
            f"Invalid schema for function '{tool['name']}': {problem}",
            param=f"{where}.parameters",
            code="invalid_function_parameters",
        )
    if tool["name"] in endpoint.refused_tools:
        yield rejected_schema(where, tool["name"])


def _namespace(where: str, tool: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    yield from text_violations(f"{where}.name", tool.get("name"), most=MAX_NAME, pattern=NAME)
    yield from unknown_parameters(where, tool, _NAMESPACE)
    if not isinstance(tool.get("description"), str):
        yield missing(f"{where}.description")
    members = tool.get("tools")
    if not isinstance(members, list):
        yield missing(f"{where}.tools")
        return
    if not members:
        yield empty_array(f"{where}.tools")
    for index, member in enumerate(members):
        at = f"{where}.tools[{index}]"
        kind = str(member.get("type")) if isinstance(member, dict) else None
        if kind not in ("function", "custom"):
            yield unsupported_value(f"{at}.type", kind, ("function", "custom"))
        elif kind == "function":
            yield from _function(at, member, endpoint)


def _search(where: str, tool: JSON) -> Iterator[Violation]:
    yield from unknown_parameters(where, tool, _SEARCH)
    execution = tool.get("execution", "server")
    if execution not in ("server", "client"):
        yield unsupported_value(f"{where}.execution", execution, ("server", "client"))
    elif execution == "client" and not isinstance(tool.get("description"), str):
        yield missing(f"{where}.description")
    yield from type_violations(f"{where}.parameters", tool.get("parameters"), dict, "an object")


def tool_set_violations(tools: list[JSON], model: str) -> Iterator[Violation]:
    """Yield the violations of a request's list of well-shaped tools."""
    searches = [tool for tool in tools if tool["type"] == "tool_search"]
    if searches and not supports_tool_search(model):
        yield invalid(f"Tool 'tool_search' is not supported with {model}.", param="tools")
    if len(searches) > 1:
        yield invalid("Invalid 'tools': at most one 'tool_search' may be given.", param="tools")
    deferred = any(_defers(tool) for tool in tools)
    if deferred and not searches:
        yield invalid(
            "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
            param="tools",
        )
    if any(tool.get("execution") != "client" for tool in searches) and not deferred:
        yield invalid(
            "Invalid Value: 'tools.tool_search'. tools.tool_search requires at least one deferred "
            "tool.",
            param="tools",
        )
    yield from _unique_names(tools)


def _defers(tool: JSON) -> bool:
    members = tool["tools"] if tool["type"] == "namespace" else [tool]
    return any(member.get("defer_loading") for member in members)


def _unique_names(tools: list[JSON]) -> Iterator[Violation]:
    seen: set[tuple[bool, str]] = set()
    for index, tool in enumerate(tools):
        if tool["type"] not in ("function", "custom", "namespace"):
            continue
        name = (tool["type"] == "namespace", str(tool.get("name")))
        if name in seen:
            yield invalid(
                f"Invalid 'tools[{index}].name': names must be unique, and '{name[1]}' is already "
                "taken.",
                param=f"tools[{index}].name",
                code="invalid_value",
            )
        seen.add(name)


def members(tools: Sequence[JSON], *, loaded: bool) -> Iterator[tuple[str | None, JSON]]:
    """Yield the functions of a list, each with its namespace; None for the default one.

    A plainly declared function is in the default namespace. A deferred one, or one that
    an item of the input loads, is in a namespace of its own name unless it has another.
    Source: recorded calls.

    Args:
        tools: Definitions.
        loaded: True if an item of the input loads them.
    """
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((tool["name"], member) for member in tool["tools"])
        elif tool["type"] == "function":
            own = loaded or tool.get("defer_loading")
            yield (tool["name"] if own else None), tool


def loaded_by(items: Sequence[JSON]) -> Iterator[tuple[str | None, JSON]]:
    """Yield the functions that items of the input load, in order, each with its namespace."""
    for item in items:
        if item.get("type") in _LOADING_ITEMS:
            yield from members(item["tools"], loaded=True)


def namespaces_of(tools: Sequence[JSON], items: Sequence[JSON]) -> dict[str, set[str | None]]:
    """Return the namespaces of each name, over the whole request."""
    homes: dict[str, set[str | None]] = {}
    for namespace, tool in (*members(tools, loaded=False), *loaded_by(items)):
        homes.setdefault(str(tool.get("name")), set()).add(namespace)
    return homes
