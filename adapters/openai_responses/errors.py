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
        "Recorded",
        service="OpenAI Responses",
        words="Missing namespace for function_call '{name}'. It does not exist in the default "
        "namespace.",
        rule="each call is of a tool that is defined",
    ),
    STRATEGY_WORDS,
    *BY_DEFINITION,
    Answer(
        r"previous_response_not_found|previous response with id",
        "replies_refused",
        "OpenAI, quoted in users' threads",
        service="OpenAI Responses",
        words="Previous response with id 'resp_68' not found.",
        rule="no reply is kept",
    ),
    Answer(
        r"invalid_encrypted_content|encrypted content\b.{0,200}could not be (?:verified|decrypted)",
        "replies_refused",
        "OpenAI, Error codes: `invalid_encrypted_content`",
        service="OpenAI Responses",
        words='{"error": {"message": "The encrypted content for item rs_1 could not be verified.", '
        '"type": "invalid_request_error", "param": null, "code": '
        '"invalid_encrypted_content"}}',
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"encrypted content item_id did not match",
        "replies_refused",
        "OpenAI, quoted in users' threads",
        service="OpenAI Responses",
        words="Encrypted content item_id did not match the target item id.",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"duplicate item found with id|item with id '[^']*' not found",
        "replies_refused",
        "Recorded; `Items are not persisted when `store` is set to false`",
        service="OpenAI Responses",
        words="Duplicate item found with id rs_1.",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"provided without its required (?:\S+ )?(?:following )?item",
        "replies_refused",
        "OpenAI, quoted in users' threads",
        service="OpenAI Responses",
        words="Item 'rs_68' of type 'reasoning' was provided without its required following item.",
        rule="no reasoning of earlier replies",
    ),
    Answer(
        r"unknown parameter: 'input\[\d+\]\.(?:phase|content\[\d+\]\.\w+|encrypted_content"
        r"|summary|status|id)'",
        # Not of this reply alone: every later one would be refused for the same field.
        "reasoning_refused",
        "OpenAI: fields of our own kept items alone",
        service="OpenAI Responses",
        words="Unknown parameter: 'input[2].phase'.",
        rule="no phase",
    ),
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
