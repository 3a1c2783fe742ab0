"""Refusals that an endpoint of any dialect may answer: gateways pass on those of other services.

Patterns match loosely, because services and their proxies change their wording. A pattern is
searched in "code message".
"""

from __future__ import annotations

from tool_search.adapters.wire.content_errors import CONTENTS
from tool_search.providers.refusals import Answer

__all__ = ["BY_CONTENT", "BY_DEFINITION", "BY_PLACE", "LIMIT", "REPLY_LIMITS"]

_FEATURE = r"(?:defer_loading|tool.?search\w*|tool_reference|additional_tools|namespace)"
_FIELD = r"(?:defer_loading|additional_tools|tool_search|tool_reference|\]\.namespace\b)"
_UNKNOWN = r"(?:extra|unknown|unrecognized|unexpected|unsupported|does not support)"
_NOT_TAKEN = r"(?:not permitted|not supported|unknown|unrecognized|unexpected|invalid)"
_TOOLS = r"(?:tools|functions|function[ _]declarations)"
_SENT = r"(?P<sent>\d[\d,]*)"
_LIMIT = r"(?P<limit>\d[\d,]*)"

LIMIT = (
    r"(?:maximum|max|at most|more than|limit(?:ed)?|exceeds?)\D{0,40}"
    r"(?P<most>\d{1,3}(?:[,_]\d{3})+|\d+)"
)
"""A number of tools that a refusal names as its limit, in the words of any service."""

REPLY_LIMITS = (
    Answer(
        r"max_tokens`?: \d+ > (?P<most>\d+)",
        "reply_limit_refused",
        "Anthropic: `max_tokens: 128001 > 64000, which is the maximum allowed number of output "
        "tokens for ...`, claude-code 24451",
    ),
    Answer(
        r"max_tokens\b.{0,80}expected a value <= (?P<most>\d+)",
        "reply_limit_refused",
        "Volcano Ark: `The parameter max_tokens specified in the request is not valid: integer "
        "above maximum value, expected a value <= 32768, but got 64000 instead`, TOKENICODE 3",
    ),
    Answer(
        r"max_tokens\b.{0,60}(?:range|should be)\b.{0,40}\[\s*\d+,\s*(?P<most>\d+)\s*\]",
        "reply_limit_refused",
        "DeepSeek: `Invalid max_tokens value, the valid range of max_tokens is [1, 8192]`; Alibaba "
        "Cloud: `Range of max_tokens should be [1, 65536]`",
    ),
    Answer(
        r"max_tokens\b.{0,60}less than or equal to `?(?P<most>\d+)",
        "reply_limit_refused",
        "Groq: ``max_tokens` must be less than or equal to `8192``",
    ),
    Answer(
        r"max_tokens`? exceed context limit: (?P<input>\d+) \+ \d+ > (?P<limit>\d+)",
        "reply_limit_refused",
        "Anthropic, models before Sonnet 4.5: ``input length and `max_tokens` exceed context "
        "limit: 197202 + 21333 > 200000``",
    ),
    Answer(
        r"max_tokens\b.{0,200}\(\d+ > (?P<limit>\d+) - (?P<input>\d+)\)",
        "reply_limit_refused",
        "vLLM: `'max_tokens' ... is too large: 64000. This model's maximum context length is 32768 "
        "tokens and your request has 100 input tokens (64000 > 32768 - 100)`",
    ),
)
"""Refusals of the requested length of a reply."""

