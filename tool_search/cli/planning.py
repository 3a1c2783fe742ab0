"""The next request of a conversation, as a provider would get it, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.catalog.catalog import Tool, ToolCatalog
from tool_search.config.bot import (
    BotConfig,
    Dialect,
    ProfileSettings,
    ProviderConfig,
    ToolSearchConfig,
)
from tool_search.conversation.record import ConversationRecord
from tool_search.conversation.session import ToolSearchSession
from tool_search.discovery.modes import Mode, ModeDecision, tool_tokens
from tool_search.discovery.state import Discovery
from tool_search.errors import SessionError
from tool_search.messages import Notice, ReferencePart, RequestPlan, StrategyName, ToolList
from tool_search.providers.profiles import ProviderProfile, profile_for, profile_of

__all__ = [
    "PROVIDERS",
    "NextRequest",
    "PlannedRequest",
    "ProviderKind",
    "RequestFigures",
    "figures_of",
    "next_request",
    "planned_request",
]

_NEUTRAL_MESSAGE = "Hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """A provider as `--provider` names it.

    Attributes:
        dialect: Its wire format.
        model: A current model, one with tool search of its own where it has any.
        encode_tools: Gives a tool list as its JSON.
    """

    dialect: Dialect
    model: str
    encode_tools: Callable[[ToolList, ProviderProfile], bytes]

    def profile(
        self,
        model: str | None,
        *,
        base_url: str | None = None,
        profiles: Mapping[str, ProfileSettings] | None = None,
    ) -> ProviderProfile:
        """What a model can do, at the provider's own endpoint or at another."""
        return profile_for(
            self.dialect, model or self.model, base_url=base_url, profiles=profiles or {}
        )


