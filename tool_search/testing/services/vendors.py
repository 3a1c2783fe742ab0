"""Rules of other vendors' OpenAI Chat services, recognised by their models' names.

Texts are quoted from users' threads and from Mistral's published validator.

Sources: mistralai/mistral-common, `protocol/instruct/validator.py` (ids, order, content or calls);
avante.nvim 2347, openai-agents-python 442 (`stream_options`) and crush 1590 (`reasoning_content`):
Mistral rejects unknown fields; copilot-cli 4884 and langchain 21196 (content and
calls); hindsight 4246 and Z.ai, "Function Calling" (`tool_choice`); opencode 28911 (Grok's limit);
DeepSeek-V3 1376 and eino 994 (`tool_choice` while DeepSeek and Qwen think).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tool_search.testing.services.moonshot import moonshot_complaint
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from tool_search.testing.violations import Violation

__all__ = ["GROK_MAX_TOOLS", "grok_violations", "is_grok", "vendor_violations"]

GROK_MAX_TOOLS = 200

_MISTRAL = re.compile(r"(^|/)(?:open-)?(?:mi(?:s|x|nis)tral|magistral|devstral|codestral|pixtral)")
_KIMI = re.compile(r"(^|/)(?:kimi|moonshot)-")
_GLM = re.compile(r"(^|/)glm-")
_GROK = re.compile(r"(^|/)grok-")
_THINKS = re.compile(r"(^|/)(?:deepseek-v[4-9]|qwen3\.[5-9])")
_QWEN = re.compile(r"(^|/)qwen")
_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_AFTER = {
    "system": ("user", "assistant", "system"),
    "user": ("assistant", "system", "user"),
    "assistant": ("assistant", "user", "tool"),
    "tool": ("assistant", "tool"),
}
_UNKNOWN_TO_MISTRAL = ("reasoning", "reasoning_content", "reasoning_details", "extra_content")


def vendor_violations(body: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of the rules of the model's vendor."""
    model = str(body.get("model"))
    choice = body.get("tool_choice")
    if _KIMI.search(model):
        yield from _moonshot(body)
    if _MISTRAL.search(model):
        yield from _mistral(body)
    if _GLM.search(model) and choice not in (None, "auto"):
        yield invalid("Tool choice must be auto")
    is_forced = choice not in (None, "auto", "none")
    if is_forced and _THINKS.search(model) and not _is_told_not_to_think(body):
        yield invalid(
            "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not "
            "support being set to required or object in thinking mode"
            if _QWEN.search(model)
            else "Thinking mode does not support this tool_choice"
        )


def is_grok(body: Mapping[str, Any]) -> bool:
    """True if a request's model is xAI's, whose list may be longer than OpenAI's."""
    return bool(_GROK.search(str(body.get("model"))))


def grok_violations(tools: Sequence[object]) -> Iterator[Violation]:
    """Yield the violation of a list that is too long for Grok."""
    if len(tools) > GROK_MAX_TOOLS:
        yield invalid(
            f"Maximum tools limit reached. {len(tools)} tools have been provided but the maximum "
            f"is {GROK_MAX_TOOLS}."
        )


def _is_told_not_to_think(body: Mapping[str, Any]) -> bool:
    thinking = body.get("thinking") or {}
    return thinking.get("type") == "disabled" or body.get("enable_thinking") is False


def _moonshot(body: Mapping[str, Any]) -> Iterator[Violation]:
    lists = [body.get("tools"), *(message.get("tools") for message in body["messages"])]
    for tool in (tool for tools in lists if isinstance(tools, list) for tool in tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        schema = function.get("parameters", {}) if isinstance(function, dict) else {}
        complaint = moonshot_complaint(schema)
        if complaint is not None:
            yield invalid(
                "tools.function.parameters is not a valid moonshot flavored json schema, details: "
                f"{complaint}"
            )


def _mistral(body: Mapping[str, Any]) -> Iterator[Violation]:
    if body.get("stream_options") is not None:
        yield _extra("body", "stream_options", "include_usage")
    previous = None
    for index, message in enumerate(body["messages"]):
        role = str(message.get("role"))
        if previous is not None and role not in _AFTER.get(previous, (role,)):
            yield invalid(
                f"Unexpected role '{role}' after role '{previous}'",
                code="invalid_request_message_order",
            )
        previous = role
        for name in _UNKNOWN_TO_MISTRAL:
            if role == "assistant" and name in message:
                yield _extra("body", "messages", index, "assistant", name)
        yield from _mistral_calls(message)


def _mistral_calls(message: Mapping[str, Any]) -> Iterator[Violation]:
    calls = message.get("tool_calls") or ()
    if calls and message.get("content"):
        yield invalid("Assistant message must have either content or tool_calls, but not both.")
    ids = [call["id"] for call in calls]
    for call_id in (*ids, message["tool_call_id"]) if message.get("role") == "tool" else ids:
        if not _CALL_ID.fullmatch(call_id):
            yield invalid(
                f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.",
                code="invalid_function_call",
            )


def _extra(*place: str | int) -> Violation:
    """Return the violation of an unknown field, as Mistral passes pydantic's error on."""
    return invalid(
        f"[{{'type': 'extra_forbidden', 'loc': {list(place)!r}, "
        "'msg': 'Extra inputs are not permitted'}]"
    )
