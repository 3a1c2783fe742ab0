"""The demo conversation: two languages, two providers, one failure, nothing lost."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from tool_search.adapters import build_provider
from tool_search.cli.demo.accounting import Ledger, RecordedProvider
from tool_search.cli.demo.script import TURNS, script
from tool_search.config.bot import ProviderConfig
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.aside import closing
from tool_search.errors import ConfigurationError, ProviderError
from tool_search.providers.base import ChatProvider, ReplyEvent
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    ToolFinished,
    ToolsDiscovered,
)
from tool_search.runner.execution import executable_tools
from tool_search.runner.runner import ToolSearchRunner
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import Fault, StandInServer

__all__ = ["Demo", "UserTurn", "prepared_demo"]

_CLAUDE, _GPT = "claude-sonnet-4-6", "gpt-5.4"
_SYSTEM_PROMPT = "You are a helpful assistant. Answer in the user's language, briefly."
# The stand-in's sixth Claude request is the answer to the second turn.
_OVERLOAD = Fault(dialect="anthropic", status=529, skip=5, times=None, after_events=5)
_LIVE_FAILURE_TURN = 2


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A message of the user; the events up to the next one are the bot's."""

    text: str


@dataclass(slots=True, kw_only=True)
class Demo:
    """The state of the demo; complete at the end of the conversation.

    Attributes:
        ledger: The figures of every request.
        discovered: The discovered tools, in order.
        switches: The changes of provider, with the tools discovered before each.
        calls: The tool calls, with the provider whose model made each.
        answer: The last answer.
    """

    ledger: Ledger
    discovered: list[str] = field(default_factory=list)
    switches: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    answer: str = ""

    def note(self, event: RunnerEvent) -> None:
        """Record one event."""
        if isinstance(event, ToolsDiscovered):
            self.discovered += event.names
        elif isinstance(event, ProviderSwitched):
            self.switches.append(
                {
                    "from": event.from_provider,
                    "to": event.to_provider,
                    "cause": event.cause,
                    "request": len(self.ledger.requests),
                    "discovered_before": list(self.discovered),
                }
            )
        elif isinstance(event, ToolFinished):
            asked = self.ledger.requests[-1]
            self.calls.append(
                {
                    "tool": event.tool,
                    "provider": asked.provider,
                    "strategy": asked.strategy,
                    "request": len(self.ledger.requests) - 1,
                    "is_error": event.is_error,
                }
            )
        elif isinstance(event, Done):
            self.answer = event.answer

    @property
    def carried_over(self) -> tuple[str, ...]:
        """The tools discovered before the last switch and called with success after it."""
        if not self.switches:
            return ()
        switch = self.switches[-1]
        after = (call for call in self.calls if call["request"] >= switch["request"])
        called = dict.fromkeys(call["tool"] for call in after if not call["is_error"])
        return tuple(name for name in called if name in switch["discovered_before"])

    def to_dict(self) -> dict[str, Any]:
        """Return the demo as `tool-search demo --json` prints it."""
        return {
            "requests": [asdict(request) for request in self.ledger.requests],
            "discovered": self.discovered,
            "switches": self.switches,
            "calls": self.calls,
            "saving": round(self.ledger.saving, 4),
            "answer": self.answer,
        }


async def _conversation(
    demo: Demo, runner: ToolSearchRunner, *, broken: _Breakable | None = None
) -> AsyncGenerator[UserTurn | RunnerEvent, None]:
    """Yield the conversation, turn by turn; record each event in `demo` before."""
    for number, text in enumerate(TURNS):
        if broken is not None:
            broken.is_broken = number == _LIVE_FAILURE_TURN
        yield UserTurn(text)
        async for event in runner.run(text):
            demo.note(event)
            yield event


@asynccontextmanager
async def prepared_demo(
    *, live: bool, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[tuple[Demo, AsyncGenerator[UserTurn | RunnerEvent, None]], None]:
    """Prepare the demo on the stand-in server, or on real providers if `live`.

    Raises:
        ConfigurationError: `live` is True and the environment has no API key.
    """
    async with AsyncExitStack() as stack:
        if live:
            configs = _live_providers(environment)
        else:
            server = stack.enter_context(StandInServer(model=script()))
            server.faults.add(_OVERLOAD)
            configs = _stand_in_providers(server)
        made: dict[str, ChatProvider] = {}
        for config in configs:
            key = config.api_key(environment)
            provider = build_provider(config, api_key=key, fallbacks=len(configs) > 1)
            await stack.enter_async_context(provider)
            made[config.id] = provider
        broken = None
        if live and len(made) > 1:
            broken = made["claude"] = _Breakable("claude", made["claude"])
        runner, demo = _runner(made)
        yield demo, _conversation(demo, runner, broken=broken)


def _runner(providers: Mapping[str, ChatProvider]) -> tuple[ToolSearchRunner, Demo]:
    tools = executable_tools(TOOLBOX)
    ledger = Ledger(ToolCatalog(item.tool for item in tools))
    recorded = {name: RecordedProvider(name, p, ledger) for name, p in providers.items()}
    runner = ToolSearchRunner(
        providers=recorded,
        tools=tools,
        config=ToolSearchConfig(tool_schema_mode="auto"),
        system_prompt=_SYSTEM_PROMPT,
        cooldown_s=3600,
    )
    return runner, Demo(ledger=ledger)


def _stand_in_providers(server: StandInServer) -> tuple[ProviderConfig, ...]:
    return (
        ProviderConfig(
            id="claude",
            type="anthropic",
            model=_CLAUDE,
            api_key_env=None,
            base_url=server.anthropic_base_url,
            strategy="claude",
        ),
        ProviderConfig(
            id="gpt",
            type="openai_chat",
            model=_GPT,
            api_key_env=None,
            base_url=server.openai_base_url,
        ),
    )


def _live_providers(environment: Mapping[str, str]) -> tuple[ProviderConfig, ...]:
    known = (
        ProviderConfig(id="claude", type="anthropic", model=_CLAUDE),
        ProviderConfig(id="gpt", type="openai_chat", model=_GPT),
    )
    found = tuple(c for c in known if c.api_key_env and environment.get(c.api_key_env))
    if not found:
        names = " or ".join(str(config.api_key_env) for config in known)
        raise ConfigurationError(f"--live needs {names} in the environment; set one or both")
    return found


class _Breakable:
    """A provider that fails on demand."""

    def __init__(self, name: str, provider: ChatProvider) -> None:
        self.profile: ProviderProfile = provider.profile
        self.is_broken = False
        self._name = name
        self._provider = provider

    async def stream(self, plan: RequestPlan) -> AsyncGenerator[ReplyEvent, None]:
        if self.is_broken:
            raise ProviderError("a failure made for the demo", provider=self._name, status=529)
        self._provider.profile = self.profile
        async with closing(self._provider.stream(plan)) as events:
            async for event in events:
                yield event