PROVIDERS: Mapping[str, ProviderKind] = {
    "anthropic": ProviderKind(
        dialect="anthropic",
        model="claude-sonnet-4-6",
        encode_tools=anthropic_wire.encode_tools,
    ),
    "openai-chat": ProviderKind(
        dialect="openai_chat",
        model="gpt-5.4",
        encode_tools=openai_chat_wire.encode_tools,
    ),
    "openai-responses": ProviderKind(
        dialect="openai_responses",
        model="gpt-5.4",
        encode_tools=openai_responses_wire.encode_tools,
    ),
}
"""What `--provider` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request, and how it came about.

    Attributes:
        plan: The request.
        decision: The conversation's mode.
        notices: What an operator should know.
    """

    plan: RequestPlan
    decision: ModeDecision
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures:
    """What a request's tool list weighs; tokens are estimates.

    Attributes:
        tools_declared: The length of the list.
        tools_loaded: How many definitions the model is shown: those that are not
            deferred, and those that a reference of the history brings in.
        bytes: UTF-8 bytes of the list on the wire.
        tokens: Of the definitions that the model is shown.
        full_tokens: Of all definitions of the catalog.
        saving: The share of `full_tokens` that is not sent.
    """

    tools_declared: int
    tools_loaded: int
    bytes: int
    tokens: int
    full_tokens: int
    saving: float

    def to_dict(self) -> dict[str, float]:
        """The figures by name, in order."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRequest:
    """What the next request of a bot's conversation will declare.

    Attributes:
        mode: The conversation's mode.
        strategy: How the provider is told of tools.
        tools_declared: The length of the tool list.
        tools_total: How many active tools the bot has.
        discovered: What the conversation has found, in order.
        tokens: Estimated, of the definitions that the model is shown.
        full_tokens: Estimated, of all definitions.
    """

    mode: Mode
    strategy: StrategyName
    tools_declared: int
    tools_total: int
    discovered: tuple[str, ...]
    tokens: int
    full_tokens: int


def planned_request(
    catalog: ToolCatalog,
    profile: ProviderProfile,
    *,
    config: ToolSearchConfig,
    discovered: Sequence[Tool] = (),
    max_tools: int | None = None,
) -> PlannedRequest:
    """The first request of a conversation in which these tools are discovered.

    Args:
        catalog: The tools.
        profile: The provider.
        config: The settings.
        discovered: Deferred tools, in the order they were found.
        max_tools: The longest list that every provider of the bot takes.

    Raises:
        SessionError: A tool has a name of tool search itself, and the provider cannot
            be sent the whole catalog.
    """
    notices: list[Notice] = []
    most = profile.max_tools if max_tools is None else max_tools
    try:
        session = _begun(catalog, profile, config, discovered, most)
    except SessionError as exc:
        # What a runner does: such a catalog is sent whole.
        notices.append(Notice("catalog_refused", str(exc)))
        full = config.model_copy(update={"tool_schema_mode": "full"})
        session = _begun(catalog, profile, full, discovered, most)
    return PlannedRequest(
        plan=session.plan(profile, phase="select"),
        decision=session.decision,
        notices=(*notices, *session.take_notices()),
    )


def figures_of(plan: RequestPlan, wire: bytes, catalog: ToolCatalog) -> RequestFigures:
    """The figures of a request over a catalog, its tool list being these bytes."""
    shown = [*plan.tools.loaded, *_referenced(plan)]
    tokens = sum(map(tool_tokens, shown))
    full_tokens = sum(map(tool_tokens, catalog.active))
    return RequestFigures(
        tools_declared=len(plan.tools),
        tools_loaded=len(shown),
        bytes=len(wire),
        tokens=tokens,
        full_tokens=full_tokens,
        saving=round(1 - tokens / full_tokens, 4) if full_tokens else 0.0,
    )


def next_request(
    catalog: ToolCatalog,
    config: BotConfig,
    provider: ProviderConfig,
    *,
    record: ConversationRecord | None,
) -> NextRequest:
    """The next request of a bot to one of its providers; changes nothing.

    Args:
        catalog: The tools.
        config: The bot.
        provider: Who would be asked.
        record: The conversation; None: it has not begun.
    """
    profile = profile_of(provider, config.profiles)
    known = [profile_of(entry, config.profiles) for entry in config.providers]
    most = min((each.max_tools for each in known if each.max_tools is not None), default=None)
    if record is None:
        settings = config.tool_search
        request = planned_request(catalog, profile, config=settings, max_tools=most)
        plan, mode = request.plan, request.decision.mode
    else:
        session = ToolSearchSession(
            catalog, config=config.tool_search, max_tools=most, record=record
        )
        plan, mode = session.plan(profile, phase="select"), session.decision.mode
    figures = figures_of(plan, b"", catalog)
    return NextRequest(
        mode=mode,
        strategy=plan.strategy,
        tools_declared=figures.tools_declared,
        tools_total=len(catalog.active),
        discovered=tuple(entry.name for entry in record.discoveries) if record else (),
        tokens=figures.tokens,
        full_tokens=figures.full_tokens,
    )


def _begun(
    catalog: ToolCatalog,
    profile: ProviderProfile,
    config: ToolSearchConfig,
    discovered: Sequence[Tool],
    max_tools: int | None,
) -> ToolSearchSession:
    session = ToolSearchSession(catalog, config=config, max_tools=max_tools)
    # Before the turn: what is found in a turn, some models are told of in the next only.
    session.adopt_discoveries(Discovery(tool=tool) for tool in discovered)
    session.begin_turn(_NEUTRAL_MESSAGE, profile=profile)
    return session


def _referenced(plan: RequestPlan) -> Iterator[Tool]:
    """Definitions that references show the model, declared or brought by them, each once."""
    declared = {entry.tool.name: entry.tool for entry in plan.tools if entry.deferred}
    shown: dict[str, Tool] = {}
    for message in plan.messages:
        for part in () if isinstance(message.content, str) else message.content:
            if isinstance(part, ReferencePart):
                shown |= {name: declared[name] for name in part.names if name in declared}
                shown |= {tool.name: tool for tool in part.tools}
    yield from shown.values()
