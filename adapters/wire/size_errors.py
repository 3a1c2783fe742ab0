"""Refusals of a request that is too long, in the words of any service: gateways pass them on.

Where a wording names the limit and what was sent, the groups `limit`, `sent` and `reserved`
(for the reply) hold them. A pattern is searched in "code message".
"""

from __future__ import annotations

from tool_search.providers.refusals import Answer

__all__ = ["TOO_LONG"]

_SENT = r"(?P<sent>\d[\d,]*)"
_LIMIT = r"(?P<limit>\d[\d,]*)"

TOO_LONG = (
    Answer(
        rf"prompt is too long: {_SENT} tokens > {_LIMIT}",
        "context_too_long",
        "Anthropic: `prompt is too long: 213462 tokens > 200000 maximum`",
    ),
    Answer(
        rf"exceed context limit.{{0,12}}?{_SENT} \+ (?P<reserved>\d[\d,]*) > {_LIMIT}",
        "context_too_long",
        "Anthropic: ``input length and `max_tokens` exceed context limit: 190000 + 20000 > "
        "200000``",
    ),
    Answer(
        rf"maximum context length (?:is|of) {_LIMIT} tokens.{{0,60}}?"
        rf"(?:requested|resulted in|contains?)(?: about| at least)? {_SENT}",
        "context_too_long",
        "OpenAI: `This model's maximum context length is 128000 tokens. However, your messages "
        "resulted in 130000 tokens`; DeepSeek, vLLM, OpenRouter: `However, you requested 131000`",
    ),
    Answer(
        rf"exceeded model token limit: {_LIMIT} \(requested: {_SENT}",
        "context_too_long",
        "Moonshot: `Invalid request: Your request exceeded model token limit: 262144 (requested: "
        "291351)`",
    ),
    Answer(
        rf"input token count \(?{_SENT}\)? exceeds the maximum.{{0,40}}?\D{_LIMIT}",
        "context_too_long",
        "Gemini: `The input token count (1196265) exceeds the maximum number of tokens allowed "
        "(1048575).`",
    ),
    Answer(
        rf"maximum prompt length is {_LIMIT} but the request contains {_SENT}",
        "context_too_long",
        "xAI: `This model's maximum prompt length is 131072 but the request contains 537812 "
        "tokens`",
    ),
    Answer(
        rf"prompt contains {_SENT} tokens.{{0,60}}too large for model with {_LIMIT} maximum",
        "context_too_long",
        "Mistral: `Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
        "maximum context length`",
    ),
    Answer(
        rf"prompt token count of {_SENT} exceeds the limit of {_LIMIT}",
        "context_too_long",
        "GitHub Copilot: `prompt token count of 130000 exceeds the limit of 128000`",
    ),
    Answer(
        rf"input \({_SENT} tokens\) is longer than the model'?s context length \({_LIMIT}",
        "context_too_long",
        "Together: `The input (300 tokens) is longer than the model's context length (200 "
        "tokens).`",
    ),
    Answer(
        rf"request too large for .{{0,200}}?limit {_LIMIT}.{{0,40}}?requested {_SENT}",
        "context_too_long",
        "Groq (413) and OpenAI (429): `Request too large for model ... on tokens per minute (TPM): "
        "Limit 6000, Requested 9329`: no waiting helps",
    ),
    Answer(
        r"range of input length should be",
        "context_too_long",
        "DashScope (Qwen) and Xunfei: `Range of input length should be [1, 983616]`",
    ),
    Answer(
        r"context_length_exceeded|context length exceeded|exceeds the context window"
        r"|exceeds (?:the )?(?:available context size|model context window)"
        r"|exceed_context_size_error|context window exceeds limit|greater than the context length"
        r"|exceeded max context length|model_context_window_exceeded|input is too long for"
        r"|maximum context length|exceeded model token limit"
        r"|reduce the length of the (?:messages|prompt|input)",
        "context_too_long",
        "OpenAI Responses: `Your input exceeds the context window of this model`; llama.cpp, LM "
        "Studio, Ollama, MiniMax, Amazon Bedrock, Groq, each as quoted in pi-mono's overflow.ts",
    ),
    Answer(
        r"\bprompt .{0,3}(?:超长|exceeds max length)",
        "context_too_long",
        "Zhipu (GLM): code 1261, `Prompt 超长`",
    ),
    Answer(
        r"inputs?` tokens \+ `?max_new_tokens`? must be",
        "context_too_long",
        "Text Generation Inference: ```inputs` tokens + `max_new_tokens` must be <= 4096``",
    ),
    Answer(
        r"request_too_large|request exceeds the maximum (?:size|allowed number of bytes)"
        r"|request entity too large|payload too large|maximum of \d+ pdf pages",
        "request_too_large",
        "Anthropic: 413 `request_too_large`, `Request exceeds the maximum size`; nginx; Anthropic, "
        "PDF support: `A maximum of 100 PDF pages may be provided.`",
    ),
    Answer(
        r"string too long\. expected a string with maximum length \d{5}",
        "request_too_large",
        "OpenAI: `Invalid 'messages[1].content': string too long. Expected a string with maximum "
        "length 10485760`",
    ),
)
"""The rows, in the order in which they are tried."""
