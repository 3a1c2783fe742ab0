"""Refusals in OpenAI's Chat Completions dialect: pattern, meaning and source of each."""

from __future__ import annotations

from tool_search.providers.refusals import STRATEGY_WORDS, Answer
from tool_search.providers.words.shared import BY_CONTENT, BY_DEFINITION, BY_PLACE

__all__ = ["ANSWERS"]

_REASONING = r"(?:reasoning_content|reasoning_details|messages\W.{0,40}\breasoning\b)"

_MESSAGES: tuple[Answer, ...] = (
    Answer(
        r"function name \S+ is duplicated|\bdeclared more than once",
        "strategy_rejected",
        "smg 2561, swarmclaw 39, kimi-code 1369",
        service="Moonshot",
        models=("kimi-k3",),
        words="function name read_invoice is duplicated",
        rule="no function is declared twice",
        date="2026-09-17",
    ),
    Answer(
        r"function tools with reasoning_effort are not supported",
        "reasoning_excludes_tools",
        "shell_gpt 801, onyx 15008, foundry-dev-tools 779, litellm 39631, openclaude 1957 (Azure)",
        service="OpenAI, Azure, Copilot",
        models=("gpt-5.6-sol", "gpt-6-sol", "gpt-6-luna", "gpt-6-astra"),
        words="Function tools with reasoning_effort are not supported for gpt-6-sol in "
        "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort "
        "to 'none'.",
        rule="functions have reasoning_effort none",
        date="2026-09-03",
    ),
    Answer(
        r"param incorrect.{0,20}reasoning_content\b.{0,80}(?P<each>must be passed back)",
        "reasoning_missing",
        "Xiaomi MiMo, whose sentence is in `param`; new-api 4827, pi 4602, 9router 1210",
        service="Xiaomi MiMo",
        models=("mimo-v2.5-pro", "mimo-v2.5", "mimo-v2-flash"),
        words='{"error": {"code": "400", "message": "Param Incorrect", "param": "The '
        'reasoning_content in the thinking mode must be passed back to the API.", "type": ""}}',
        rule="every reply has reasoning",
        date="2026-06-06",
    ),
    Answer(
        r"reasoning_content\b.{0,80}(?P<each>must be passed back)",
        "reasoning_missing",
        "DeepSeek, Thinking mode; opencode 24722, crewAI 5878, ai-agent-book 982, openclaw 73417",
        service="DeepSeek",
        models=("deepseek-v4-pro", "deepseek-flash"),
        words="The `reasoning_content` in the thinking mode must be passed back to the API.",
        rule="every reply has reasoning",
        date="2026-08-25",
    ),
    Answer(
        r"reasoning_content is missing in assistant tool call message",
        "reasoning_missing",
        "Moonshot; new-api 3121, opencode 16318",
        service="Moonshot",
        models=("kimi-k2.5", "kimi-k3"),
        words="thinking is enabled but reasoning_content is missing in assistant tool call "
        "message at index 2",
        rule="reasoning comes back",
    ),
    Answer(
        r"missing `?messages\.content`? parameter",
        "content_missing",
        "Volcano Ark; AstrBot 5731, 6852",
        service="Volcano Ark",
        models=("doubao-seed-2-1-pro",),
        words='{"error": {"code": "MissingParameter", "message": "The request failed because it '
        'is missing `messages.content` parameter. Request id: 021", "param": "", "type": '
        '"BadRequest"}}',
        rule="replies with calls have content that is a string",
        date="2026-09-08",
    ),
    Answer(
        r"/content'?, 'string' not in 'null'",
        "content_missing",
        "Cloudflare Workers AI; TencentDB-Agent-Memory 1313, we-promise/sure 467",
        service="Cloudflare",
        models=("@cf/openai/gpt-oss-120b",),
        words='{"errors": [{"message": "AiError: Bad input: Error: oneOf at \'/\' not met, 0 '
        "matches: Type mismatch of '/messages/1/content', 'string' not in 'null'\", \"code\": "
        "5006}]}",
        rule="replies with calls have content that is a string",
        date="2026-09-09",
    ),
    Answer(
        r"`text` is not (?:set|present)",
        "content_missing",
        "Xiaomi MiMo, V2 Flash and Omni; some want a space: MiMo-V2-Flash 8, nanobot 2519, "
        "hermes-agent 37841, 46756",
        service="Xiaomi MiMo",
        models=("mimo-v2-flash", "mimo-v2-omni"),
        words='{"error": {"code": "400", "message": "Param Incorrect", "param": "`text` is not '
        'set", "type": ""}}',
        rule="replies with calls have content that is not empty",
        date="2026-06-15",
    ),
    Answer(
        r"(?P<empty>empty content) is not allowed for assistant messages",
        "content_missing",
        "NVIDIA NIM, where an empty text went out; ogx 1751",
    ),
    Answer(
        r"roles must alternate user and assistant roles",
        "turns_refused",
        "Templates of Ministral 3 and Devstral 2 in llama.cpp, LM Studio and Docker; "
        "mini-swe-agent 759, unsloth 9491",
        service="llama.cpp",
        models=("ministral-3-14b", "devstral-2"),
        words="Jinja Exception: After the optional system message, conversation roles must "
        "alternate user and assistant roles except for tool calls and results.",
        rule="roles alternate",
        date="2026-09-03",
    ),
    Answer(
        r"roles must alternate user/assistant",
        "turns_refused",
        "Templates of Gemma 3 and Mistral 7B, to which llama.cpp answers 500",
        service="llama.cpp",
        models=("gemma-3-27b", "mistral-7b"),
        words="Jinja Exception: Conversation roles must alternate "
        "user/assistant/user/assistant/...",
        rule="roles alternate",
        date="2026-09-03",
        status=500,
    ),
    Answer(
        r"messages parameter is illegal",
        "turns_refused",
        "Z.ai, code 1214, after two messages of the user's; lingtai-kernel 70",
        service="Z.ai",
        models=("glm-5", "glm-5.1"),
        words='{"error": {"code": "1214", "message": "The messages parameter is illegal. Please '
        'check the documentation."}}',
        rule="roles alternate",
        date="2026-05-10",
    ),
    Answer(
        r"messages 参数非法",
        "turns_refused",
        "The same in Chinese; lingtai-kernel 70",
        service="Z.ai (Zhipu)",
        models=("glm-5", "glm-5.1"),
        words='{"error": {"code": "1214", "message": "messages 参数非法。请检查文档。"}}',
        rule="roles alternate",
        date="2026-05-10",
    ),
    Answer(
        r"function call turn comes immediately after a user turn or after a function response",
        "turns_refused",
        "Gemini, also at its compatible endpoint",
        service="Gemini",
        models=("gemini-3-pro",),
        words='[{"error": {"code": 400, "message": "Please ensure that function call turn comes '
        'immediately after a user turn or after a function response turn.", "status": '
        '"INVALID_ARGUMENT"}}]',
        rule="a call follows a message of the user's or a result",
    ),
    Answer(
        r"only supports single tool-?calls at once",
        "calls_refused",
        "The template of Llama 3.1 to 3.3, as at NVIDIA NIM",
        service="NVIDIA NIM",
        models=("meta/llama-3.3-70b-instruct",),
        words="This model only supports single tool-calls at once!",
        rule="a reply has one call",
    ),
    Answer(
        r"\.tool_calls'?: array too long\. expected an array with maximum length (?P<most>\d+)",
        "calls_refused",
        "OpenAI, GitHub Copilot; copilot-cli 669",
        service="OpenAI",
        words="Invalid 'messages[21].tool_calls': array too long. Expected an array with maximum "
        "length 128, but got an array with length 131 instead.",
        rule="a reply has at most 128 calls",
        date="2025-11",
    ),
    Answer(
        r"system role (?:is )?not supported",
        "system_refused",
        "The template of Gemma 2 in vLLM, SGLang and llama.cpp; chat-ui 1386, sglang 892, "
        "kubeai 499",
        service="vLLM",
        models=("google/gemma-2-9b-it",),
        words='{"object": "error", "message": "System role not supported", "type": '
        '"BadRequestError", "param": null, "code": 400}',
        rule="no message of the system's",
        date="2025-04-11",
    ),
    Answer(
        r"function_response\.name: name cannot be empty",
        "result_name_missing",
        "hermes-agent 16482, 19728; ollama 14214; langchain (Elixir) 539",
        service="Gemini",
        models=("gemini-3-flash-preview",),
        words='[{"error": {"code": 400, "message": "* GenerateContentRequest.contents[2].parts[0]'
        '.function_response.name: Name cannot be empty.", "status": "INVALID_ARGUMENT"}}]',
        rule="results name their functions",
        date="2026-05-12",
    ),
    Answer(
        r"tool message must have a 'name' field",
        "result_name_missing",
        "gcli2api 200, 219",
        service="gcli2api",
        words="Tool message must have a 'name' field. The 'name' field is required to match the "
        "tool call with its response in Gemini API.",
        rule="results name their functions",
        date="2025-12-29",
    ),
    Answer(
        r"invalid message role: system\b",
        "system_refused",
        "CodexPlusPlus 267; code 2013",
        service="MiniMax",
        words='{"type": "error", "error": {"type": "bad_request_error", "message": "invalid '
        'params, chat content has invalid message role: system (2013)", "http_code": "400"}}',
        rule="no message of the system's",
        date="2026-05-25",
    ),
)

