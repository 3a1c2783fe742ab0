"""Refusals in OpenAI's Responses dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.providers.refusals import STRATEGY_WORDS, Answer
from tool_search.providers.words.shared import BY_CONTENT, BY_DEFINITION, BY_PLACE

__all__ = ["ANSWERS"]

ANSWERS: tuple[Answer, ...] = (
    # Before pictures that the model takes nowhere: a result's may be at fault alone.
    Answer(
        r"input should be a valid string",
        "result_pictures_refused",
        "opencode 48740",
        service="OpenCode Zen and Go",
        models=("glm-5.3-flash",),
        words='{"error": {"param": "messages.14.user.content.str", "type": '
        '"invalid_request_error", "message": "Error from provider (Console Go): Upstream request '
        'failed: [invalid_request_error] Input should be a valid string"}}',
        rule="a call's output is a string",
        date="2026-09-13",
        status=422,
    ),
    Answer(
        r"invalid input\b.{0,20}\bmessages\.\d+\.content",
        "result_pictures_refused",
        "command-code 795",
        service="Command Code",
        models=("z-ai/glm-5.3-flash",),
        words='{"error": {"type": "invalid_request_error", "message": "Invalid input", "param": '
        '"messages.12.content"}}',
        rule="a call's output is a string",
        date="2026-09-03",
    ),
    Answer(
        r"(?:invalid type for|missing required parameter:) .{0,3}input(?:\[\d+\]\.output\b|'\.)",
        "result_pictures_refused",
        "lmstudio-bug-tracker 2200; `Missing required parameter: input[60].output[1]`, llxprt-code "
        "1687",
        service="LM Studio",
        models=("gemma-4-e2b",),
        words='{"error": {"message": "Invalid type for \'input\'.", "type": '
        '"invalid_request_error", "param": "input", "code": "invalid_union"}}',
        rule="a call's output is a string",
        date="2026-07-24",
    ),
    # Before texts that are too long.
    Answer(
        r"input\[\d+\]\.id\b.{0,20}(?:string too long|string_above_max_length)",
        "replies_refused",
        "openclaw 84774, oh-my-pi 284, hermes 10788, copilot-cli 3594, copilot-api 307",
        service="Copilot, Codex's backend",
        models=("gpt-5.3-codex", "gpt-5.6-sol"),
        words="Invalid 'input[184].id': string too long. Expected a string with maximum length "
        "64, but got a string with length 383 instead.",
        rule="no id is longer than 64 characters",
        date="2026-07",
    ),
    *BY_CONTENT,
    Answer(
        r"reasoning_text\b.{0,80}must be passed back",
        "reasoning_missing",
        "opencodex 1534, rikkahub 1629",
        service="DeepSeek, MiMo, Console Go",
        models=("deepseek-v4-flash", "deepseek-flash", "mimo-v2.5"),
        words="The `reasoning_text` in the thinking mode must be passed back to the API.",
        rule="calls follow their reasoning_text",
        date="2026-08-12",
    ),
    Answer(
        r"encrypted content is not supported with this model",
        "encrypted_content_unknown",
        "pydantic-ai 3326",
        service="OpenAI",
        models=("gpt-5-chat-latest", "gpt-5-search-api"),
        words="Encrypted content is not supported with this model.",
        rule="no encrypted reasoning is asked for",
        date="2025-11",
    ),
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
        r"could not decrypt the provided encrypted_content",
        "replies_refused",
        "openclaw 97926, sub2api 4535, grok2api 688, 689, 1025",
        service="xAI",
        models=("grok-4.5", "grok-4.6"),
        words='{"code":"invalid-argument","error":"Could not decrypt the provided '
        "encrypted_content. Ensure the value is the unmodified encrypted_content from a previous "
        'response."}',
        rule="no reasoning of earlier replies",
        date="2026-06",
    ),
    Answer(
        r"could not decode the compaction blob",
        "replies_refused",
        "openclaw 97926, sub2api 4535, grok2api 688, 689, 1025",
        service="xAI",
        models=("grok-4.5", "grok-4.6"),
        words='{"code":"invalid-argument","error":"Could not decode the compaction blob. '
        'Ensure it is unmodified from the compact response."}',
        rule="no reasoning of earlier replies",
        date="2026-06",
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
