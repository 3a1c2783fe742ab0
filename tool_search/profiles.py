"""What each provider and model can do: facts, no behaviour.

Sources: Anthropic, "Tool search tool" (model support; limits of 10,000 deferred
tools and 4 MiB of tool text), "Extended thinking" (thinking bound to the
prefix); OpenAI, Chat Completions reference (`tools`: at most 128).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from tool_search.config import Dialect, StrategyChoice
from tool_search.errors import UnsupportedStrategyError
from tool_search.messages import StrategyName
from tool_search.names import NameRule

__all__ = ["ProviderProfile", "profile_for"]

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

    @property
    def family(self) -> str:
        """A name for this way of being asked: two providers of one family share bytes."""
        return f"{self.dialect}/{self.strategy}"

    def generic(self) -> ProviderProfile:
        """The same provider, told of tools by a filtered list."""
        return replace(self, strategy="generic")


def profile_for(
    dialect: Dialect,
    model: str,
    *,
    base_url: str | None = None,
    strategy: StrategyChoice = "auto",
) -> ProviderProfile:
    """The profile of a model at an endpoint.

    An endpoint that only looks like Anthropic's gets the generic strategy unless
    `strategy` says otherwise: many accept the dialect without tool references.

    Raises:
        UnsupportedStrategyError: `strategy` names one the model cannot honour.
    """
    host = _host(base_url) if base_url else ""
    if dialect == "anthropic":
        return _anthropic(model, host or _ANTHROPIC_HOSTS[0], strategy)
    if strategy == "claude":
        raise UnsupportedStrategyError(
            f"strategy 'claude' needs type anthropic, not {dialect!r} (model {model!r}); "
            "use auto or generic"
        )
    return ProviderProfile(
        dialect="openai_chat",
        model=model,
        origin=f"openai_chat:{host or 'api.openai.com'}",
        max_tools=OPENAI_MOST_TOOLS,
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
