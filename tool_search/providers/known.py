"""A table of facts about known providers and models, each row with its source.

A row has facts of the hosts and models that it matches; wider rows have the rest. No other
module of the package knows a provider or a model by its name.
"""
# Longer than 600 lines: one table, to which strangers add rows.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Literal, TypedDict, cast

from tool_search.config.providers import ProfileSettings
from tool_search.core.catalog.naming import NameShape
from tool_search.core.settings import (
    CacheKind,
    Dialect,
    MessageRules,
    ProviderStrategy,
    SchemaRules,
)

__all__ = [
    "CLAUDE_MAX_DEFERRED",
    "CLAUDE_MAX_TOOL_BYTES",
    "EVER_KEPT_NAMES",
    "GROK_MAX_TOOLS",
    "KNOWN_PROVIDERS",
    "NO_SIGNATURE",
    "OPENAI_MAX_TOOLS",
    "OWN_HOSTS",
    "KnownProvider",
    "ProviderFacts",
    "is_known_model",
    "known_facts",
    "likely_model",
    "stated_facts",
]

NO_SIGNATURE = "skip_thought_signature_validator"
"""The signature that Google documents for calls of other models (Thought signatures, FAQ)."""
OPENAI_MAX_TOOLS = 128
GROK_MAX_TOOLS = 200
CLAUDE_MAX_DEFERRED = 10_000
CLAUDE_MAX_TOOL_BYTES = 4 * 1024 * 1024
OWN_HOSTS: Mapping[Dialect, str] = {
    "anthropic": "api.anthropic.com",
    "openai_chat": "api.openai.com",
    "openai_responses": "api.openai.com",
}
"""The vendor's own endpoint of each dialect."""
# Models at these endpoints have such names, with such words in them; other words are left alone.
_CLAUDE, _CLAUDE_WORDS = (
    re.compile(r"claude-\w"),
    ("claude", "opus", "sonnet", "haiku", "fable", "mythos", "instant", "latest"),
)
_GPT, _GPT_WORDS = (
    re.compile(r"gpt-\w|o\d|chatgpt-|codex|computer-use|davinci|babbage"),
    ("codex", "mini", "nano", "chatgpt", "turbo", "latest"),
)
_MODEL_LIKE = 0.75
_CHAT_HOSTS = (
    "api.openai.com", "*.openai.azure.com", "*.services.ai.azure.com", "*.githubcopilot.com",
)  # fmt: skip
_OPENAI_HOSTS = (*_CHAT_HOSTS, "bedrock-mantle.*.api.aws")
_SINCE_GPT_5_6 = ("gpt-5.[6-9]*", "gpt-5.[1-9][0-9]*", "gpt-[6-9]*", "gpt-[12][0-9]*")
_KEPT_NAMESPACES = (
    "api_tool", "browser", "collaboration", "computer", "container", "file_search", "functions",
    "image_gen", "multi_tool_use", "python", "python_user_visible", "submodel_delegator",
    "terminal", "web",
)  # fmt: skip


