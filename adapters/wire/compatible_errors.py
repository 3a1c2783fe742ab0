"""Refusals that an endpoint of any dialect may word: a gateway passes on those of others.

Matched loosely, because services and their proxies change their wording. A pattern is
searched in "code message".
"""

from __future__ import annotations

from tool_search.providers.refusals import Answer

__all__ = [
    "CACHE_MARKS",
    "DEFINITIONS",
    "FEATURES",
    "NAMES",
    "PLACES",
    "REPLY_LIMITS",
    "TOO_MANY_TOOLS",
]

_FEATURE = r"(?:defer_loading|tool.?search\w*|tool_reference|additional_tools|namespace)"
_FIELD = r"(?:defer_loading|additional_tools|tool_search|tool_reference|\]\.namespace\b)"
_UNKNOWN = r"(?:extra|unknown|unrecognized|unexpected|unsupported|does not support)"
_NOT_TAKEN = r"(?:not permitted|not supported|unknown|unrecognized|unexpected|invalid)"
_TOOLS = r"(?:tools|functions|function[ _]declarations)"

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

DEFINITIONS = (
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
"""Refusals of one tool's definition, told by its name, its place or its content."""

FEATURES = (
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
"""Endpoints that do not know tool search."""

CACHE_MARKS = (
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
"""Endpoints that do not know cache breakpoints."""

PLACES = (
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
"""Refusals of a definition by its place alone; what else is at a place has rows before these."""

TOO_MANY_TOOLS = (
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
"""Tool lists that are too long."""

NAMES = (
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
"""Names that the service does not take."""
