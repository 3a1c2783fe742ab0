"""What each provider and model can do: facts, no behaviour.

Sources: Anthropic, "Tool search tool" (model support; limits of 10,000 deferred
tools and 4 MiB of tool text), "Extended thinking" (thinking bound to the
prefix); OpenAI, Chat Completions reference (`tools`: at most 128), "Tool search"
(gpt-5.4 and later, its nano excepted; `additional_tools`), "Reasoning models".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from tool_search.config import Dialect, ProviderConfig, SearchForm, StrategyChoice
from tool_search.errors import UnsupportedStrategyError
from tool_search.messages import StrategyName
from tool_search.names import NameRule

__all__ = ["ProviderProfile", "profile_for", "profile_of"]

_ANTHROPIC_HOSTS = ("api.anthropic.com",)
_CLAUDE_WITHOUT_TOOL_SEARCH = (
    "claude-1", "claude-2", "claude-3", "claude-instant",
    "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-opus-4-0", "claude-opus-4-1",
    "claude-opus-4-2", "claude-haiku-4-0",
)  # fmt: skip
_CLAUDE_4_WITHOUT_POINT = ("claude-sonnet-4", "claude-opus-4")
_CLAUDE_BOUND_THINKING = (
    "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2",
    "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
)  # fmt: skip
_OPENAI_HOST = "api.openai.com"
_GPT = re.compile(r"(?:ft:)?gpt-(\d+)(?:\.(\d+))?(?![\d.])(?P<rest>.*)")
_GPT_WITH_ADDITIONAL_TOOLS = (5, 0)
_GPT_WITH_TOOL_SEARCH = (5, 4)
_REASONING = re.compile(r"(?:ft:)?(?:gpt-(?:[5-9]|\d\d)(?!.*-chat)|o\d|codex)")

OPENAI_MOST_TOOLS = 128
CLAUDE_MOST_DEFERRED = 10_000
CLAUDE_MOST_TOOL_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProfile:
    """What one provider and model can do.

    Attributes:
        dialect: The wire format.
        model: The model's name.
        origin: Where replies come from; native blocks go back to the same only.
        strategy: How this model is told of tools.
        max_tools: The longest tool list it takes; None: no limit is known.
        max_deferred: The most deferred tools.
        max_tool_bytes: The most UTF-8 bytes of tool definitions.
        name_rule: What its tool names may be.
        thinking_is_bound: Whether its thinking is refused once `tools`, the system
            text or earlier messages have changed.
        search_form: How an OpenAI Responses model is told of what was found: as in the
            configuration, or `additional`: our search is an ordinary function, and
            definitions come in items of their own.
        keeps_replies: Whether the service keeps replies, so that a request may go on
            from the last one.
        gives_reasoning: Whether the model's reasoning is asked for, encrypted, to be
            sent back.
    """

    dialect: Dialect
    model: str
    origin: str
    strategy: StrategyName = "generic"
    max_tools: int | None = None
    max_deferred: int | None = None
    max_tool_bytes: int | None = None
    name_rule: NameRule = "common"
    thinking_is_bound: bool = False
    search_form: SearchForm | Literal["additional"] = "client"
    keeps_replies: bool = False
    gives_reasoning: bool = False

    @property
    def family(self) -> str:
        """A name for this way of being asked: two providers of one family share bytes."""
        return f"{self.dialect}/{self.strategy}"

    def generic(self) -> ProviderProfile:
        """The same provider, told of tools by a filtered list."""
        return replace(self, strategy="generic")


def profile_of(config: ProviderConfig) -> ProviderProfile:
    """The profile of a configured provider.

    Raises:
        UnsupportedStrategyError: It names a strategy its model cannot honour.
    """
    return profile_for(
        config.type,
        config.model,
        base_url=config.base_url,
        strategy=config.strategy,
        search_form=config.tool_search,
        keeps_replies=config.previous_response_id,
    )


def profile_for(
    dialect: Dialect,
    model: str,
    *,
    base_url: str | None = None,
    strategy: StrategyChoice = "auto",
    search_form: SearchForm = "client",
    keeps_replies: bool = False,
) -> ProviderProfile:
    """The profile of a model at an endpoint.

    An endpoint that only looks like Anthropic's or OpenAI's gets the generic strategy
    unless `strategy` says otherwise: many accept the dialect without tool search.

    Args:
        dialect: The wire format.
        model: The model's name.
        base_url: The endpoint; None: the vendor's own.
        strategy: How it is told of tools.
        search_form: `tool_search` of a provider's configuration.
        keeps_replies: `previous_response_id` of a provider's configuration.

    Raises:
        UnsupportedStrategyError: `strategy` names one the model cannot honour.
    """
    host = _host(base_url) if base_url else ""
    if dialect == "anthropic":
        return _anthropic(model, host or _ANTHROPIC_HOSTS[0], strategy)
    if strategy not in ("auto", "generic", dialect):
        raise _of_another_dialect(strategy, dialect, model)
    if dialect == "openai_responses":
        profile = _responses(model, host or _OPENAI_HOST, strategy, search_form)
        return replace(profile, keeps_replies=keeps_replies)
    return ProviderProfile(
        dialect="openai_chat",
        model=model,
        origin=f"openai_chat:{host or _OPENAI_HOST}",
        max_tools=OPENAI_MOST_TOOLS,
    )


def _of_another_dialect(strategy: str, dialect: Dialect, model: str) -> UnsupportedStrategyError:
    needed = {"claude": "anthropic"}.get(strategy, strategy)
    return UnsupportedStrategyError(
        f"strategy {strategy!r} needs type {needed}, not {dialect!r} (model {model!r}); "
        "use auto or generic"
    )


def _host(address: str) -> str:
    """The host, and the port that is not the scheme's own; never what a user logs in with."""
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    try:
        port = parts.port
    except ValueError:
        port = None
    name = parts.hostname or ""
    return f"{name}:{port}" if port not in (None, usual) else name


