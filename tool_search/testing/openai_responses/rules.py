"""The rules of OpenAI Responses, first violation first.

A text is the service's if it was recorded or is quoted by GitHub issues
(openai/codex, vercel/ai, continue, openclaw, codegraff, sub2api); if only the rule
is known, the text is ours and names the parameter in the same form.

Source: OpenAI, Responses API and its OpenAPI document; Function calling; Tool
search; `ResponseCreateParams` of the openai SDK; recorded requests and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import (
    missing,
    type_violations,
    unknown_parameters,
    wrong_type,
)
from tool_search.testing.openai_responses.rules_messages import item_violations
from tool_search.testing.openai_responses.rules_pairing import call_violations
from tool_search.testing.openai_responses.rules_tools import tool_set_violations, tool_violations
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.services.pictures import picture_violations
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["check_openai_responses"]

_VENDOR = Endpoint()
_MIN_OUTPUT_TOKENS = 16

_PARAMETERS = frozenset(
    {
        "access_programs",
        "background",
        "background_options",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "client_metadata",  # Codex CLI 0.169 sends it, to OpenAI too
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
_TYPES: dict[str, tuple[type, str]] = {
    "model": (str, "a string"),
    "instructions": (str, "a string"),
    "previous_response_id": (str, "a string"),
    "stream": (bool, "a boolean"),
    "store": (bool, "a boolean"),
    "parallel_tool_calls": (bool, "a boolean"),
    "include": (list, "an array of strings"),
    "reasoning": (dict, "an object"),
    "stream_options": (dict, "an object"),
    "tools": (list, "an array of objects"),
}


def check_openai_responses(
    body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR
) -> Violation | None:
    """Return the first documented rule that a Responses request breaks, or None.

    A request with `previous_response_id` or a conversation is checked alone: references
    to what the service keeps are accepted. A stand-in server keeps its replies and
    checks the whole.

    Args:
        body: The request's parsed JSON body.
        endpoint: The service that it is sent to; the vendor's own by default.

    Source: see the module.
    """
    return next(_violations(body, endpoint), None)


def _violations(body: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    yield from _parameters(body, endpoint)
    model, tools = body["model"], body.get("tools") or []
    yield from tool_violations("tools", tools, endpoint)
    items = body.get("input")
    yield from item_violations(items, model, endpoint)
    yield from tool_set_violations(tools, model)
    yield from _tool_choice(body)
    listed = items if isinstance(items, list) else []
    knows_all = not (body.get("previous_response_id") or body.get("conversation"))
    yield from call_violations(listed, tools, knows_all=knows_all)
    yield from picture_violations("openai_responses", body, endpoint)


def _parameters(body: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    if body.get("model") is None:
        yield missing("model")
    for name, new in _MOVED.items():
        if name in body and name not in endpoint.extra_parameters:
            yield invalid(
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved "
                f"to '{new}'. Try again with the new parameter. See the API documentation for more "
                "information: https://platform.openai.com/docs/api-reference/responses/create.",
                code="unsupported_parameter",
            )
    yield from unknown_parameters("", body, _PARAMETERS | endpoint.extra_parameters)
    for name, (kind, expected) in _TYPES.items():
        yield from type_violations(name, body.get(name), kind, expected)
    yield from _limits(body)
    if not any(body.get(key) for key in ("input", "previous_response_id", "prompt")):
        yield invalid(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be "
            "provided.",
            param="input",
            code="missing_required_parameter",
        )
    if body.get("previous_response_id") and body.get("conversation"):
        yield invalid(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            code="mutually_exclusive_parameters",
        )


def _limits(body: JSON) -> Iterator[Violation]:
    most = body.get("max_output_tokens")
    if most is None:
        return
    if not isinstance(most, int) or isinstance(most, bool):
        yield wrong_type("max_output_tokens", "an integer", most)
    elif most < _MIN_OUTPUT_TOKENS:
        yield invalid(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{_MIN_OUTPUT_TOKENS}, but got {most} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )


def _tool_choice(body: JSON) -> Iterator[Violation]:
    choice, tools = body.get("tool_choice"), body.get("tools") or []
    if choice is None or choice in ("none", "auto"):
        return
    if choice == "required":
        if not tools and not _adds_tools(body):
            yield invalid(
                "Tool choice 'required' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
        return
    if not isinstance(choice, dict):
        yield invalid(
            f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
            param="tool_choice",
            code="invalid_value",
        )
        return
    if choice.get("type") == "allowed_tools" and choice.get("mode") not in ("auto", "required"):
        yield missing("tool_choice.mode")
    known = {_choose(tool) for tool in tools if not tool.get("defer_loading")}
    for item in _chosen_tools(choice):
        if _choose(item) not in known:
            yield invalid(
                f"Tool choice '{_choose(item)}' not found in 'tools' parameter.",
                param="tool_choice",
            )


def _adds_tools(body: JSON) -> bool:
    items = body.get("input")
    return isinstance(items, list) and any(item.get("tools") for item in items)


def _chosen_tools(choice: JSON) -> list[Any]:
    if choice.get("type") != "allowed_tools":
        return [choice]
    tools = choice.get("tools")
    return tools if isinstance(tools, list) else []


def _choose(tool: Any) -> str:
    """Return the key of a tool choice: a function's name, another tool's type."""
    if not isinstance(tool, dict):
        return str(tool)
    named = tool.get("type") in ("function", "custom")
    return str(tool.get("name") if named else tool.get("type"))
