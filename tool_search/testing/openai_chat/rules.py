"""The documented rules of OpenAI Chat Completions, first violation first.

Texts are the service's where they are known (GitHub issues that quote them);
where only the rule is, the text names the parameter in the same manner.

Source: OpenAI, Chat Completions API and its OpenAPI document; Function calling;
`CompletionCreateParams` of the openai SDK; Moonshot AI, "Dynamic tool loading".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.refusals import (
    empty_array,
    missing,
    refused_schema,
    too_long,
    unknown_parameters,
    unmatched,
)
from tool_search.testing.openai_chat.rules_messages import brought_by, message_violations
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.services.pictures import picture_violations
from tool_search.testing.services.reasoning import chat_reasoning_violations
from tool_search.testing.services.vendors import grok_violations, is_grok, vendor_violations
from tool_search.testing.strict_schema import schema_problem
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

__all__ = ["check_openai_chat"]

_VENDOR = Endpoint()
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64
_KIMI = re.compile(r"(^|/)kimi-")
_TAKES_LATE = re.compile(r"(^|/)kimi-k3")

_PARAMETERS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")
_COMBINATORS = ("oneOf", "anyOf", "allOf", "enum", "not")
_ONLY_WITH_TOOLS = ("tool_choice", "parallel_tool_calls")


def check_openai_chat(body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR) -> Violation | None:
    """The first documented rule that a Chat Completions request breaks, or None.

    Args:
        body: The request's parsed JSON body.
        endpoint: Whose service it goes to; the vendor's own by default.

    Source: see the module.
    """
    return next(_violations(body, endpoint), None)


def _violations(body: Mapping[str, Any], endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(body.get("model"), str):
        yield invalid("you must provide a model parameter")
    for name in body:
        if name not in _PARAMETERS and name not in endpoint.extra_parameters:
            yield invalid(f"Unrecognized request argument supplied: {name}")
    if "messages" not in body:
        yield invalid(
            "Missing required parameter: 'messages'.",
            param="messages",
            code="missing_required_parameter",
        )
    takes_late = endpoint.supports_tool_search and bool(_TAKES_LATE.search(str(body.get("model"))))
    late = brought_by(body["messages"])
    if late and not takes_late and _KIMI.search(str(body.get("model"))):
        yield invalid("tokenization failed")
    yield from message_violations(body["messages"], takes_tools=takes_late)
    yield from picture_violations("openai_chat", body, endpoint)
    yield from chat_reasoning_violations(body, endpoint)
    yield from vendor_violations(body)
    tools = body.get("tools")
    if tools is not None:
        yield from _tools(tools, endpoint, has_own_limit=is_grok(body))
    for index, tool in enumerate(late):
        yield from _tool(f"messages.tools[{index}]", tool)
    yield from _refused([*(tools or []), *late], endpoint)
    yield from _tool_choice(body.get("tool_choice"), tools or [])
    for name in _ONLY_WITH_TOOLS:
        if body.get(name) is not None and not tools:
            yield invalid(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )


def _tools(tools: Any, endpoint: Endpoint, *, has_own_limit: bool) -> Iterator[Violation]:
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
        yield from _tool(f"tools[{index}]", tool)
        name = _tool_name(tool)
        if name in seen:
            yield invalid(
                f"Invalid 'tools[{index}].function.name': function names must be unique, and "
                f"'{name}' is already taken.",
                param=f"tools[{index}].function.name",
                code="invalid_value",
            )
        seen.add(name)


def _tool(where: str, tool: Any) -> Iterator[Violation]:
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
    yield from _name(f"{where}.{kind}.name", function.get("name"))
    if kind == "function":
        yield from unknown_parameters(f"{where}.function", function, _FUNCTION_FIELDS)
        yield from _parameters(f"{where}.function", function)


def _refused(tools: list[Any], endpoint: Endpoint) -> Iterator[Violation]:
    for index, tool in enumerate(tools):
        if (name := _tool_name(tool)) in endpoint.refused_tools:
            yield refused_schema(f"tools[{index}].function", name)


def _name(where: str, name: Any) -> Iterator[Violation]:
    if not isinstance(name, str):
        yield missing(where)
    elif len(name) > _MAX_NAME:
        yield too_long(where, name, _MAX_NAME)
    elif not _NAME.fullmatch(name):
        yield unmatched(where, f"^{_NAME.pattern}$")


def _parameters(where: str, function: Mapping[str, Any]) -> Iterator[Violation]:
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        yield invalid(
            f"Invalid type for '{where}.description': expected a string.",
            param=f"{where}.description",
            code="invalid_type",
        )
    schema = function.get("parameters")
    if schema is None:
        return
    problem: str | None
    kind = schema.get("type") if isinstance(schema, dict) else None
    combined = isinstance(schema, dict) and any(key in schema for key in _COMBINATORS)
    if kind != "object":
        problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    elif combined:
        problem = (
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at "
            "the top level."
        )
    else:
        problem = schema_problem(schema)
    if problem is None:
        return
    yield invalid(
        f"Invalid schema for function '{function['name']}': {problem}",
        param=f"{where}.parameters",
        code="invalid_function_parameters",
    )


def _tool_choice(choice: Any, tools: list[Mapping[str, Any]]) -> Iterator[Violation]:
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
    allowed = _allowed(choice) if choice["type"] == "allowed_tools" else [choice]
    if not allowed:
        yield missing("tool_choice.allowed_tools.tools")
    known = {_tool_name(tool) for tool in tools}
    for item in allowed:
        name = _tool_name(item)
        if name not in known:
            yield invalid(
                f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
            )


def _allowed(choice: Mapping[str, Any]) -> list[Any]:
    allowed = choice.get("allowed_tools")
    tools = allowed.get("tools") if isinstance(allowed, dict) else None
    return tools if isinstance(tools, list) else []


def _tool_name(tool: Any) -> str:
    kind = str(tool.get("type")) if isinstance(tool, dict) else ""
    inner = tool.get(kind) if kind else None
    return str(inner.get("name")) if isinstance(inner, dict) else kind