def _anthropic(model: str, host: str, strategy: StrategyChoice) -> ProviderProfile:
    if strategy not in ("auto", "generic", "claude"):
        raise _of_another_dialect(strategy, "anthropic", model)
    able = _has_tool_search(model)
    if strategy == "claude" and not able:
        raise UnsupportedStrategyError(
            f"strategy 'claude' needs a model with tool search, and {model!r} has none; "
            "use auto or generic, or a newer Claude model"
        )
    native = strategy == "claude" or (strategy == "auto" and able and host in _ANTHROPIC_HOSTS)
    return ProviderProfile(
        dialect="anthropic",
        model=model,
        origin=f"anthropic:{host}",
        strategy="claude" if native else "generic",
        max_deferred=CLAUDE_MOST_DEFERRED if native else None,
        max_tool_bytes=CLAUDE_MOST_TOOL_BYTES if native else None,
        thinking_is_bound=model.startswith(_CLAUDE_BOUND_THINKING),
    )


def _has_tool_search(model: str) -> bool:
    return (
        model.startswith("claude-")
        and not model.startswith(_CLAUDE_WITHOUT_TOOL_SEARCH)
        and model not in _CLAUDE_4_WITHOUT_POINT
    )


def _responses(
    model: str, host: str, strategy: StrategyChoice, form: SearchForm
) -> ProviderProfile:
    own = host == _OPENAI_HOST
    version, able = _gpt_version(model), _responses_has_tool_search(model)
    named = strategy == "openai_responses"
    if named and version < _GPT_WITH_ADDITIONAL_TOOLS:
        raise UnsupportedStrategyError(
            f"strategy 'openai_responses' needs a model that takes late tools, and {model!r} is "
            "not known to; use auto or generic, or gpt-5 or later"
        )
    native = named or (strategy == "auto" and own and version >= _GPT_WITH_ADDITIONAL_TOOLS)
    if form != "client" and not (native and able):
        raise UnsupportedStrategyError(
            f"tool_search: {form} needs the strategy openai_responses and a model with tool "
            f"search (gpt-5.4 or later, but not its nano); {model!r} at {host} has the strategy "
            f"{'openai_responses without it' if native else 'generic'}; leave tool_search out"
        )
    return ProviderProfile(
        dialect="openai_responses",
        model=model,
        # Reasoning and kept replies are of use to the same model only.
        origin=f"openai_responses:{host}/{model}",
        strategy="openai_responses" if native else "generic",
        max_tools=OPENAI_MOST_TOOLS,
        search_form=form if able else "additional",
        gives_reasoning=(own or named) and _REASONING.match(model) is not None,
    )


def _gpt_version(model: str) -> tuple[int, int]:
    """The version in a GPT model's name; (0, 0) where it has none."""
    named = _GPT.fullmatch(model)
    return (int(named[1]), int(named[2] or 0)) if named else (0, 0)


def _responses_has_tool_search(model: str) -> bool:
    version = _gpt_version(model)
    is_first_nano = version == _GPT_WITH_TOOL_SEARCH and model.find("-nano") > 0
    return version >= _GPT_WITH_TOOL_SEARCH and not is_first_nano
