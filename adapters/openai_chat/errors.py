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
        "DeepSeek, Thinking mode; opencode 24722, crewAI 5878, ai-agent-book 982",
        service="DeepSeek",
        words="The `reasoning_content` in the thinking mode must be passed back to the API.",
        rule="reasoning comes back",
        date="2026-08-25",
    ),
    Answer(
        r"reasoning_content is missing in assistant tool call message",
        "reasoning_missing",
        "new-api 3121, opencode 16318",
        service="Moonshot",
        words="thinking is enabled but reasoning_content is missing in assistant tool call message "
        "at index 2",
        rule="reasoning comes back",
    ),
    Answer(
        rf"{_REASONING}.{{0,80}}(?:not permitted|not supported|unsupported|unknown|unrecognized"
        r"|unexpected|should not be|must not be)",
        "reasoning_refused",
        "Groq; pydantic: `messages.2.assistant.reasoning_content: Extra inputs are not permitted`",
        service="Groq",
        words="'messages.2' : property 'reasoning_content' is unsupported",
        rule="no reasoning comes back",
    ),
    Answer(
        rf"(?:extra|unknown|unrecognized|unexpected|unsupported|does not support).{{0,60}}"
        rf"{_REASONING}",
        "reasoning_refused",
        "OpenAI-like validators",
        service="OpenAI-compatible endpoints",
        words="Unknown parameter: 'messages[2].reasoning_content'.",
        rule="no reasoning comes back",
    ),
    Answer(
        r"reasoning_content\b.{0,60}\bin the input\b|input\b.{0,40}contains? .{0,10}"
        r"reasoning_content",
        "reasoning_refused",
        "DeepSeek, Reasoning model (R1): a 400, without its words",
        service="DeepSeek",
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
        "Groq, Error codes: the model's own call is broken",
        service="Groq",
        words='{"error": {"message": "Failed to call a function. Please adjust your prompt. See '
        '\'failed_generation\' for more details.", "type": "invalid_request_error", "code": '
        '"tool_use_failed", "failed_generation": "<function=tool_search{query"}}',
        rule="the model's call can be read",
    ),
    Answer(
        r"missing a `?thought_?signature",
        "signature_missing",
        "Google's developers' forum (109823); Vertex AI: `... in the 2. content block is "
        "missing a `thought_signature`.`",
        service="Gemini",
        words='[{"error": {"code": 400, "message": "Function call is missing a thought_signature '
        'in functionCall parts. This is required for tools to work correctly.", "status": '
        '"INVALID_ARGUMENT"}}]',
        rule="each call has a signature",
    ),
    Answer(
        r"tool call id\b.{0,200}\blength of 9\b|unexpected role '\w+' after role '\w+'"
        r"|either content or tool_calls, but not both",
        "message_rules_broken",
        "mistralai/mistral-common, validator.py: `Unexpected role 'user' after role 'tool'`, "
        "`Assistant message must have either content or tool_calls, but not both.`",
        service="Mistral",
        words="Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        rule="ids of nine characters",
    ),
    Answer(
        r"moonshot flavored json schema",
        "schema_rules_broken",
        "kimi-cli 2531, vercel/ai 18921",
        service="Moonshot",
        words="tools.function.parameters is not a valid moonshot flavored json schema, details: "
        "<At path 'root': ...>",
        rule="no type beside anyOf",
    ),
    Answer(
        r"stream_options\b.{0,120}(?:not permitted|not supported|unsupported|unknown|unrecognized)"
        r"|(?:extra|unknown|unrecognized|unsupported).{0,60}\bstream_options\b",
        "stream_options_unknown",
        "openai-agents-python 442",
        service="Mistral",
        words="{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'stream_options', "
        "'include_usage'], 'msg': 'Extra inputs are not permitted', 'input': True}]}",
        rule="no stream_options",
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