class ProviderFacts(TypedDict, total=False):
    """Facts about a provider and model; a missing key is not known.

    `native` is the strategy of the model's family, `knows_native` is true if an endpoint
    passes its features on, `without_native` is the strategy otherwise, `reasons` is true if
    the model has reasoning to return, and `strategy` is a user's choice. All others are as in
    `ProviderProfile`.
    """

    strategy: ProviderStrategy
    native: ProviderStrategy | None
    knows_native: bool
    without_native: ProviderStrategy
    reasons: bool
    max_tools: int | None
    max_output_tokens: int | None
    max_deferred: int | None
    max_tool_bytes: int | None
    name_rule: NameShape
    kept_names: tuple[str, ...]
    cache: CacheKind
    thinking_bound_to_prefix: bool
    search_form: Literal["client", "additional"]
    gives_reasoning: bool
    takes_strict: bool
    returns_reasoning: bool
    missing_reasoning: str | None
    reasoning_in_answers: bool
    missing_signature: str | None
    reasons_with_tools: bool
    takes_result_pictures: bool
    message_rules: MessageRules
    empty_content: str | None
    max_calls: int | None
    schema_rules: SchemaRules
    max_schema_levels: int | None
    max_description: int | None
    takes_pictures: bool
    takes_stream_options: bool
    streams_calls: bool
    takes_tool_choice_none: bool
    takes_tools: bool
    set_aside: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """One row: facts of the providers that fit.

    Attributes:
        facts: Their facts.
        source: The source of the facts.
        types: Their dialects; empty: every dialect.
        hosts: Globs of their host.
        models: Globs of the model, without a gateway's prefix, in lower case.
        date: The newest source's day, month or year, as in `2026-08-25`; empty: not known.
    """

    facts: ProviderFacts
    source: str
    types: tuple[Dialect, ...] = ()
    hosts: tuple[str, ...] = ("*",)
    models: tuple[str, ...] = ("*",)
    date: str = ""

    def match_rank(self, dialect: Dialect, host: str, model: str) -> tuple[int, int] | None:
        """Return how closely the row matches, hosts before models, or None if it does not."""
        if self.types and dialect not in self.types:
            return None
        host = host.lower()
        by_host = _closest(self.hosts, {host, re.sub(r":\d+$", "", host)})
        by_model = _closest(self.models, {model.lower(), _bare(model.lower())})
        return None if by_host is None or by_model is None else (by_host, by_model)


def known_facts(dialect: Dialect, host: str, model: str) -> ProviderFacts:
    """Return the facts of the table about a model at a host."""
    return _merge(KNOWN_PROVIDERS, dialect, host, model)


def is_known_model(model: str) -> bool:
    """True if a row of the table is about this model, in any dialect."""
    return any(
        row.models != ("*",) and _closest(row.models, {model.lower(), _bare(model.lower())})
        for row in KNOWN_PROVIDERS
    )


def likely_model(dialect: Dialect, host: str, model: str) -> str | None:
    """Return the name that is probably meant, if the vendor's own endpoint has no such model.

    None if the name is like those of the vendor's models, or the endpoint is another one; empty
    if it is not like any of them.

    >>> likely_model("anthropic", "api.anthropic.com", "claude-sonet-4.6")
    'claude-sonnet-4-6'
    """
    if host.lower() != OWN_HOSTS[dialect] or model.startswith("ft:"):
        return None
    words, names = (_CLAUDE_WORDS, _CLAUDE) if dialect == "anthropic" else (_GPT_WORDS, _GPT)
    likely = re.sub(
        r"[a-z]{4,}",
        lambda word: (get_close_matches(word[0], words, 1, _MODEL_LIKE) or word)[0],
        model.replace(".", "-") if dialect == "anthropic" else model,
    )
    if names.match(likely) is None:
        return ""
    return likely if likely != model else None


def stated_facts(
    profiles: Mapping[str, ProfileSettings], dialect: Dialect, host: str, model: str
) -> ProviderFacts:
    """Return the facts of a configuration's `profiles` about a model at a host."""
    rows = [
        KnownProvider(
            types=(entry.match.type,) if entry.match.type else (),
            hosts=tuple(pattern.lower() for pattern in entry.match.host) or ("*",),
            models=tuple(pattern.lower() for pattern in entry.match.model) or ("*",),
            facts=cast("ProviderFacts", entry.stated),
            source=f"profiles.{name}",
        )
        for name, entry in profiles.items()
    ]
    return _merge(rows, dialect, host, model)


def _merge(rows: Iterable[KnownProvider], dialect: Dialect, host: str, model: str) -> ProviderFacts:
    """Return the facts of all rows that match; those of a closer row replace a wider row's.

    Of two rows that match as closely, the later one counts. Kept names add up: a gateway's and a
    model's both hold.
    """
    fitting = [
        (fit, row) for row in rows if (fit := row.match_rank(dialect, host, model)) is not None
    ]
    facts: ProviderFacts = {}
    for _, row in sorted(fitting, key=lambda found: found[0]):
        kept = (*facts.get("kept_names", ()), *row.facts.get("kept_names", ()))
        facts.update(row.facts)
        if kept:
            facts["kept_names"] = kept
    return facts


