"""The documented rules of OpenAI Chat Completions, first violation first.

A text is the service's if it is known (GitHub issues that quote it); if only the
rule is known, the text names the parameter in the same form.

Source: OpenAI, Chat Completions API and its OpenAPI document; Function calling;
`CompletionCreateParams` of the openai SDK; Moonshot AI, "Dynamic tool loading".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import missing
from tool_search.testing.openai_chat.rules_messages import loaded_by, message_violations
from tool_search.testing.openai_chat.rules_tools import (
    rejected_tools,
    tool_choice_violations,
    tool_violations,
    tools_violations,
)
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.services.pictures import picture_violations
from tool_search.testing.services.reasoning import chat_reasoning_violations
from tool_search.testing.services.vendors import is_grok, vendor_violations
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

__all__ = ["check_openai_chat"]

_VENDOR = Endpoint()
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
_ONLY_WITH_TOOLS = ("tool_choice", "parallel_tool_calls")


def check_openai_chat(body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR) -> Violation | None:
    """Return the first documented rule that a Chat Completions request breaks, or None.

    Args:
        body: The request's parsed JSON body.
        endpoint: The service that it is sent to; the vendor's own by default.

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
        yield missing("messages")
    takes_late = endpoint.supports_tool_search and bool(_TAKES_LATE.search(str(body.get("model"))))
    late = loaded_by(body["messages"])
    if late and not takes_late and _KIMI.search(str(body.get("model"))):
        yield invalid("tokenization failed")
    yield from message_violations(body["messages"], takes_tools=takes_late)
    yield from picture_violations("openai_chat", body, endpoint)
    yield from chat_reasoning_violations(body, endpoint)
    yield from vendor_violations(body)
    tools = body.get("tools")
    if tools is not None:
        yield from tools_violations(tools, endpoint, has_own_limit=is_grok(body))
    for index, tool in enumerate(late):
        yield from tool_violations(f"messages.tools[{index}]", tool)
    yield from rejected_tools([*(tools or []), *late], endpoint)
    yield from tool_choice_violations(body.get("tool_choice"), tools or [])
    for name in _ONLY_WITH_TOOLS:
        if body.get(name) is not None and not tools:
            yield invalid(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )
