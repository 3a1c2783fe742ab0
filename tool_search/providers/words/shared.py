"""Refusals that an endpoint of any dialect may answer: gateways pass on those of other services.

Patterns match loosely, because services and their proxies change their wording. A pattern is
searched in "code message".
"""
# Longer than 600 lines: one table, which grows by a row for each wording.

from __future__ import annotations

from tool_search.providers.refusals import Answer
from tool_search.providers.words.contents import CONTENTS
from tool_search.providers.words.sizes import TOO_LONG

__all__ = ["BY_CONTENT", "BY_DEFINITION", "BY_PLACE", "LIMIT"]

_FEATURE = r"(?:defer_loading|tool.?search\w*|tool_reference|additional_tools|namespace)"
_FIELD = r"(?:defer_loading|additional_tools|tool_search|tool_reference|\]\.namespace\b)"
_UNKNOWN = r"(?:extra|unknown|unrecognized|unexpected|unsupported|does not support)"
_NOT_TAKEN = r"(?:not permitted|not supported|unknown|unrecognized|unexpected|invalid)"
_TOOLS = r"(?:tools|functions|function[ _]declarations)"

LIMIT = (
    r"(?:maximum|max|at most|more than|limit(?:ed)?|exceeds?)\D{0,40}"
    r"(?P<most>\d{1,3}(?:[,_]\d{3})+|\d+)"
)
"""A number of tools that a refusal names as its limit, in the words of any service."""

