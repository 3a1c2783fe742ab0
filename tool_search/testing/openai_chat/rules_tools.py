"""OpenAI Chat Completions' rules for `tools` and `tool_choice`.

Source: OpenAI, Chat Completions API and its OpenAPI document; Function calling.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import (
    empty_array,
    missing,
    rejected_schema,
    text_violations,
    unknown_parameters,
)
from tool_search.testing.services.vendors import grok_violations
from tool_search.testing.strict_schema import function_schema_problem
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

__all__ = ["rejected_tools", "tool_choice_violations", "tool_violations", "tools_violations"]

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64
_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")


def tools_violations(tools: Any, endpoint: Endpoint, *, has_own_limit: bool) -> Iterator[Violation]:
    """Yield the violations of a request's list of tools."""
    if not isinstance(tools, list):
        yield invalid(
            "Invalid type for 'tools': expected an array of objects.",
            param="tools",
            code="invalid_type",
        )
        return
    if not tools:
        yield empty_array("tools")
    if has_own_limit:
        yield from grok_violations(tools)
    elif endpoint.max_tools is not None and len(tools) > endpoint.max_tools:
        yield invalid(
            "Invalid 'tools': array too long. Expected an array with maximum length "
            f"{endpoint.max_tools}, but got an array with length {len(tools)} instead.",
            param="tools",
            code="array_above_max_length",
        )
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        yield from tool_violations(f"tools[{index}]", tool)
        name = _tool_name(tool)
        if name in seen:
            yield invalid(
                f"Invalid 'tools[{index}].function.name': function names must be unique, and "
                f"'{name}' is already taken.",
                param=f"tools[{index}].function.name",
                code="invalid_value",
            )
        seen.add(name)


def tool_violations(where: str, tool: Any) -> Iterator[Violation]:
    """Yield the violations of one definition."""
    kind = str(tool.get("type")) if isinstance(tool, dict) else None
    if kind not in ("function", "custom"):
        yield invalid(
            f"Invalid value: '{kind}'. Supported values are: 'function' and 'custom'.",
            param=f"{where}.type",
            code="invalid_value",
        )
        return
    yield from unknown_parameters(where, tool, ("type", kind))
    function = tool.get(kind)
    if not isinstance(function, dict):
        yield missing(f"{where}.{kind}")
        return
    if not isinstance(function.get("name"), str):
        yield missing(f"{where}.{kind}.name")
    yield from text_violations(
        f"{where}.{kind}.name", function["name"], most=_MAX_NAME, pattern=_NAME
    )
    if kind == "function":
        yield from unknown_parameters(f"{where}.function", function, _FUNCTION_FIELDS)
        yield from _parameters(f"{where}.function", function)


def rejected_tools(tools: list[Any], endpoint: Endpoint) -> Iterator[Violation]:
    """Yield a violation for each tool that the endpoint is set to reject."""
    for index, tool in enumerate(tools):
        if (name := _tool_name(tool)) in endpoint.refused_tools:
            yield rejected_schema(f"tools[{index}].function", name)


def _parameters(where: str, function: Mapping[str, Any]) -> Iterator[Violation]:
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        yield invalid(
            f"Invalid type for '{where}.description': expected a string.",
            param=f"{where}.description",
            code="invalid_type",
        )
    problem = function_schema_problem(function.get("parameters"))
    if problem is None:
        return
    yield invalid(
        f"Invalid schema for function '{function['name']}': {problem}",
        param=f"{where}.parameters",
        code="invalid_function_parameters",
    )


def tool_choice_violations(choice: Any, tools: list[Mapping[str, Any]]) -> Iterator[Violation]:
    """Yield the violations of `tool_choice`."""
    if choice is None or choice in ("none", "auto", "required"):
        return
    if not isinstance(choice, dict) or choice.get("type") not in (
        "function",
        "custom",
        "allowed_tools",
    ):
        yield invalid(
            f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
            param="tool_choice",
            code="invalid_value",
        )
        return
    allowed = _allowed_tools(choice) if choice["type"] == "allowed_tools" else [choice]
    if not allowed:
        yield missing("tool_choice.allowed_tools.tools")
    known = {_tool_name(tool) for tool in tools}
    for item in allowed:
        name = _tool_name(item)
        if name not in known:
            yield invalid(
                f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
            )


def _allowed_tools(choice: Mapping[str, Any]) -> list[Any]:
    allowed = choice.get("allowed_tools")
    tools = allowed.get("tools") if isinstance(allowed, dict) else None
    return tools if isinstance(tools, list) else []


def _tool_name(tool: Any) -> str:
    kind = str(tool.get("type")) if isinstance(tool, dict) else ""
    inner = tool.get(kind) if kind else None
    return str(inner.get("name")) if isinstance(inner, dict) else kind