def _closest(patterns: Iterable[str], names: set[str]) -> int | None:
    """Return the number of literal characters in the longest matching pattern, or None."""
    fits = (p for p in patterns if any(fnmatchcase(name, p) for name in names))
    return max((len(re.sub(r"\[[^]]*\]", ".", p).replace("*", "")) for p in fits), default=None)


def _bare(model: str) -> str:
    """Return a model's name without a prefix such as `anthropic/` or `us.anthropic.`."""
    return re.sub(r"^(?:.*/)?(?:(?:[a-z-]+\.)?anthropic\.)?(?:ft:)?", "", model)


_ANTHROPIC: tuple[KnownProvider, ...] = (
    KnownProvider(
        types=("anthropic",),
        facts={
            "cache": "explicit",
            "max_deferred": CLAUDE_MAX_DEFERRED,
            "max_tool_bytes": CLAUDE_MAX_TOOL_BYTES,
        },
        source="Anthropic, Prompt caching: `cache_control` belongs to the dialect; those that "
        "do not take it ignore it, or say so. Tool search tool: limits",
    ),
    KnownProvider(
        types=("anthropic",),
        hosts=(
            OWN_HOSTS["anthropic"],
            "*aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com",
            "*.services.ai.azure.com", "aws-external-anthropic.*.api.aws",
        ),
        facts={"knows_native": True},
        source="Anthropic, Tool search tool: platforms; their addresses: the anthropic SDK",
    ),
    KnownProvider(
        types=("anthropic",),
        hosts=("bedrock*.amazonaws.com", "bedrock-mantle.*.api.aws"),
        facts={"knows_native": False},
        source="Amazon Bedrock: Converse has no tool search, InvokeModel may want a beta header",
    ),
    KnownProvider(
        types=("anthropic",),
        models=("claude-*",),
        facts={"native": "claude"},
        source="Anthropic, Tool search tool: every model since Sonnet 4.5",
    ),
    KnownProvider(
        types=("anthropic",),
        models=("claude-*",),
        facts={"max_output_tokens": 128_000},
        source="Anthropic, Models: max output 128K since Opus 4.6 and Sonnet 4.6, Claude Haiku 5.5 "
        "included",
    ),
    KnownProvider(
        types=("anthropic",),
        models=(
            "claude-sonnet-4", "claude-sonnet-4[.@-][0125]*", "claude-haiku-4[.@-]5*",
            "claude-opus-4[.@-]5*", "claude-3[.-]7*",
        ),
        facts={"max_output_tokens": 64_000},
        source="Anthropic, Models: 64K up to the family 4.5; `max_tokens: 128001 > 64000, which is "
        "the maximum allowed number of output tokens for claude-opus-4-5-20251101`, claude-code "
        "24451",
    ),
    KnownProvider(
        types=("anthropic",),
        models=("claude-opus-4", "claude-opus-4[.@-][012]*"),
        facts={"max_output_tokens": 32_000},
        source="Anthropic, Models: Opus 4 and 4.1, max output 32K",
    ),
    KnownProvider(
        types=("anthropic",),
        models=("claude-3[.-]5*",),
        facts={"max_output_tokens": 8_192},
        source="Anthropic, Models (retired): Claude 3.5, max output 8,192",
    ),
    KnownProvider(
        types=("anthropic",),
        models=("claude-[12]*", "claude-instant*", "claude-3-[hos]*"),
        facts={"max_output_tokens": 4_096},
        source="Anthropic, Models (retired): Claude 3 and before, max output 4,096; `max_tokens: "
        "8192 > 4096 ... claude-3-haiku-20240307`, continue 4225",
    ),
    KnownProvider(
        types=("anthropic",),
        models=(
            "claude-[123]*", "claude-instant*",
            "claude-sonnet-4", "claude-sonnet-4[.@-][02]*", "claude-haiku-4-0*",
            "claude-opus-4", "claude-opus-4[.@-][012]*",
        ),
        facts={"native": None},
        source="Anthropic, Tool search tool: Opus 4.1 and earlier do not have it",
    ),
    KnownProvider(
        types=("anthropic",),
        models=(
            "claude-fable-5-[12]*", "claude-mythos-5-2*",
            "claude-opus-5-5*", "claude-sonnet-5-5*", "claude-haiku-5-5*",
        ),
        facts={"thinking_bound_to_prefix": True},
        source="Anthropic, Extended thinking: prefix binding",
    ),
)  # fmt: skip

