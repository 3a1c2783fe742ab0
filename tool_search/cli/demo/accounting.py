"""The tokens of each request of a conversation, and the kept part of its prompt prefix.

The figures come from the plans, so they are the same for every provider. A prompt is the text
that the model sees, in the order in which providers render it: tools, system text, messages,
with a referenced definition in the place of its reference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from time import perf_counter

from tool_search.catalog.schema.declared import schema_json
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool, estimate_tokens
from tool_search.core.messages import ContentPart, Message, ReferencePart, RequestPlan, TextPart
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.aside import closing
from tool_search.core.values.json import compact_json
from tool_search.providers.base import ChatProvider, ReplyEvent

__all__ = ["Ledger", "RecordedProvider", "RequestFigures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures:
    """One request in figures; tokens are estimates.

    Attributes:
        provider: The provider's `id`.
        strategy: The strategy that planned it.
        tools_declared: The length of the tool list.
        tools_loaded: The number of definitions that the model sees.
        tokens: The tokens of the whole prompt.
        full_tokens: The tokens of the same prompt with every definition of the catalog.
        prefix_kept: The share of this provider's previous prompt that the new one
            begins with, from 0 to 1; None for its first.
    """

    provider: str
    strategy: str
    tools_declared: int
    tools_loaded: int
    tokens: int
    full_tokens: int
    prefix_kept: float | None


@dataclass(slots=True)
class Ledger:
    """The figures of a conversation's requests, in the order they were sent.

    Attributes:
        catalog: The tools that the mode `full` would send with each request.
        requests: The figures.
        durations_s: Seconds until the last byte of each reply, or until it failed.
    """

    catalog: ToolCatalog
    requests: list[RequestFigures] = field(default_factory=list)
    durations_s: list[float] = field(default_factory=list)
    _prompts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def saving(self) -> float:
        """The share of tokens saved compared with the mode `full`, from 0 to 1."""
        full = sum(request.full_tokens for request in self.requests)
        return 1 - sum(request.tokens for request in self.requests) / full if full else 0.0

    def add(self, provider: str, plan: RequestPlan) -> None:
        """Add one request."""
        tools = [_tool_text(tool) for tool in plan.tools.loaded]
        referenced = list(_find_referenced(plan))
        prompt = [*tools, plan.system, *_messages(plan)]
        # Where every tool is declared, none has to be listed.
        system = plan.system.removesuffix(plan.listing)
        spoken = sum(map(estimate_tokens, (system, *_messages(plan, expanded=False))))
        catalog = sum(estimate_tokens(_tool_text(tool)) for tool in self.catalog.active)
        self.requests.append(
            RequestFigures(
                provider=provider,
                strategy=plan.strategy,
                tools_declared=len(plan.tools),
                tools_loaded=len(tools) + len(referenced),
                tokens=sum(map(estimate_tokens, prompt)),
                full_tokens=spoken + catalog,
                prefix_kept=_kept_share(self._prompts.get(provider), prompt),
            )
        )
        self._prompts[provider] = prompt


class RecordedProvider:
    """A provider whose requests are recorded in a ledger.

    Args:
        name: The provider's `id`.
        provider: The provider that answers.
        ledger: The ledger for the figures.
    """

    def __init__(self, name: str, provider: ChatProvider, ledger: Ledger) -> None:
        self._name = name
        self._provider = provider
        self._ledger = ledger

    @property
    def profile(self) -> ProviderProfile:
        """The provider's profile."""
        return self._provider.profile

    @profile.setter
    def profile(self, learned: ProviderProfile) -> None:
        """Set the profile of the provider itself."""
        self._provider.profile = learned

    async def stream(self, plan: RequestPlan) -> AsyncGenerator[ReplyEvent, None]:
        """Stream the provider's reply, and record the request."""
        self._ledger.add(self._name, plan)
        began = perf_counter()
        try:
            async with closing(self._provider.stream(plan)) as events:
                async for event in events:
                    yield event
        finally:
            self._ledger.durations_s.append(perf_counter() - began)


def _tool_text(tool: Tool) -> str:
    return compact_json([tool.name, tool.description, schema_json(tool)])


def _find_referenced(plan: RequestPlan) -> Iterator[str]:
    """Return the names in references, each once, in order of first occurrence."""
    parts = (part for message in plan.messages for part in _parts(message))
    names = (name for part in parts if isinstance(part, ReferencePart) for name in part.names)
    return iter(dict.fromkeys(names))


def _messages(plan: RequestPlan, *, expanded: bool = True) -> list[str]:
    """Return each message as text, with definitions in the place of their references."""
    definitions = {entry.tool.name: entry.tool for entry in plan.tools if entry.deferred}
    shown = []
    for message in plan.messages:
        pieces: list[str] = [message.role]
        for part in _parts(message):
            if isinstance(part, ReferencePart):
                known = [definitions.pop(n) for n in part.names if n in definitions]
                pieces += [_tool_text(tool) for tool in known] if expanded else part.names
            elif isinstance(part, TextPart):
                pieces.append(part.text)
        pieces += [f"{call.name}{call.arguments}" for call in message.tool_calls]
        shown.append("\n".join(pieces))
    return shown


def _parts(message: Message) -> tuple[ContentPart, ...]:
    content = message.content
    return (TextPart(content),) if isinstance(content, str) else content


def _kept_share(before: list[str] | None, now: list[str]) -> float | None:
    if before is None:
        return None
    same = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        same += estimate_tokens(old)
    return round(same / max(1, sum(map(estimate_tokens, before))), 4)
