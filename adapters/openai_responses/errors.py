"""Refusals in OpenAI's Responses dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.adapters.wire.errors import BY_CONTENT, BY_DEFINITION, BY_PLACE
from tool_search.providers.refusals import STRATEGY_WORDS, Answer

__all__ = ["ANSWERS"]

ANSWERS: tuple[Answer, ...] = (
    *BY_CONTENT,
    Answer(
        r"(?:missing|unknown) namespace\b.{0,80}\bfunction_call '(?P<name>[^']*)'",
        "reference_unknown",
        "Recorded: `Missing namespace for function_call 'X'. It does not exist in the default "
        "namespace.`",
    ),
    STRATEGY_WORDS,
    *BY_DEFINITION,
    Answer(
        r"previous_response_not_found|previous response with id",
        "replies_refused",
        "OpenAI: `Previous response with id 'resp_…' not found.`",
    ),
    Answer(
        r"invalid_encrypted_content|encrypted content\b.{0,200}could not be (?:verified|decrypted)",
        "replies_refused",
        "OpenAI, Error codes: `invalid_encrypted_content`",
    ),
    Answer(
        r"encrypted content item_id did not match",
        "replies_refused",
        "OpenAI: `Encrypted content item_id did not match the target item id.`",
    ),
    Answer(
        r"duplicate item found with id|item with id '[^']*' not found",
        "replies_refused",
        "Recorded: `Duplicate item found with id tsc_…`; OpenAI: `Items are not persisted when "
        "`store` is set to false`",
    ),
    Answer(
        r"provided without its required (?:\S+ )?(?:following )?item",
        "replies_refused",
        "OpenAI: `Item 'rs_…' of type 'reasoning' was provided without its required following "
        "item.`",
    ),
    Answer(
        r"unknown parameter: 'input\[\d+\]\.(?:phase|content\[\d+\]\.\w+|encrypted_content"
        r"|summary|status|id)'",
        # Not of this reply alone: every later one would be refused for the same field.
        "reasoning_refused",
        "OpenAI: `Unknown parameter: 'input[2].phase'.`: fields of our own kept items alone",
    ),
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
