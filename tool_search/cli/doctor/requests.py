"""The first request of a conversation, and the size of its tool list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import Discovery, ModeDecision, tool_tokens
from tool_search.core.messages import Notice, ReferencePart, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import SessionError
from tool_search.runner.session.session import ToolSearchSession

__all__ = [
    "PlannedRequest",
    "ToolListFigures",
    "figures_of",
    "planned_request",
]

# Any message starts a turn; none of it is printed.
_NEUTRAL_MESSAGE = "Hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request, with the decision and the notices of its planning.

    Attributes:
        plan: The request.
        decision: The conversation's mode.
        notices: Notices for the operator.
    """

    plan: RequestPlan
    decision: ModeDecision
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListFigures:
    """The size of a request's tool list; tokens are estimates.

    Attributes:
        tools_declared: The length of the list.
        tools_loaded: The number of definitions in the model's view: those that are not
            deferred, and those that a reference of the history loads.
        bytes: UTF-8 bytes of the list on the wire.
        tokens: The tokens of the definitions in the model's view.
        full_tokens: The tokens of all definitions of the catalog.
        saving: The share of `full_tokens` that is not sent.
    """

    tools_declared: int
    tools_loaded: int
    bytes: int
    tokens: int
    full_tokens: int
    saving: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, in order."""
        return asdict(self)


def planned_request(
    catalog: ToolCatalog,
    profile: ProviderProfile,
    *,
    config: ToolSearchConfig,
    discovered: Sequence[Tool] = (),
    max_tools: int | None = None,
) -> PlannedRequest:
    """Return the first request of a conversation in which these tools are discovered.

    Args:
        catalog: The tools.
        profile: The provider.
        config: The settings.
        discovered: Deferred tools, in the order of discovery.
        max_tools: The longest list that every provider of the bot accepts.

    Raises:
        SessionError: A tool has a name that tool search uses, and the catalog is too long
            to be sent whole.
    """
    notices: list[Notice] = []
    most = profile.max_tools if max_tools is None else max_tools
    try:
        session = _begin_session(catalog, profile, config, discovered, most)
    except SessionError as exc:
        # As in a runner: such a catalog is sent whole.
        notices.append(Notice("catalog_refused", str(exc)))
        full = config.model_copy(update={"tool_schema_mode": "full"})
        session = _begin_session(catalog, profile, full, discovered, most)
    return PlannedRequest(
        plan=session.plan(profile, phase="select"),
        decision=session.decision,
        notices=(*notices, *session.take_notices()),
    )


def figures_of(plan: RequestPlan, wire: bytes, catalog: ToolCatalog) -> ToolListFigures:
    """Return the figures of a request over a catalog, its tool list being these bytes."""
    shown = [*plan.tools.loaded, *_referenced_tools(plan)]
    tokens = sum(map(tool_tokens, shown))
    full_tokens = sum(map(tool_tokens, catalog.active))
    return ToolListFigures(
        tools_declared=len(plan.tools),
        tools_loaded=len(shown),
        bytes=len(wire),
        tokens=tokens,
        full_tokens=full_tokens,
        saving=round(1 - tokens / full_tokens, 4) if full_tokens else 0.0,
    )


def _begin_session(
    catalog: ToolCatalog,
    profile: ProviderProfile,
    config: ToolSearchConfig,
    discovered: Sequence[Tool],
    max_tools: int | None,
) -> ToolSearchSession:
    session = ToolSearchSession(catalog, config=config, max_tools=max_tools)
    # Before the turn: with some models, a tool found in a turn is declared in the next.
    session.adopt_discoveries(Discovery(tool=tool) for tool in discovered)
    session.begin_turn(_NEUTRAL_MESSAGE, profile=profile)
    return session


def _referenced_tools(plan: RequestPlan) -> Iterator[Tool]:
    """Yield each definition that references load, once."""
    declared = {entry.tool.name: entry.tool for entry in plan.tools if entry.deferred}
    shown: dict[str, Tool] = {}
    for message in plan.messages:
        for part in () if isinstance(message.content, str) else message.content:
            if isinstance(part, ReferencePart):
                shown |= {name: declared[name] for name in part.names if name in declared}
                shown |= {tool.name: tool for tool in part.tools}
    yield from shown.values()
