"""Refusals in Anthropic's Messages dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.providers.refusals import STRATEGY_WORDS, Answer
from tool_search.providers.words.shared import BY_CONTENT, BY_DEFINITION, BY_PLACE
from tool_search.providers.words.sizes import REPLY_LIMITS

__all__ = ["ANSWERS"]

ANSWERS: tuple[Answer, ...] = (
    # A shorter reply is tried before a shorter history.
    *REPLY_LIMITS,
    *BY_CONTENT,
    Answer(
        r"tool reference '(?P<name>[^']*)' (?:was )?(?:not found|has no)",
        "reference_unknown",
        "Recorded; older documentation: `has no corresponding tool definition`",
        service="Anthropic",
        words="Tool reference '{name}' not found in available tools",
        rule="each reference names a tool",
    ),
    Answer(
        r"references unknown tool '(?P<name>[^']*)'",
        "reference_unknown",
        "Anthropic, Mid-conversation tool changes",
        service="Anthropic",
        words="references unknown tool '{name}'",
        rule="each reference names a tool",
    ),
    Answer(
        r"tool_reference_unresolved",
        "references_unknown",
        "Anthropic: `details.error_code`, types of the anthropic SDK",
        service="Anthropic",
        words='{"type": "error", "error": {"type": "invalid_request_error", "message": "…", '
        '"details": {"error_code": "tool_reference_unresolved"}}}',
        rule="each reference names a tool",
    ),
    Answer(
        r"invalid `?signature`? in `?(?:redacted_)?thinking`? block",
        "replies_refused",
        "Anthropic, quoted in users' threads",
        service="Anthropic",
        words="messages.1.content.0: Invalid `signature` in `thinking` block",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"`?thinking`? or `?redacted_thinking`? blocks\b.{0,60}cannot be modified",
        "replies_refused",
        "Anthropic, quoted in users' threads",
        service="Anthropic",
        words="`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"expected `?thinking`?(?: or `?redacted_thinking`?)?,? but found",
        "replies_refused",
        "Anthropic, quoted in users' threads",
        service="Anthropic",
        words="messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`.",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"content\[\]\.thinking\b.{0,60}must be passed back|reasoning_content\b.{0,80}"
        r"(?:must be passed back|is missing)",
        "reasoning_missing",
        "DeepSeek's and Moonshot's Anthropic endpoints: DeepSeek-Reasonix 8902",
        service="DeepSeek",
        words="The `content[].thinking` in the thinking mode must be passed back to the API.",
        rule="reasoning comes back",
    ),
    STRATEGY_WORDS,
    *BY_DEFINITION,
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
