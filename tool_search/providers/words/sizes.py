"""Refusals of the size of a request or of a reply, by endpoints of any dialect.

In the words of a row, `{sent}` and the like are what its rule fills in.
"""

from __future__ import annotations

from tool_search.providers.refusals import Answer

__all__ = ["REPLY_LIMITS", "TOO_LONG"]

_SENT = r"(?P<sent>\d[\d,]*)"
_LIMIT = r"(?P<limit>\d[\d,]*)"

REPLY_LIMITS = (
    Answer(
        r"max_tokens`?: \d+ > (?P<most>\d+)",
        "reply_limit_refused",
        "claude-code 24451",
        service="Anthropic",
        words="max_tokens: 128001 > {most}, which is the maximum allowed number of output tokens "
        "for claude-opus-4-5-20251101",
        rule="replies of 8,192 tokens at most",
    ),
    Answer(
        r"max_tokens\b.{0,80}expected a value <= (?P<most>\d+)",
        "reply_limit_refused",
        "TOKENICODE 3",
        service="Volcano Ark",
        words="The parameter max_tokens specified in the request is not valid: integer above "
        "maximum value, expected a value <= {most}, but got 64000 instead",
        rule="replies of 8,192 tokens at most",
    ),
    Answer(
        r"max_tokens\b.{0,60}(?:range|should be)\b.{0,40}\[\s*\d+,\s*(?P<most>\d+)\s*\]",
        "reply_limit_refused",
        "DeepSeek, quoted in users' threads; Alibaba Cloud: `Range of max_tokens should be "
        "[1, 65536]`",
        service="DeepSeek",
        words="Invalid max_tokens value, the valid range of max_tokens is [1, {most}]",
        rule="replies of 8,192 tokens at most",
    ),
    Answer(
        r"max_tokens\b.{0,60}less than or equal to `?(?P<most>\d+)",
        "reply_limit_refused",
        "Groq, quoted in users' threads",
        service="Groq",
        words="`max_tokens` must be less than or equal to `{most}`",
        rule="replies of 8,192 tokens at most",
    ),
    Answer(
        r"max_tokens`? exceed context limit: (?P<input>\d+) \+ \d+ > (?P<limit>\d+)",
        "reply_limit_refused",
        "Anthropic, models before Sonnet 4.5",
        service="Anthropic",
        words="input length and `max_tokens` exceed context limit: {input} + 21333 > 200000",
        rule="replies of 8,192 tokens at most",
    ),
    Answer(
        r"max_tokens\b.{0,200}\(\d+ > (?P<limit>\d+) - (?P<input>\d+)\)",
        "reply_limit_refused",
        "vLLM, quoted in users' threads",
        service="vLLM",
        words="'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum "
        "context length is 200000 tokens and your request has {input} input tokens (64000 > "
        "200000 - {input})",
        rule="replies of 8,192 tokens at most",
    ),
)
"""Refusals of the requested length of a reply."""