ANSWERS: tuple[Answer, ...] = (
    *BY_CONTENT,
    *_MESSAGES,
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
        r"error parsing tool call: raw",
        "reply_malformed",
        "ollama 17638, whose template of gpt-oss answers 500",
        service="Ollama",
        models=("gpt-oss:20b",),
        words="error parsing tool call: raw='{\"query\": \"read', err=invalid character '}' after "
        "object key",
        rule="the model's call can be read",
        date="2026-08-09",
        status=500,
    ),
    Answer(
        r"failed to parse tool call",
        "reply_malformed",
        "llama.cpp (500) and LM Studio (400): the model's arguments are no JSON",
        service="llama.cpp",
        words="Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse "
        "error at line 1, column 20: syntax error",
        rule="the model's call can be read",
        date="2026-08",
        status=500,
    ),
    Answer(
        r"parser_error|failed to generate tool_calls",
        "reply_malformed",
        "Cerebras, `generation_error`: the model's call could not be parsed",
        service="Cerebras",
        words='{"message": "Failed to generate tool_calls. Please adjust your prompt.", "type": '
        '"generation_error", "code": "parser_error"}',
        rule="the model's call can be read",
        date="2026-08",
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
    STRATEGY_WORDS,
    *BY_DEFINITION,
    *BY_PLACE,
)
"""The rows, in the order in which they are tried."""