_OPENAI: tuple[KnownProvider, ...] = (
    KnownProvider(
        types=("openai_chat",),
        facts={"max_tools": OPENAI_MAX_TOOLS},
        source="OpenAI, Chat Completions: `tools`, at most 128; compatible endpoints say the same "
        "or nothing",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=(OWN_HOSTS["openai_chat"],),
        facts={"takes_strict": True},
        source="OpenAI, Structured outputs: function calling with `strict`; compatible endpoints "
        "may refuse a field that they do not know",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=_CHAT_HOSTS,
        models=_SINCE_GPT_5_6,
        facts={"reasons_with_tools": False},
        source="OpenAI Chat, Azure, Copilot: `Function tools with reasoning_effort are not "
        "supported for gpt-6-sol in /v1/chat/completions.`, sent or not: shell_gpt 801, "
        "onyx 15008, openclaude 1957, github/app 3268",
        date="2026-09-03",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=_CHAT_HOSTS,
        models=("gpt-*-chat*",),
        facts={"reasons_with_tools": True},
        source="OpenAI, Models: the chat models do not reason",
    ),
    KnownProvider(
        types=("openai_responses",),
        facts={"max_tools": None},
        source="OpenAI's specification and SDK set no maxItems for `tools` of Responses",
    ),
    KnownProvider(
        types=("openai_responses",),
        hosts=(OWN_HOSTS["openai_responses"],),
        facts={"knows_native": True},
        source="OpenAI, Tool search",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("gpt-5", "gpt-5[.-]*"),
        facts={"native": "openai_responses", "search_form": "additional"},
        source="OpenAI, Responses: `additional_tools`, accepted by gpt-5 in recorded traffic",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("gpt-5.[4-9]*", "gpt-5.[1-9][0-9]*", "gpt-[6-9]*", "gpt-[12][0-9]*"),
        facts={"native": "openai_responses", "search_form": "client"},
        source="OpenAI, Tool search: gpt-5.4 and later",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("gpt-5.4*-nano*",),
        facts={"search_form": "additional"},
        source="OpenAI, Tool search: not gpt-5.4-nano",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("gpt-[5-9]*", "gpt-[12][0-9]*", "o[1-9]*", "codex*"),
        facts={"reasons": True},
        source="OpenAI, Reasoning models",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("gpt-*-chat*",),
        facts={"reasons": False},
        source="OpenAI, Models: the chat models do not reason",
    ),
)

