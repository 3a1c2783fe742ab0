"""The documented rules of Anthropic Messages, first violation first.

The order is the service's: the shape of the body, then its meaning. A text is
verbatim if it was recorded or reported (GitHub issues of claude-code, pydantic-ai
and anthropic-sdk-python); if only the rule is documented, the text is ours and
names the field.

Source: Anthropic, Messages API; Tool search tool; Prompt caching; Preserved
thinking; `MessageCreateParams` of the anthropic SDK.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.anthropic.prefix_binding import binds_thinking, changed_prefixes
from tool_search.testing.anthropic.rules_messages import message_violations
from tool_search.testing.anthropic.rules_pairing import pairing_violations
from tool_search.testing.anthropic.rules_references import reference_violations
from tool_search.testing.anthropic.rules_tools import tool_set_violations, tool_violations
from tool_search.testing.anthropic.threads import (
    MAX_THREAD_BREAKPOINTS,
    continues,
    thread_violations,
)
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.services.pictures import picture_violations
from tool_search.testing.services.reasoning import messages_reasoning_violations
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

__all__ = ["check_anthropic"]


_VENDOR = Endpoint()
_MAX_CACHE_BREAKPOINTS = 4

# The SDK's parameters with the beta ones, and the sampling ones that lost their types.
_PARAMETERS = frozenset(
    {
        "billing_policy",
        "cache_control",
        "compaction",
        "container",
        "context_management",
        "diagnostics",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "prefill",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "thread",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_MAX_OUTPUT = (
    (r"claude-(3-(haiku|opus|sonnet)|2|instant)", 4_096),
    (r"claude-3-5", 8_192),
    (r"claude-opus-4(-[01]\b|-20|$)", 32_000),
    (r"claude-(3-7|sonnet-4(-[05]\b|-20|$)|haiku-4-5|opus-4-5)", 64_000),
    (r"claude-", 128_000),
)
_CHOICES = ("any", "auto", "none", "tool")


def check_anthropic(
    body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR, counting: bool = False
) -> Violation | None:
    """Return the first documented rule that a Messages request breaks, or None.

    A request that continues a thread is checked alone: references to messages that the
    service keeps are accepted. A stand-in server keeps its replies and checks the whole.

    Args:
        body: The request's parsed JSON body.
        endpoint: The service that it is sent to; the vendor's own by default.
        counting: True for `count_tokens`, which does not accept `max_tokens`.

    Source: see the module.
    """
    return next(_violations(body, endpoint, counting=counting), None)


def _violations(
    body: Mapping[str, Any], endpoint: Endpoint, *, counting: bool
) -> Iterator[Violation]:
    yield from _parameters(body, endpoint, counting=counting)
    tools = body.get("tools") or []
    yield from tool_violations(tools, endpoint)
    yield from _system(body.get("system"))
    yield from message_violations(body["messages"], endpoint)
    yield from _tool_choice_shape(body.get("tool_choice"))
    yield from tool_set_violations(tools, body["model"])
    yield from _cache_breakpoints(body, endpoint)
    if continues(body):
        return
    yield from pairing_violations(body["messages"])
    yield from reference_violations(body["messages"], tools, body["model"])
    yield from _tool_choice(body, tools)
    yield from messages_reasoning_violations(body, endpoint)
    yield from picture_violations("anthropic", body, endpoint)
    if binds_thinking(body["model"]):
        yield from changed_prefixes(body)


def _parameters(
    body: Mapping[str, Any], endpoint: Endpoint, *, counting: bool
) -> Iterator[Violation]:
    required = ("messages", "model") if counting else ("max_tokens", "messages", "model")
    for name in required:
        if body.get(name) is None:
            yield invalid(f"{name}: Field required")
    # GitHub, sub2api 4913: a token count rejects the limit that a message requires.
    known = _PARAMETERS - {"max_tokens"} if counting else _PARAMETERS
    for name in body:
        if name not in known and name not in endpoint.extra_parameters:
            yield invalid(f"{name}: Extra inputs are not permitted")
    yield from _parameter_types(body, endpoint)


def _max_output(model: object) -> int | None:
    """Return the documented output limit of a Claude model; None for other models.

    Source: Anthropic, Models overview; retired models by their error texts.
    """
    for pattern, most in _MAX_OUTPUT:
        if re.match(pattern, str(model)):
            return most
    return None


def _parameter_types(body: Mapping[str, Any], endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(body["model"], str):
        yield invalid("model: Input should be a valid string")
    limit = body.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        yield invalid("max_tokens: Input should be a valid integer")
    if isinstance(limit, int) and limit < 1:
        yield invalid("max_tokens: Input should be greater than or equal to 1")
    most = endpoint.max_output_tokens or _max_output(body["model"])
    if isinstance(limit, int) and most is not None and limit > most:
        yield invalid(
            f"max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens "
            f"for {body['model']}"
        )
    for name in ("messages", "tools"):
        if name in body and not isinstance(body[name], list):
            yield invalid(f"{name}: Input should be a valid list")
    if not isinstance(body.get("thinking") or {}, dict):
        yield invalid("thinking: Input should be a valid dictionary")
    yield from thread_violations(body.get("thread"))


def _system(system: object) -> Iterator[Violation]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield invalid("system: Input should be a valid string")
        return
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield invalid(f"system.{index}.type: Input should be 'text'")
        elif not isinstance(block.get("text"), str):
            yield invalid(f"system.{index}.text: Input should be a valid string")
        elif not block["text"]:
            yield invalid("system: text content blocks must be non-empty")


def _tool_choice_shape(choice: object) -> Iterator[Violation]:
    if choice is None:
        return
    if not isinstance(choice, dict):
        yield invalid("tool_choice: Input should be a valid dictionary")
    elif choice.get("type") not in _CHOICES:
        expected = ", ".join(repr(name) for name in _CHOICES)
        yield invalid(
            f"tool_choice: Input tag {choice.get('type')!r} found using 'type' does not match any "
            f"of the expected tags: {expected}"
        )
    elif choice["type"] == "tool" and not isinstance(choice.get("name"), str):
        yield invalid("tool_choice.tool.name: Field required")


def _tool_choice(body: Mapping[str, Any], tools: list[Any]) -> Iterator[Violation]:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice["type"]
    if not tools:
        yield invalid("tool_choice: tool_choice may only be specified while providing tools")
    if kind in ("any", "tool"):
        thinking = (body.get("thinking") or {}).get("type")
        if binds_thinking(body["model"]):
            yield invalid(
                f"tool_choice.type: {kind!r} is not supported on {body['model']}: "
                "this model does not take a forced tool choice"
            )
        # Recorded: adaptive thinking takes a forced choice (claude-opus-4-6, and its count).
        elif thinking == "enabled":
            yield invalid("Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool":
        named = next((tool for tool in tools if tool.get("name") == choice["name"]), None)
        if named is None:
            yield invalid(f"Tool '{choice['name']}' not found in provided tools")
        elif named.get("defer_loading"):
            yield invalid(
                f"tool_choice.tool.name: Tool '{choice['name']}' has defer_loading=true "
                "and cannot be forced"
            )


def _cache_breakpoints(body: Mapping[str, Any], endpoint: Endpoint) -> Iterator[Violation]:
    system = body.get("system")
    found = sum(_has_breakpoint(item) for item in body.get("tools") or ())
    found += sum(_has_breakpoint(block) for block in system) if isinstance(system, list) else 0
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            inner = block.get("content")
            found += _has_breakpoint(block)
            found += sum(_has_breakpoint(item) for item in inner) if isinstance(inner, list) else 0
    found += _has_breakpoint(body)
    if found and not endpoint.supports_cache_control:
        yield invalid("cache_control: Extra inputs are not permitted")
    if body.get("thread") and found > MAX_THREAD_BREAKPOINTS:
        yield invalid(
            f"thread: a maximum of {MAX_THREAD_BREAKPOINTS} blocks with cache_control may be "
            "provided when thread is set -- the fourth marker slot is reserved for the marker the "
            f"server places on the conversation last cache-eligible block. Found {found}.",
            code="thread_unsupported_request",
        )
    if found > _MAX_CACHE_BREAKPOINTS:
        yield invalid(
            f"A maximum of {_MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {found}."
        )


def _has_breakpoint(value: Mapping[str, Any]) -> bool:
    return value.get("cache_control") is not None