TOO_LONG = (
    Answer(
        rf"prompt is too long: {_SENT} tokens > {_LIMIT}",
        "context_too_long",
        "Anthropic, quoted in users' threads",
        service="Anthropic",
        words="prompt is too long: {sent} tokens > {limit} maximum",
        rule="a context of few tokens",
    ),
    Answer(
        rf"exceed context limit.{{0,12}}?{_SENT} \+ (?P<reserved>\d[\d,]*) > {_LIMIT}",
        "context_too_long",
        "Anthropic, models before Sonnet 4.5",
        service="Anthropic",
        words="input length and `max_tokens` exceed context limit: {sent} + 100 > {limit}",
        rule="a context of few tokens",
    ),
    Answer(
        rf"maximum context length (?:is|of) {_LIMIT} tokens.{{0,60}}?"
        rf"(?:requested|resulted in|contains?)(?: about| at least)? {_SENT}",
        "context_too_long",
        "OpenAI; DeepSeek, vLLM, OpenRouter: `However, you requested 131000`",
        service="OpenAI",
        words="This model's maximum context length is {limit} tokens. However, your messages "
        "resulted in {sent} tokens. Please reduce the length of the messages.",
        rule="a context of few tokens",
    ),
    Answer(
        rf"exceeded model token limit: {_LIMIT} \(requested: {_SENT}",
        "context_too_long",
        "Moonshot, quoted in users' threads",
        service="Moonshot",
        words="Invalid request: Your request exceeded model token limit: {limit} (requested: "
        "{sent})",
        rule="a context of few tokens",
    ),
    Answer(
        rf"input token count \(?{_SENT}\)? exceeds the maximum.{{0,40}}?\D{_LIMIT}",
        "context_too_long",
        "Gemini, quoted in users' threads",
        service="Gemini",
        words="The input token count ({sent}) exceeds the maximum number of tokens allowed "
        "({limit}).",
        rule="a context of few tokens",
    ),
    Answer(
        rf"maximum prompt length is {_LIMIT} but the request contains {_SENT}",
        "context_too_long",
        "xAI, quoted in users' threads",
        service="xAI",
        words="This model's maximum prompt length is {limit} but the request contains {sent} "
        "tokens",
        rule="a context of few tokens",
    ),
    Answer(
        rf"prompt contains {_SENT} tokens.{{0,60}}too large for model with {_LIMIT} maximum",
        "context_too_long",
        "Mistral, quoted in users' threads",
        service="Mistral",
        words="Prompt contains {sent} tokens and 0 draft tokens, too large for model with {limit} "
        "maximum context length",
        rule="a context of few tokens",
    ),
    Answer(
        rf"prompt token count of {_SENT} exceeds the limit of {_LIMIT}",
        "context_too_long",
        "GitHub Copilot, quoted in users' threads",
        service="GitHub Copilot",
        words="prompt token count of {sent} exceeds the limit of {limit}",
        rule="a context of few tokens",
    ),
    Answer(
        rf"input \({_SENT} tokens\) is longer than the model'?s context length \({_LIMIT}",
        "context_too_long",
        "Together, quoted in users' threads",
        service="Together",
        words="The input ({sent} tokens) is longer than the model's context length ({limit} "
        "tokens).",
        rule="a context of few tokens",
    ),
    Answer(
        rf"request too large for .{{0,200}}?limit {_LIMIT}.{{0,40}}?requested {_SENT}",
        "context_too_long",
        "Groq (413) and OpenAI (429): no waiting helps",
        service="Groq",
        words="Request too large for model ... on tokens per minute (TPM): Limit {limit}, "
        "Requested {sent}",
        rule="a context of few tokens",
        status=413,
    ),
    Answer(
        r"range of input length should be",
        "context_too_long",
        "DashScope (Qwen) and Xunfei, quoted in users' threads",
        service="Alibaba Cloud",
        words="Range of input length should be [1, {limit}]",
        rule="a context of few tokens",
    ),
    Answer(
        r"context_length_exceeded|context length exceeded|exceeds the context window"
        r"|exceeds (?:the )?(?:available context size|model context window)"
        r"|exceed_context_size_error|context window exceeds limit|greater than the context length"
        r"|exceeded max context length|model_context_window_exceeded|input is too long for"
        r"|maximum context length|exceeded model token limit"
        r"|reduce the length of the (?:messages|prompt|input)",
        "context_too_long",
        "OpenAI Responses; llama.cpp, LM Studio, Ollama, MiniMax, Amazon Bedrock, Groq, each "
        "as quoted in pi-mono's overflow.ts",
        service="OpenAI Responses",
        words="Your input exceeds the context window of this model. Please adjust your input and "
        "try again.",
        rule="a context of few tokens",
    ),
    Answer(
        r"\bprompt .{0,3}(?:超长|exceeds max length)",
        "context_too_long",
        "Zhipu (GLM): code 1261",
        service="Zhipu",
        words="Prompt 超长",
        rule="a context of few tokens",
    ),
    Answer(
        r"inputs?` tokens \+ `?max_new_tokens`? must be",
        "context_too_long",
        "Text Generation Inference",
        service="Hugging Face TGI",
        words="`inputs` tokens + `max_new_tokens` must be <= 4096.",
        rule="a context of few tokens",
        status=422,
    ),
    Answer(
        r"request_too_large|request exceeds the maximum (?:size|allowed number of bytes)"
        r"|request entity too large|payload too large|maximum of \d+ pdf pages",
        "request_too_large",
        "Anthropic: 413 `request_too_large`; nginx; Anthropic, PDF support: `A maximum of "
        "100 PDF pages may be provided.`",
        service="Anthropic",
        words="Request exceeds the maximum size",
        rule="a request of few bytes",
        status=413,
    ),
    Answer(
        r"string too long\. expected a string with maximum length \d{5}",
        "request_too_large",
        "OpenAI, quoted in users' threads",
        service="OpenAI",
        words="Invalid 'messages[1].content': string too long. Expected a string with maximum "
        "length 10485760",
        rule="a request of few bytes",
    ),
)
"""Refusals of a request that is too long.

The groups `limit`, `sent` and `reserved` (for the reply) hold the figures of a wording that
names them.
"""