_OTHERS: tuple[KnownProvider, ...] = (
    KnownProvider(
        types=("anthropic",),
        hosts=("api.deepseek.com",),
        facts={"max_output_tokens": 384_000},
        source="DeepSeek, Models & Pricing: V4, max output 384K",
    ),
    KnownProvider(
        types=("anthropic",),
        hosts=("api.z.ai", "open.bigmodel.cn"),
        models=("glm-[5-9]*", "glm-4.[67]*"),
        facts={"max_output_tokens": 131_072},
        source="Z.ai, GLM-4.6 and later: maximum output 128K",
    ),
    KnownProvider(
        hosts=("api.deepseek.com",),
        facts={"cache": "automatic"},
        source="DeepSeek, Context caching: on disk, by prefixes, always on; Anthropic API: "
        "`cache_control` is ignored",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("api.deepseek.com", "*.xiaomimimo.com"),
        facts={"missing_reasoning": "", "reasoning_in_answers": True},
        source="DeepSeek, Thinking mode: once there are tools, `reasoning_content` of every reply "
        "comes back, of an answer too (ai-agent-book 982); recorded: an empty one is taken where a "
        "reply has none. Xiaomi MiMo, Passing back reasoning_content: new-api 4827, pi 4602",
        date="2026-08-25",
    ),
    KnownProvider(
        types=("openai_chat",),
        models=("deepseek-v[4-9]*", "deepseek-flash*", "mimo-*"),
        facts={"missing_reasoning": "", "reasoning_in_answers": True},
        source="The same through gateways: opencode 24722, 37771, 39631, crewAI 5878",
        date="2026-08",
    ),
    KnownProvider(
        types=("openai_responses",),
        models=("deepseek-v[4-9]*", "deepseek-flash*", "mimo-*"),
        facts={"missing_reasoning": "…"},
        source="DeepSeek's Responses API, Console Go's and MiMo's: a `reasoning` item with "
        "`reasoning_text` before each call; a short text is taken, an empty one is not: "
        "opencodex 1534, rikkahub 1629",
        date="2026-08-12",
    ),
    KnownProvider(
        types=("openai_chat",),
        models=(
            "kimi-k2.[5-9]*",
            "kimi-k2-thinking*",
            "kimi-k[3-9]*",
            "kimi-for-coding*",
            "k3*",
            "morph-kimik3*",
        ),
        facts={"missing_reasoning": ""},
        source="Moonshot AI: thinking models want `reasoning_content` in each message with calls: "
        "new-api 3121, opencode 16318; an empty one is taken: obsidian-yolo 243; Kimi Coding's "
        "names, Morph's: opencode 39631",
    ),
    *(
        KnownProvider(
            types=("openai_chat",),
            hosts=hosts,
            models=models,
            facts={"empty_content": ""},
            source="Volcano Ark: ``missing `messages.content` parameter``, AstrBot 5731, 6852; "
            "Cloudflare Workers AI: `'string' not in 'null'`, TencentDB-Agent-Memory 1313",
            date="2026-09-09",
        )
        for hosts, models in (
            (("ark.*.volces.com", "api.cloudflare.com"), ("*",)),
            (("*",), ("doubao-*", "@cf/*")),
        )
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("api.cloudflare.com",),
        facts={"streams_calls": False},
        source="Cloudflare Workers AI: in a stream a call is JSON in `delta.content`, and no "
        "`tool_calls` come (public code)",
        date="2026-09-05",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=_OPENAI_HOSTS,
        facts={"max_calls": 128},
        source="OpenAI, Copilot: `Invalid 'messages[21].tool_calls': array too long. Expected an "
        "array with maximum length 128`, copilot-cli 669",
        date="2025-11",
    ),
    KnownProvider(
        hosts=("api.z.ai", "open.bigmodel.cn"),
        facts={"cache": "automatic", "knows_native": False},
        source="Z.ai, Context caching: implicit; zai-org/feedback 172: tools that were not "
        "flagged are deferred",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("api.z.ai", "open.bigmodel.cn"),
        facts={"takes_tool_choice_none": False},
        source="Z.ai, Function Calling: `tool_choice` only supports `auto`; `Tool choice must be "
        "auto`: hindsight 4246. At most 128 functions",
    ),
    KnownProvider(
        types=("openai_chat",),
        models=("glm-*",),
        facts={"takes_tool_choice_none": False},
        source="Z.ai through gateways: hindsight 4246 (OpenRouter)",
    ),
    *(
        KnownProvider(
            types=("openai_chat", "openai_responses"),
            hosts=hosts,
            models=models,
            facts={"takes_tool_choice_none": False},
            source='Meta: ``only `"auto"` is supported for `tool_choice` ``, in both dialects and '
            "through gateways: LiveBench 499, oh-my-pi 11635, codegraff 751, 9router 4062",
            date="2026-08-07",
        )
        for hosts, models in ((("api.meta.ai",), ("*",)), (("*",), ("muse-*",)))
    ),
    KnownProvider(
        types=("openai_chat",),
        models=(
            "mistral-*",
            "open-mi*tral-*",
            "mixtral*",
            "ministral*",
            "magistral*",
            "devstral*",
            "codestral*",
            "pixtral*",
            "mistral",
        ),
        facts={"message_rules": "mistral"},
        source="mistralai/mistral-common, validator.py, which vLLM and NIM run too; quoted in "
        "avante.nvim 2562 and 2951, crush 279, copilot-cli 4884",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("api.mistral.ai",),
        facts={
            "message_rules": "mistral",
            "takes_stream_options": False,
            "returns_reasoning": False,
        },
        source="Mistral AI takes no field that it does not know: `stream_options` (avante.nvim "
        "2347, openai-agents-python 442), `reasoning_content` (crush 1590)",
    ),
    *(
        KnownProvider(
            hosts=hosts,
            models=models,
            facts={"schema_rules": "acyclic", "max_schema_levels": 10},
            source="Meta: `Recursive JSON schemas are not currently supported`, opencode 45800; "
            "`JSON schema exceeds the maximum nesting depth of 10 levels`, opencode 50297",
            date="2026-09-21",
        )
        for hosts, models in ((("api.meta.ai",), ("*",)), (("*",), ("muse-*",)))
    ),
    *(
        KnownProvider(
            hosts=hosts,
            models=models,
            facts={"schema_rules": "acyclic"},
            source="xAI, Structured outputs: circular references are not supported",
        )
        for hosts, models in ((("api.x.ai",), ("*",)), (("*",), ("grok-*",)))
    ),
    *(
        KnownProvider(
            hosts=hosts,
            models=models,
            facts={"kept_names": ("tool_search", "web_search")},
            source="xAI: `The function name tool_search is reserved for the tool_search tool`, "
            "hermes-agent 95003; a function `web_search` is never called: pi-web-access 138",
            date="2026-08-25",
        )
        for hosts, models in ((("api.x.ai",), ("*",)), (("*",), ("grok-*",)))
    ),
    KnownProvider(
        hosts=("chatgpt.com", "*.chatgpt.com"),
        types=("openai_responses",),
        facts={"kept_names": ("tool_search", *_KEPT_NAMESPACES)},
        source="Codex's backend: `User-defined namespace 'tool_search' collides with an existing "
        "tool namespace.`, hermes-agent 83122",
        date="2026-08",
    ),
    KnownProvider(
        types=("openai_responses",),
        hosts=_OPENAI_HOSTS,
        facts={"kept_names": _KEPT_NAMESPACES},
        source="OpenAI Responses: `User-defined namespace 'image_gen' collides with an existing "
        "tool namespace.`, vscode 313033, copilot-api 312, onyx 13235",
        date="2026-09",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=_OPENAI_HOSTS,
        facts={"kept_names": ("python",)},
        source="OpenAI: `The function name 'python' is reserved for use by this model. Please use "
        "a different function name.`, onyx 13235",
        date="2026-07-21",
    ),
    KnownProvider(
        hosts=("*.aliyuncs.com",),
        facts={"kept_names": ("search",)},
        source="Alibaba Cloud: `Tool names are not allowed to be [search]`, forgecode 1580",
        date="2026",
    ),
    KnownProvider(
        hosts=("opencode.ai",),
        facts={"kept_names": ("search_files", "web_search")},
        source='OpenCode Zen and Go: `custom function name "web_search" is reserved`, '
        "oh-my-pi 7970, pi 8661",
        date="2026-08",
    ),
    KnownProvider(
        hosts=("api.x.ai",),
        facts={"max_tools": GROK_MAX_TOOLS, "cache": "automatic"},
        source="xAI, Function calling: at most 200 tools; `Maximum tools limit reached. 219 tools "
        "have been provided but the maximum is 200.`: opencode 28911",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("*.aliyuncs.com",),
        facts={"cache": "automatic"},
        source="Alibaba Cloud, Context cache: implicit, of common prefixes, cannot be switched off",
    ),
    KnownProvider(
        types=("anthropic",),
        hosts=("*.aliyuncs.com",),
        facts={"cache": "explicit"},
        source="Alibaba Cloud, Context cache: `cache_control` in the Anthropic-compatible API",
    ),
    KnownProvider(
        hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        facts={"cache": "automatic", "name_rule": "identifier", "knows_native": True},
        source="Moonshot AI, Context caching: automatic; Tool use: names begin with a letter or "
        "`_`; Dynamic tool loading",
    ),
    KnownProvider(
        types=("openai_chat",),
        models=("kimi-*", "moonshot-*", "k3*"),
        facts={"schema_rules": "moonshot"},
        source="MoonshotAI/walle: `tools.function.parameters is not a valid moonshot flavored json "
        "schema`; vercel/ai 18921, kimi-cli 2531, oh-my-pi 5952, command-code 594",
    ),
    KnownProvider(
        types=("openai_chat",),
        models=("kimi-k3*",),
        facts={"native": "tools_in_messages"},
        source="Moonshot AI, Dynamic tool loading: K3 takes tools in a system message without "
        "content, other models refuse it",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("generativelanguage.googleapis.com", "*aiplatform.googleapis.com"),
        facts={
            "max_tools": 512,
            "name_rule": "identifier",
            "cache": "automatic",
            "message_rules": "joined",
        },
        source="Gemini API: at most 512 function declarations, names begin with a letter or `_`; "
        "Context caching: implicit since 2.5; `Please ensure that function call turn comes "
        "immediately after a user turn or after a function response turn`",
    ),
    KnownProvider(
        types=("openai_chat",),
        hosts=("generativelanguage.googleapis.com", "*aiplatform.googleapis.com"),
        models=("gemini-[3-9]*", "gemini-flash-latest*", "gemini-pro-latest*"),
        facts={"missing_signature": NO_SIGNATURE},
        source="Gemini API, Thought signatures: since Gemini 3 a call of the turn without one is a "
        "400; calls of other models bear the documented text in its place",
    ),
    KnownProvider(
        hosts=("*:11434", "ollama.com"),
        facts={"max_tools": None, "cache": "automatic"},
        source="Ollama: no limit; tools are rendered into the prompt, whose prefix is kept. "
        "(vLLM has no address of its own: a profile can say the same of it.)",
    ),
)