_TOO_LONG = (
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
"""Refusals of a request that is too long.

The groups `limit`, `sent` and `reserved` (for the reply) hold the figures of a wording that
names them.
"""

_CONTENTS = (
    Answer(
        r"unknown variant .{0,3}(?:image|input_image)\w*.{0,3}, expected"
        r"|invalid type: sequence, expected a string|unexpected item type in content",
        "pictures_unknown",
        "DeepSeek: ``messages[1]: unknown variant `image_url`, expected `text` `` (rikkahub 1433, "
        "hermes-webui 2297); an older one: `invalid type: sequence, expected a string` (chatbox "
        "1740); DashScope: `Unexpected item type in content.` (oh-my-pi 1861)",
    ),
    Answer(
        r"is not a multimodal model|no endpoints found that support image"
        r"|image_url is only supported by certain models|only text content type is supported"
        r"|images?(?: inputs?| content)? (?:is|are) not supported|input tag 'image'"
        r"|does(?: not|n't) support (?:images?|vision|multi-?modal)",
        "pictures_unknown",
        "vLLM: `... is not a multimodal model`; OpenRouter: `No endpoints found that support image "
        "input`; OpenAI: `Invalid content type. image_url is only supported by certain models.`",
    ),
    Answer(
        r"could not process (?:image|pdf)|image does not match the provided media"
        r"|image exceeds \d+ ?mb maximum|image dimensions? exceeds? max allowed size"
        r"|\.image\.source\.",
        "picture_refused",
        "Anthropic: `Could not process image` (claude-code 46127, 29080); `messages.46.content.9."
        "image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > 5242880 bytes`; `Image "
        "does not match the provided media type`",
    ),
    Answer(
        r"\b(?:invalid_image\w*|invalid_base64_image|image_too_(?:large|small)|image_parse_error"
        r"|image_file_\w+|unsupported_image_media_type|empty_image_file|failed_to_download_image"
        r"|image_content_policy_violation)\b",
        "picture_refused",
        "OpenAI, `ResponseError.code`",
    ),
    Answer(
        r"does not represent a valid image|uploaded an unsupported image|\binvalid image\b"
        r"|expected a base64-encoded data url with an image"
        r"|(?:failed to|error while|unable to) download\w*.{0,40}(?:image|multimodal|file|http)",
        "picture_refused",
        "OpenAI: `The image data you provided does not represent a valid image.`, `You uploaded an "
        "unsupported image.`; DashScope: `Failed to download multimodal content` (agentscope-java "
        "2700); Ollama: `invalid image input` (ollama 7247)",
    ),
    Answer(
        r"provided image is not valid|unable to process input image|multimodal data is corrupted"
        r"|inline_data\.data.{0,80}(?:base64|invalid)|base64 decoding failed",
        "picture_refused",
        "Gemini: `Provided image is not valid.` (gemini-cli 27244), `Unable to process input "
        "image`; Xiaomi: `Multimodal data is corrupted or cannot be processed`",
    ),
    Answer(
        r"data_?inspection_?failed|may contain inappropriate content|content_policy_violation"
        r"|content management policy|content exists risk|sensitive_words_detected"
        r"|不安全或敏感内容",
        "content_refused",
        "DashScope: `data_inspection_failed` (owl 432), without end in openclaw 32622; Azure "
        "OpenAI: `content management policy`; DeepSeek: `Content Exists Risk`; Zhipu: code 1301",
    ),
)
"""Refusals of the content of a message."""

_NO_TOOLS = (
    Answer(
        r"does(?: not|n't) support tools(?!\w| with)",
        "tools_unknown",
        "Ollama: `registry.ollama.ai/library/gemma3:4b does not support tools`; AstrBot 7356",
        service="Ollama",
        models=("gemma3:4b",),
        words="registry.ollama.ai/library/gemma3:4b does not support tools",
        rule="no tools",
        date="2026-09-29",
    ),
    Answer(
        r"requires --enable-auto-tool-choice",
        "tools_unknown",
        "vLLM without its flags; vox 89",
        service="vLLM",
        words='"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be '
        "set",
        rule="no tools",
        date="2026-09-29",
    ),
    Answer(
        r"no endpoints found that support tool use",
        "tools_unknown",
        "OpenRouter; kilocode 9006, routstr-core 554",
        service="OpenRouter",
        words='No endpoints found that support tool use. Try disabling "tool_search". To learn '
        "more about provider routing, visit: "
        "https://openrouter.ai/docs/guides/routing/provider-selection",
        rule="no tools",
        date="2026-09-29",
        status=404,
    ),
    Answer(
        r"the tool call is not supported",
        "tools_unknown",
        "Alibaba Cloud, error codes",
        service="Alibaba",
        words="The tool call is not supported.",
        rule="no tools",
        date="2026-09-29",
    ),
    Answer(
        r"function call is not supported",
        "tools_unknown",
        "SiliconFlow, code 20037; from memory, without a thread",
        service="SiliconFlow",
        words='{"code": 20037, "message": "Function call is not supported for this model.", '
        '"data": null}',
        rule="no tools",
    ),
)
"""Refusals by models, servers and routes without tools."""

_SCHEMA_LIMITS = (
    Answer(
        r"recursive json schemas? (?:is|are) not",
        "schema_recursive",
        "opencode 45800, codex-router 792",
        service="Meta",
        models=("muse-spark-1.2", "muse-spark-1.3"),
        words='{"error": {"code": null, "message": "Recursive JSON schemas are not currently '
        'supported", "param": "parameters", "type": "invalid_request_error"}}',
        rule="no schema is recursive",
        date="2026-08-28",
    ),
    Answer(
        r"json schema exceeds the maximum nesting depth of (?P<most>\d+)",
        "schema_too_deep",
        "opencode 50297",
        service="Meta through Console Go",
        models=("muse-spark-1.3",),
        words="Error from provider (Console Go): Upstream request failed: [invalid_request_error] "
        "JSON schema exceeds the maximum nesting depth of 10 levels",
        rule="no schema has more than 10 levels",
        date="2026-09-21",
    ),
    Answer(
        r"\bdescription must be at most (?P<most>\d+) char",
        "description_too_long",
        "public code",
        service="a pool",
        words='{"error": {"type": "invalid_request_error", "code": "invalid_tools", "message": '
        '"each tool.function.description must be at most 1024 characters"}}',
        rule="no description has more than 1024 characters",
        date="2026",
    ),
)
"""Refusals of what every definition may be, without the tool's name."""

_DEFINITIONS = (
    Answer(
        r"\btools\.(?P<index>\d+)\.(?:custom\.)?(?:input_schema|input_examples|description)\b",
        "tool_refused",
        "Anthropic: `tools.12.custom.input_schema.properties: Property keys should match pattern`, "
        "`tools.4.custom.input_schema: JSON schema is invalid.`; decocms/studio 6874, "
        "claude-code 79418",
    ),
    Answer(
        r"\btools\.(?P<index>\d+)\.(?:member\.)?toolspec\b",
        "tool_refused",
        "Amazon Bedrock, Converse: `The value at toolConfig.tools.3.toolSpec.inputSchema.json.type "
        "must be one of the following: object.`",
    ),
    Answer(
        r"invalid schema for function '(?P<name>[^']+)'",
        "tool_refused",
        "OpenAI and DeepSeek: `Invalid schema for function 'x': In context=('properties', "
        "'paths'), array schema missing items.`; streamnative-mcp-server 26",
    ),
    Answer(
        r"invalid json schema for tool (?P<name>[^\s,:]+)",
        "tool_refused",
        "Groq: `invalid JSON schema for tool x, tools[24].function.parameters: 'required' present "
        "but 'properties' is missing`; strix 1088",
    ),
    Answer(
        r"function ?declaration '(?P<name>[^']+)' in the request",
        "tool_refused",
        "Google: `FunctionDeclaration 'x' in the request exceeds the maximum allowed nesting "
        "depth.`; gitlab-mcp 223",
    ),
    Answer(
        r"invalid tool schema: (?P<schema>\{.*)",
        "tool_refused",
        "Mistral: `Invalid tool schema: {'type': 'object', ...} is not valid under any of the "
        "given schemas`; pdf-reader-mcp 63",
    ),
    Answer(
        r"not a valid moonshot flavored json schema\b.{0,40}<at path '(?P<path>[^']*)'",
        "tool_refused",
        "Moonshot: `tools.function.parameters is not a valid moonshot flavored json schema, "
        "details: <At path 'properties.source': type is not defined>`; pi 4138",
    ),
)
"""Refusals of one tool's definition, identified by its name, its place or its content."""

_FEATURES = (
    Answer(
        rf"defer_loading.{{0,80}}{_NOT_TAKEN}",
        "feature_unknown",
        "Anthropic's validation and pydantic: `tools.3.custom.defer_loading: Extra inputs are not "
        "permitted`; agentgateway 3240",
    ),
    Answer(
        rf"{_UNKNOWN}.{{0,60}}{_FIELD}",
        "feature_unknown",
        "OpenAI: `Unknown parameter: 'tools[0].defer_loading'.`; serde: `unknown field "
        "`defer_loading``; Google: `Unknown name \"defer_loading\" at 'tools[0]'`",
    ),
    Answer(
        rf"input tag '{_FEATURE}'",
        "feature_unknown",
        "Anthropic: `Input tag 'tool_reference' found using 'type' does not match any of the "
        "expected tags`, quoted in claude-code 28870",
    ),
    Answer(
        rf"invalid value: '{_FEATURE}'",
        "feature_unknown",
        "OpenAI Responses: `Invalid value: 'tool_search'. Supported values are: ...`",
    ),
    Answer(
        r"tools\.tool_search requires at least one deferred"
        r"|deferred tools require tools\.tool_search",
        "feature_unknown",
        "OpenAI, Tool search; codegraff 746",
    ),
    Answer(
        r"only .{0,12}\bfunction\b.{0,4} tools are supported",
        "feature_unknown",
        "Compatible Responses endpoints, as quoted in users' threads",
    ),
    Answer(
        r"duplicate namespace name",
        "feature_unknown",
        "OpenAI Responses: `Duplicate namespace name 'crm' in input[27].tools[0].`",
    ),
    Answer(
        r"(?:tool.?search|tool_reference|additional_tools|tool type 'namespace').{0,80}"
        r"(?:not (?:currently )?supported|not available|not enabled"
        r"|unknown|unrecognized|invalid type|not permitted)",
        "feature_unknown",
        "Amazon Bedrock: `The tool-search-tool beta feature is not currently supported on the "
        "Converse and ConverseStream APIs`; OpenAI: `Tool 'tool_search' is not supported with`",
    ),
)
"""Refusals by endpoints that do not know tool search."""

_CACHE_MARKS = (
    # `cache_control` itself, not its place or count.
    Answer(
        rf"cache_control\b.{{0,80}}{_NOT_TAKEN}",
        "cache_marks_unknown",
        "pydantic, Bedrock: `extraneous key [cache_control] is not permitted`",
    ),
    Answer(
        rf"{_UNKNOWN}.{{0,60}}cache_control",
        "cache_marks_unknown",
        "OpenAI-like validators: `Unknown parameter: 'system[0].cache_control'.`",
    ),
)
"""Refusals by endpoints that do not know cache breakpoints."""

_PLACES = (
    Answer(
        r"\btools\[(?P<index>\d+)\]\.(?:function\.)?(?:parameters|description)\b",
        "tool_refused",
        "OpenAI-like validators: `Invalid value at tools[3].function.parameters`, and the field "
        "`param` of OpenAI's errors",
    ),
    Answer(
        r"(?:\btools\[(?P<index>\d+)\]\.)?function_declarations\[(?P<inner>\d+)\]",
        "tool_refused",
        'Google: `Unknown name "const" at \'tools[0].function_declarations[5].parameters.'
        "properties[8].value': Cannot find field.`; zed 44875",
    ),
)
"""Refusals of a definition by its place alone; rows before these are more exact."""

_TOO_MANY_TOOLS = (
    Answer(
        r"available_tools_limit_exceeded",
        "too_many_tools",
        "Anthropic: `details.error_code`, types of the anthropic SDK",
    ),
    Answer(
        rf"{_TOOLS}\W{{0,4}}(?:array too long|(?:list |array )?should have at most)",
        "too_many_tools",
        "OpenAI: `Invalid 'tools': array too long. Expected an array with maximum length 128`; "
        "pydantic: `tools: List should have at most 128 items`",
    ),
    Answer(
        rf"too many {_TOOLS}|(?:maximum|at most|more than|limit)[^.]{{0,24}} {_TOOLS}"
        rf"|\b{_TOOLS}\b[^.]{{0,30}}(?:maximum|at most|limit(?:ed)?|exceeds?)\b[^.]{{0,40}}\d",
        "too_many_tools",
        "Compatible endpoints and Google: `at most 512 function declarations are allowed`",
    ),
)
"""Refusals of a tool list that is too long."""

_NAMES = (
    Answer(
        r"(?:tools?\W.{0,40}\bname\b|function.{0,20}\bname\b|tool_name|tool_use\W{1,3}name"
        r"|input\W{0,2}\d+\W{0,3}name).{0,80}"
        r"(?:pattern|match|invalid|at most|too long|maximum length|must start)"
        r"|invalid (?:tool|function) name",
        "name_refused",
        "OpenAI, Anthropic, Google and Moonshot, each quoted in users' threads "
        "(claude-code 20830 among them)",
    ),
)
"""Refusals of a tool's name."""

_KEPT_NAMES = (
    Answer(
        r"\bfunction name '?(?P<name>[\w.-]+)'? is reserved",
        "name_kept",
        "hermes-agent 95003, 95219",
        service="xAI",
        models=("grok-4.5", "grok-4.6"),
        words='{"code":"invalid-argument","error":"The function name tool_search is reserved for '
        'the tool_search tool"}',
        rule="no function is named tool_search",
        date="2026-08-25",
    ),
    Answer(
        r"\bfunction name '(?P<name>[^']+)' is reserved for use by",
        "name_kept",
        "onyx 13235, KohakuTerrarium 80",
        service="OpenAI",
        models=("gpt-5.2", "gpt-5.4", "gpt-6-sol"),
        words="The function name 'python' is reserved for use by this model. Please use a "
        "different function name.",
        rule="no function is named python",
        date="2026-07-21",
    ),
    Answer(
        r"\bfunction '(?P<name>[^']+)' is reserved for use by",
        "name_kept",
        "OpenAI Responses: `Invalid Value: 'tools'. Function 'web.run' is reserved for use by this "
        "model and must match the configured schema.`, copilot-api 312",
        date="2026-09",
    ),
    Answer(
        r"custom function name \W{0,2}(?P<name>[\w.-]+)\W{0,2} is reserved",
        "name_kept",
        "oh-my-pi 7970, pi 8661, gajae-code 4104",
        service="OpenCode Zen and Go",
        words='invalid request: invalid tools in request: custom function name "web_search" is '
        "reserved",
        rule="no function is named web_search",
        date="2026-08",
    ),
    Answer(
        r"namespace '(?P<name>[^']+)' collides with an existing tool namespace",
        "name_kept",
        "onyx 13235, vscode 312622, litellm 36545, codex 31864",
        service="OpenAI Responses, Azure, Copilot",
        models=("gpt-5.4", "gpt-5.6-sol"),
        words="Invalid Value: 'tools.namespace'. User-defined namespace 'image_gen' collides with "
        "an existing tool namespace.",
        rule="no function is named image_gen",
        date="2026-09",
    ),
    Answer(
        r"tool names? (?:is|are) not allowed to be \[(?P<name>[^\],]+)",
        "name_kept",
        "forgecode 1580, open-webSearch 21, memorizer 30",
        service="Alibaba Cloud",
        models=("qwen3-coder-plus",),
        words="<400> InternalError.Algo.InvalidParameter: Tool names are not allowed to be "
        "[search]",
        rule="no function is named search",
        date="2026",
    ),
)
"""Refusals of a name that the service keeps for itself; they name fields that other rows know."""

# Figures of tokens match the patterns of a number of tools too, so these come first.
BY_CONTENT = (*_KEPT_NAMES, *_TOO_LONG, *CONTENTS, *_CONTENTS)
"""Refusals of names, and of the size or the content of a request."""

BY_DEFINITION = (*_SCHEMA_LIMITS, *_DEFINITIONS, *_FEATURES, *_NO_TOOLS)
"""Refusals of a tool's definition, or of tool search itself."""

BY_PLACE = (*_CACHE_MARKS, *_PLACES, *_TOO_MANY_TOOLS, *_NAMES)
"""Refusals that name a field alone; the more exact rows of a dialect come before them."""
