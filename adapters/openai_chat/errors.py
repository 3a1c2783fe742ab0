"""Refusals in OpenAI's Chat Completions dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.adapters.wire.errors import BY_CONTENT, BY_DEFINITION, BY_PLACE
from tool_search.providers.refusals import STRATEGY_WORDS, Answer

__all__ = ["ANSWERS"]

_REASONING = r"(?:reasoning_content|reasoning_details|messages\W.{0,40}\breasoning\b)"

ANSWERS: tuple[Answer, ...] = (
    *BY_CONTENT,
    Answer(
        r"reasoning_content\b.{0,80}must be passed back",
        "reasoning_missing",
        "DeepSeek, Thinking mode: ``The `reasoning_content` in the thinking mode must be passed "
        "back to the API.``; opencode 24722, crewAI 5878",
    ),
    Answer(
        r"reasoning_content is missing in assistant tool call message",
        "reasoning_missing",
        "Moonshot: `thinking is enabled but reasoning_content is missing in assistant tool call "
        "message at index N`; new-api 3121, opencode 16318",
    ),
    Answer(
        rf"{_REASONING}.{{0,80}}(?:not permitted|not supported|unsupported|unknown|unrecognized"
        r"|unexpected|should not be|must not be)",
        "reasoning_refused",
        "Groq: `property 'reasoning_content' is unsupported`; pydantic: `messages.2.assistant."
        "reasoning_content: Extra inputs are not permitted`",
    ),
    Answer(
        rf"(?:extra|unknown|unrecognized|unexpected|unsupported|does not support).{{0,60}}"
        rf"{_REASONING}",
        "reasoning_refused",
        "OpenAI-like validators: `Unknown parameter: 'messages[2].reasoning_content'.`",
    ),
    Answer(
        r"reasoning_content\b.{0,60}\bin the input\b|input\b.{0,40}contains? .{0,10}"
        r"reasoning_content",
        "reasoning_refused",
        "DeepSeek, Reasoning model (R1): `reasoning_content` in the input is a 400",
    ),
    Answer(
        r"tool choice is none, but model called a tool",
        "tool_choice_refused",
        "Groq, whose requests without tools have this choice too; OpenHands 11725",
        service="Groq",
        models=("openai/gpt-oss-120b",),
        words='{"error": {"message": "Tool choice is none, but model called a tool", "type": '
        '"invalid_request_error", "code": "tool_use_failed", "failed_generation": ""}}',
        rule="no calls are shown where none may be made",
        date="2026-08-01",
    ),
    Answer(
        r"tool_use_failed|failed_generation",
        "reply_malformed",
        "Groq, Error codes: `tool_use_failed` with `failed_generation`: the model's own call is "
        "broken",
    ),
    Answer(
        r"missing a `?thought_?signature",
        "signature_missing",
        "Google: `Function call is missing a thought_signature in functionCall parts.`, quoted in "
        "its developers' forum (109823); Vertex AI: `... in the 2. content block is missing a "
        "`thought_signature`.`",
    ),
    Answer(
        r"tool call id\b.{0,200}\blength of 9\b|unexpected role '\w+' after role '\w+'"
        r"|either content or tool_calls, but not both",
        "message_rules_broken",
        "mistralai/mistral-common, validator.py: `Tool call id was call_1 but must be a-z, A-Z, "
        "0-9, with a length of 9.`, `Unexpected role 'user' after role 'tool'`, `Assistant message "
        "must have either content or tool_calls, but not both.`",
    ),
    Answer(
        r"moonshot flavored json schema",
        "schema_rules_broken",
        "Moonshot: `tools.function.parameters is not a valid moonshot flavored json schema, "
        "details: <At path 'root': ...>`, without the tool's name; kimi-cli 2531, vercel/ai 18921",
    ),
    Answer(
        r"stream_options\b.{0,120}(?:not permitted|not supported|unsupported|unknown|unrecognized)"
        r"|(?:extra|unknown|unrecognized|unsupported).{0,60}\bstream_options\b",
        "stream_options_unknown",
        "Mistral AI: `'type': 'extra_forbidden', 'loc': ['body', 'stream_options', "
        "'include_usage']`; openai-agents-python 442",
    ),
    Answer(
        r"tool.?choice must be auto|tool_choice\b.{0,40}only supports? .{0,4}auto",
        "tool_choice_refused",
        "Z.ai: `Tool choice must be auto`; hindsight 4246",
        service="Z.ai",
        models=("glm-5",),
        words="Tool choice must be auto",
        rule="tool_choice is auto or left out",
    ),
    Answer(
        r"no endpoints found that support the provided .?tool_choice",
        "tool_choice_refused",
        "OpenRouter, routes without that parameter; zed 36094",
        service="OpenRouter",
        models=("z-ai/glm-4.5-air", "z-ai/glm-4.7"),
        words="No endpoints found that support the provided 'tool_choice' value. To learn more "
        "about provider routing, visit: "
        "https://openrouter.ai/docs/guides/routing/provider-selection",
        rule="tool_choice is auto or left out",
        status=404,
    ),
    STRATEGY_WORDS,
    *BY_DEFINITION,
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
