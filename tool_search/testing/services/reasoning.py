"""Rules of services that require a reply's reasoning back, or reject it.

Sources: DeepSeek, "Thinking mode" (V4 thinks unless it is disabled; `reasoning_content` of every
message with calls comes back, an empty one is accepted: recorded); Moonshot AI, the errors quoted
in new-api 3121, opencode 16318 (Chat) and claudian 759 (its Anthropic endpoint), `tool_choice` in
oh-my-pi 827; kimi-cli 1616 (a gateway that requires `reasoning_effort` too); DeepSeek-Reasonix 8902
(DeepSeek's Anthropic endpoint); Groq's wording of a property that it does not know; Anthropic,
"Extended thinking" (thinking with a budget: a reply whose calls are being answered begins with
thinking; adaptive thinking does not ask for it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from tool_search.testing.server.endpoint import Endpoint, ReasoningRule
    from tool_search.testing.violations import Violation

__all__ = ["chat_reasoning_violations", "messages_reasoning_violations"]

_DEEPSEEK = re.compile(r"(^|/)deepseek-v[4-9]")
_KIMI = re.compile(r"(^|/)kimi-(k2\.[5-9]|k2-thinking|k[3-9])")
_THOUGHTS = ("thinking", "redacted_thinking")
_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


def chat_reasoning_violations(body: Mapping[str, Any], endpoint: Endpoint) -> Iterator[Violation]:
    """Yield the violations of reasoning in the messages of a Chat request."""
    rule = _rule(body, endpoint)
    if rule in ("kimi", "kimi_not_empty"):
        yield from _forced_choice(body)
    for index, message in enumerate(body["messages"]):
        if message.get("role") != "assistant":
            continue
        if rule == "refused":
            yield from _unsupported_field(index, message)
        elif message.get("tool_calls"):
            yield from _find_missing(rule, index, message.get("reasoning_content"), body)


def messages_reasoning_violations(
    body: Mapping[str, Any], endpoint: Endpoint
) -> Iterator[Violation]:
    """Yield replies of an Anthropic request that lack thinking a compatible service requires."""
    yield from _not_begun_by_thinking(body)
    rule = endpoint.reasoning
    if rule not in ("deepseek", "kimi", "kimi_not_empty"):
        return
    for index, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message["role"] != "assistant" or all(b["type"] != "tool_use" for b in blocks):
            continue
        thoughts = [b["thinking"] for b in blocks if b["type"] == "thinking"]
        if thoughts and (thoughts[0] or rule != "kimi_not_empty"):
            continue
        yield _deepseek("content[].thinking") if rule == "deepseek" else _kimi(index)


def _not_begun_by_thinking(body: Mapping[str, Any]) -> Iterator[Violation]:
    if (body.get("thinking") or {}).get("type") != "enabled" or len(body["messages"]) < 2:
        return
    *_, reply, last = body["messages"]
    blocks = reply["content"]
    answers = isinstance(last["content"], list) and any(
        block["type"] == "tool_result" for block in last["content"]
    )
    if reply["role"] == "assistant" and answers and blocks[0]["type"] not in _THOUGHTS:
        yield invalid(
            f"messages.{len(body['messages']) - 2}.content.0.type: Expected `thinking` or "
            f"`redacted_thinking`, but found `{blocks[0]['type']}`. When `thinking` is enabled, a "
            "final `assistant` message must start with a thinking block (preceeding the lastmost "
            "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks "
            "from previous turns. To avoid this requirement, disable `thinking`."
        )


def _rule(body: Mapping[str, Any], endpoint: Endpoint) -> ReasoningRule:
    if endpoint.reasoning != "by_model":
        return endpoint.reasoning
    if (body.get("thinking") or {}).get("type") == "disabled":
        return "free"
    model = str(body.get("model"))
    if _DEEPSEEK.search(model):
        return "deepseek"
    return "kimi" if _KIMI.search(model) else "free"


def _forced_choice(body: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violation of a forced choice.

    K3 accepts `required`, the earlier models not even that. Source: inspect_ai 5152.
    """
    choice = body.get("tool_choice")
    if choice in (None, "auto", "none"):
        return
    kind = "required" if choice == "required" else "specified"
    if kind == "specified" or not re.search(r"(^|/)kimi-k[3-9]", str(body.get("model"))):
        yield invalid(f"tool_choice '{kind}' is incompatible with thinking enabled")


def _find_missing(
    rule: ReasoningRule, index: int, reasoning: object, body: Mapping[str, Any]
) -> Iterator[Violation]:
    wanted = {
        "deepseek": reasoning is not None,
        "kimi": reasoning is not None,
        "kimi_not_empty": bool(reasoning),
        "kimi_with_effort": bool(reasoning and body.get("reasoning_effort")),
    }
    if not wanted.get(rule, True):
        yield _deepseek("reasoning_content") if rule == "deepseek" else _kimi(index)


def _unsupported_field(index: int, message: Mapping[str, Any]) -> Iterator[Violation]:
    for name in _FIELDS:
        if name in message:
            yield invalid(f"'messages.{index}' : property '{name}' is unsupported")


def _deepseek(field: str) -> Violation:
    return invalid(f"The `{field}` in the thinking mode must be passed back to the API.")


def _kimi(index: int) -> Violation:
    return invalid(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        f"index {index}"
    )