_CONTENTS = (
    Answer(
        r"unknown variant .{0,3}(?:image|input_image)\w*.{0,3}, expected"
        r"|invalid type: sequence, expected a string|unexpected item type in content",
        "pictures_unknown",
        "rikkahub 1433, hermes-webui 2297; an older one: `invalid type: sequence, expected a "
        "string` (chatbox 1740); DashScope: `Unexpected item type in content.` (oh-my-pi "
        "1861)",
        service="DeepSeek",
        words="Failed to deserialize the JSON body into the target type: messages[1]: unknown "
        "variant `image_url`, expected `text` at line 1 column 679289",
        rule="no pictures",
    ),
    Answer(
        r"is not a multimodal model|no endpoints found that support image"
        r"|image_url is only supported by certain models|only text content type is supported"
        r"|images?(?: inputs?| content)? (?:is|are) not supported|input tag 'image'"
        r"|does(?: not|n't) support (?:images?|vision|multi-?modal)",
        "pictures_unknown",
        "vLLM: `... is not a multimodal model`; OpenAI: `Invalid content type. image_url is "
        "only supported by certain models.`",
        service="OpenRouter",
        words="No endpoints found that support image input",
        rule="no pictures",
        status=404,
    ),
    Answer(
        r"could not process (?:image|pdf)|image does not match the provided media"
        r"|image exceeds \d+ ?mb maximum|image dimensions? exceeds? max allowed size"
        r"|\.image\.source\.",
        "picture_refused",
        "claude-code 46127, 29080; `messages.46.content.9.image.source.base64: image exceeds "
        "5 MB maximum: 6096280 bytes > 5242880 bytes`; `Image does not match the provided "
        "media type`",
        service="Anthropic",
        words="Could not process image",
        rule="no pictures",
    ),
    Answer(
        r"\b(?:invalid_image\w*|invalid_base64_image|image_too_(?:large|small)|image_parse_error"
        r"|image_file_\w+|unsupported_image_media_type|empty_image_file|failed_to_download_image"
        r"|image_content_policy_violation)\b",
        "picture_refused",
        "OpenAI, `ResponseError.code`",
        service="OpenAI",
        words='{"error": {"message": "…", "type": "invalid_request_error", "param": null, "code": '
        '"image_parse_error"}}',
        rule="no pictures",
    ),
    Answer(
        r"does not represent a valid image|uploaded an unsupported image|\binvalid image\b"
        r"|expected a base64-encoded data url with an image"
        r"|(?:failed to|error while|unable to) download\w*.{0,40}(?:image|multimodal|file|http)",
        "picture_refused",
        "OpenAI; `You uploaded an unsupported image.`; DashScope: `Failed to download "
        "multimodal content` (agentscope-java 2700); Ollama: `invalid image input` (ollama "
        "7247)",
        service="OpenAI",
        words="The image data you provided does not represent a valid image. Please check your "
        "input.",
        rule="no pictures",
    ),
    Answer(
        r"provided image is not valid|unable to process input image|multimodal data is corrupted"
        r"|inline_data\.data.{0,80}(?:base64|invalid)|base64 decoding failed",
        "picture_refused",
        "gemini-cli 27244; `Unable to process input image`; Xiaomi: `Multimodal data is "
        "corrupted or cannot be processed`",
        service="Gemini",
        words="Provided image is not valid.",
        rule="no pictures",
    ),
    Answer(
        r"data_?inspection_?failed|may contain inappropriate content|content_policy_violation"
        r"|content management policy|content exists risk|sensitive_words_detected"
        r"|不安全或敏感内容",
        "content_refused",
        "DashScope (owl 432), without end in openclaw 32622; Azure OpenAI: `content "
        "management policy`; DeepSeek: `Content Exists Risk`; Zhipu: code 1301",
        service="Alibaba Cloud",
        words="Input data may contain inappropriate content.",
        rule="nothing that a filter knows",
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

_TOOL_CHOICES = (
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
    Answer(
        r"only \W{0,3}auto\W{0,3} is supported for \W{0,2}tool_choice",
        "tool_choice_refused",
        "LiveBench 499, oh-my-pi 11635, codegraff 751, 9router 4062",
        service="Meta",
        models=("muse-spark-1.2", "muse-spark-1.3"),
        words='only `"auto"` is supported for `tool_choice`. `"none"`, `"required"`, and named '
        "function choices are not currently supported",
        rule="tool_choice is auto or left out",
        date="2026-08-07",
    ),
)
"""Refusals of a request that lists tools and allows no call."""

_DEFINITIONS = (
    Answer(
        r"\btools\.(?P<index>\d+)\.(?:custom\.)?(?:input_schema|input_examples|description)\b",
        "tool_refused",
        "decocms/studio 6874, claude-code 79418; `tools.4.custom.input_schema: JSON schema "
        "is invalid.`",
        service="Anthropic",
        words="tools.{index}.custom.input_schema.properties: Property keys should match pattern "
        "'^[a-zA-Z0-9_.-]{1,64}$'",
        rule="no definition but plain ones",
    ),
    Answer(
        r"\btools\.(?P<index>\d+)\.(?:member\.)?toolspec\b",
        "tool_refused",
        "Amazon Bedrock, Converse",
        service="Amazon Bedrock",
        words="The value at toolConfig.tools.{index}.toolSpec.inputSchema.json.type must be one of "
        "the following: object.",
        rule="no definition but plain ones",
    ),
    Answer(
        r"invalid schema for function '(?P<name>[^']+)'",
        "tool_refused",
        "OpenAI and DeepSeek; streamnative-mcp-server 26",
        service="OpenAI",
        words="Invalid schema for function '{name}': In context=('properties', 'paths'), array "
        "schema missing items.",
        rule="no definition but plain ones",
    ),
    Answer(
        r"invalid json schema for tool (?P<name>[^\s,:]+)",
        "tool_refused",
        "strix 1088",
        service="Groq",
        words="invalid JSON schema for tool {name}, tools[24].function.parameters: 'required' "
        "present but 'properties' is missing",
        rule="no definition but plain ones",
    ),
    Answer(
        r"function ?declaration '(?P<name>[^']+)' in the request",
        "tool_refused",
        "gitlab-mcp 223",
        service="Google",
        words="FunctionDeclaration '{name}' in the request exceeds the maximum allowed nesting "
        "depth.",
        rule="no definition but plain ones",
    ),
    Answer(
        r"invalid tool schema: (?P<schema>\{.*)",
        "tool_refused",
        "pdf-reader-mcp 63",
        service="Mistral",
        words="Invalid tool schema: {schema} is not valid under any of the given schemas",
        rule="no definition but plain ones",
    ),
    Answer(
        r"not a valid moonshot flavored json schema\b.{0,40}<at path '(?P<path>[^']*)'",
        "tool_refused",
        "pi 4138",
        service="Moonshot",
        words="tools.function.parameters is not a valid moonshot flavored json schema, details: "
        "<At path '{path}': type is not defined>",
        rule="no definition but plain ones",
    ),
)
"""Refusals of one tool's definition, identified by its name, its place or its content."""

_FEATURES = (
    Answer(
        rf"defer_loading.{{0,80}}{_NOT_TAKEN}",
        "feature_unknown",
        "Anthropic's validation and pydantic; agentgateway 3240",
        service="Anthropic-compatible endpoints",
        words="tools.3.custom.defer_loading: Extra inputs are not permitted",
        rule="no tool search",
    ),
    Answer(
        rf"{_UNKNOWN}.{{0,60}}{_FIELD}",
        "feature_unknown",
        "OpenAI; serde: `unknown field `defer_loading``; Google: `Unknown name "
        "\"defer_loading\" at 'tools[0]'`",
        service="OpenAI-compatible endpoints",
        words="Unknown parameter: 'tools[0].defer_loading'.",
        rule="no tool search",
    ),
    Answer(
        rf"input tag '{_FEATURE}'",
        "feature_unknown",
        "claude-code 28870",
        service="Anthropic",
        words="Input tag 'tool_reference' found using 'type' does not match any of the expected "
        "tags",
        rule="no tool search",
    ),
    Answer(
        rf"invalid value: '{_FEATURE}'",
        "feature_unknown",
        "OpenAI Responses, quoted in users' threads",
        service="OpenAI Responses",
        words="Invalid value: 'tool_search'. Supported values are: ...",
        rule="no tool search",
    ),
    Answer(
        r"tools\.tool_search requires at least one deferred"
        r"|deferred tools require tools\.tool_search",
        "feature_unknown",
        "OpenAI, Tool search; codegraff 746",
        service="OpenAI Responses",
        words="Deferred tools require tools.tool_search",
        rule="no tool search",
    ),
    Answer(
        r"only .{0,12}\bfunction\b.{0,4} tools are supported",
        "feature_unknown",
        "Compatible Responses endpoints, as quoted in users' threads",
        service="Responses-compatible endpoints",
        words='Only `type:"function"` tools are supported on this endpoint',
        rule="no tool search",
    ),
    Answer(
        r"duplicate namespace name",
        "feature_unknown",
        "codex 44710, 44378, 44729",
        service="OpenAI Responses",
        words="Duplicate namespace name 'crm' in input[27].tools[0].",
        rule="no tool search",
    ),
    Answer(
        r"(?:tool.?search|tool_reference|additional_tools|tool type 'namespace').{0,80}"
        r"(?:not (?:currently )?supported|not available|not enabled"
        r"|unknown|unrecognized|invalid type|not permitted)",
        "feature_unknown",
        "Amazon Bedrock; OpenAI: `Tool 'tool_search' is not supported with`",
        service="Amazon Bedrock",
        words="The tool-search-tool beta feature is not currently supported on the Converse and "
        "ConverseStream APIs",
        rule="no tool search",
    ),
)
"""Refusals by endpoints that do not know tool search."""

_CACHE_MARKS = (
    # `cache_control` itself, not its place or count.
    Answer(
        rf"cache_control\b.{{0,80}}{_NOT_TAKEN}",
        "cache_marks_unknown",
        "pydantic, Bedrock",
        service="Amazon Bedrock",
        words="extraneous key [cache_control] is not permitted",
        rule="no cache marks",
    ),
    Answer(
        rf"{_UNKNOWN}.{{0,60}}cache_control",
        "cache_marks_unknown",
        "OpenAI-like validators",
        service="Anthropic-compatible endpoints",
        words="Unknown parameter: 'system[0].cache_control'.",
        rule="no cache marks",
    ),
)
"""Refusals by endpoints that do not know cache breakpoints."""

_PLACES = (
    Answer(
        r"\btools\[(?P<index>\d+)\]\.(?:function\.)?(?:parameters|description)\b",
        "tool_refused",
        "OpenAI-like validators, and the field `param` of OpenAI's errors",
        service="OpenAI-compatible endpoints",
        words="Invalid value at tools[{index}].function.parameters",
        rule="no definition but plain ones",
    ),
    Answer(
        r"(?:\btools\[(?P<index>\d+)\]\.)?function_declarations\[(?P<inner>\d+)\]",
        "tool_refused",
        "zed 44875",
        service="Google",
        words='Unknown name "const" at '
        "'tools[0].function_declarations[{index}].parameters.properties[8].value': Cannot "
        "find field.",
        rule="no definition but plain ones",
    ),
)
"""Refusals of a definition by its place alone; rows before these are more exact."""

_TOO_MANY_TOOLS = (
    Answer(
        r"available_tools_limit_exceeded",
        "too_many_tools",
        "Anthropic: `details.error_code`, types of the anthropic SDK",
        service="Anthropic",
        words='{"type": "error", "error": {"type": "invalid_request_error", "message": "…", '
        '"details": {"error_code": "available_tools_limit_exceeded"}}}',
        rule="64 tools at most",
    ),
    Answer(
        rf"{_TOOLS}\W{{0,4}}(?:array too long|(?:list |array )?should have at most)",
        "too_many_tools",
        "OpenAI; pydantic: `tools: List should have at most 128 items`",
        service="OpenAI",
        words="Invalid 'tools': array too long. Expected an array with maximum length {most}, but "
        "got an array with length {count} instead.",
        rule="64 tools at most",
    ),
    Answer(
        rf"too many {_TOOLS}|(?:maximum|at most|more than|limit)[^.]{{0,24}} {_TOOLS}"
        rf"|\b{_TOOLS}\b[^.]{{0,30}}(?:maximum|at most|limit(?:ed)?|exceeds?)\b[^.]{{0,40}}\d",
        "too_many_tools",
        "Compatible endpoints and Google",
        service="Google",
        words="at most {most} function declarations are allowed",
        rule="64 tools at most",
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
        "OpenAI, Anthropic, Google and Moonshot, each quoted in users' threads (claude-code "
        "20830 among them)",
        service="Google",
        words="Invalid function name. Must start with a letter or an underscore.",
        rule="names begin with a letter",
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
        "copilot-api 312",
        service="OpenAI Responses, Copilot",
        models=("gpt-5.6-sol",),
        words="Invalid Value: 'tools'. Function 'web.run' is reserved for use by this model and "
        "must match the configured schema.",
        rule="no function is web.run",
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
BY_CONTENT = (*_KEPT_NAMES, *TOO_LONG, *CONTENTS, *_CONTENTS)
"""Refusals of names, and of the size or the content of a request."""

BY_DEFINITION = (
    *_TOOL_CHOICES,
    *_SCHEMA_LIMITS,
    *_DEFINITIONS,
    *_FEATURES,
    *_NO_TOOLS,
)
"""Refusals of a tool's definition, or of tool search itself."""

BY_PLACE = (*_CACHE_MARKS, *_PLACES, *_TOO_MANY_TOOLS, *_NAMES)
"""Refusals that name a field alone; the more exact rows of a dialect come before them."""
