"""Refusals in Anthropic's Messages dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.adapters.wire.errors import BY_CONTENT, BY_DEFINITION, BY_PLACE, REPLY_LIMITS
from tool_search.providers.refusals import STRATEGY_WORDS, Answer

__all__ = ["ANSWERS"]

ANSWERS: tuple[Answer, ...] = (
    # A shorter reply is tried before a shorter history.
    *REPLY_LIMITS,
    *BY_CONTENT,
    Answer(
        r"tool reference '(?P<name>[^']*)' (?:was )?(?:not found|has no)",
        "reference_unknown",
        "Recorded: `Tool reference 'X' not found in available tools`; older documentation: `has no "
        "corresponding tool definition`",
    ),
    Answer(
        r"references unknown tool '(?P<name>[^']*)'",
        "reference_unknown",
        "Anthropic, Mid-conversation tool changes",
    ),
    Answer(
        r"tool_reference_unresolved",
        "references_unknown",
        "Anthropic: `details.error_code`, types of the anthropic SDK",
    ),
    Answer(
        r"invalid `?signature`? in `?(?:redacted_)?thinking`? block",
        "replies_refused",
        "Anthropic: ``Invalid `signature` in `thinking` block``, quoted in users' threads",
    ),
    Answer(
        r"`?thinking`? or `?redacted_thinking`? blocks\b.{0,60}cannot be modified",
        "replies_refused",
        "Anthropic: `... blocks in the latest assistant message cannot be modified`",
    ),
    Answer(
        r"expected `?thinking`?(?: or `?redacted_thinking`?)?,? but found",
        "replies_refused",
        "Anthropic: ``Expected `thinking` or `redacted_thinking`, but found `tool_use` ``",
    ),
    Answer(
        r"content\[\]\.thinking\b.{0,60}must be passed back|reasoning_content\b.{0,80}"
        r"(?:must be passed back|is missing)",
        "reasoning_missing",
        "DeepSeek's and Moonshot's Anthropic endpoints: DeepSeek-Reasonix 8902",
    ),
    STRATEGY_WORDS,
    *BY_DEFINITION,
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