_COSTS: tuple[KnownProvider, ...] = (
    KnownProvider(
        hosts=(
            OWN_HOSTS["openai_chat"],
            "api.deepseek.com",
            "api.moonshot.ai", "api.moonshot.cn", "api.kimi.com",
            "*.aliyuncs.com",
            "api.z.ai", "open.bigmodel.cn",
            "api.x.ai",
            "generativelanguage.googleapis.com", "*aiplatform.googleapis.com",
        ),
        facts={"without_native": "bridge"},
        source="docs/cost.md, measured: they bill a cached prefix at a fraction of the price, and "
        "each tool that is added to a list makes the conversation after it new",
    ),
    KnownProvider(
        types=("anthropic",),
        hosts=("bedrock*.amazonaws.com", "bedrock-mantle.*.api.aws"),
        facts={"without_native": "bridge"},
        source="docs/cost.md, measured: Claude's cache, without its tool search",
    ),
)  # fmt: skip

KNOWN_PROVIDERS: tuple[KnownProvider, ...] = (*_ANTHROPIC, *_OPENAI, *_OTHERS, *_COSTS)
"""The whole table."""

EVER_KEPT_NAMES = tuple(
    sorted({name for row in KNOWN_PROVIDERS for name in row.facts.get("kept_names", ())})
)
"""Each name that some service keeps for itself."""
