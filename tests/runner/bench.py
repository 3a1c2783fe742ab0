"""A bot on a test's bench: real SDKs, a stand-in server, tools that note their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tool_search import (
    ChatProvider,
    ExecutableTool,
    ProviderConfig,
    RunnerEvent,
    Tool,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider
from tool_search.core.messages import ContentPart, Message
from tool_search.testing import CapturedRequest, ModelCall, ModelReply, StandInServer

KEY = "sk-a-secret-of-the-test-0123456789"
SEARCHING = ToolSearchConfig(tool_schema_mode="tool_search")
PATIENCE_S = 60.0  # only for what hangs: a busy machine takes seconds for what takes none
_Event = TypeVar("_Event", bound=RunnerEvent)


def search(*queries: str) -> ModelReply:
    """A reply that searches, once a query."""
    return calling(*(ModelCall(name="tool_search", arguments={"query": q}) for q in queries))


def calling(*calls: ModelCall, text: str = "") -> ModelReply:
    """A reply with these calls."""
    return ModelReply(text=text, calls=calls)


def call(name: str, arguments: Mapping[str, Any] | str | None = None) -> ModelCall:
    """A call, whether the model is shown the tool or not."""
    return ModelCall(name=name, arguments=arguments or {}, hidden=True)


def say(text: str) -> ModelReply:
    """A reply in text."""
    return ModelReply(text=text)


FORECAST = ModelCall(name="get_forecast", arguments={"city": "Paris"})


def tool(name: str, description: str, *required: str, **more: Any) -> Tool:
    """A definition whose arguments are texts."""
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in required},
        "required": list(required),
    }
    return Tool(name=name, description=description, parameters=schema if required else {}, **more)


def some_tools() -> list[Tool]:
    """A core tool, and three to discover."""
    return [
        tool("get_time", "The time of day now.", always_load=True),
        tool("get_forecast", "Weather forecast of a city.", "city", kind="mcp", server="weather"),
        tool("send_mail", "Send an e-mail to somebody.", "to", kind="mcp", server="mail"),
        tool("convert_money", "Convert money between currencies.", "amount"),
    ]


def many_tools(count: int) -> list[Tool]:
    """So many tools, each found by its number and all by `gadget`."""
    return [
        tool(f"gadget_{n:03}", f"Runs the gadget of number {n:03}.", "part") for n in range(count)
    ]


def named(events: Iterable[RunnerEvent], kind: type[_Event]) -> list[_Event]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def kinds(events: Iterable[RunnerEvent]) -> list[str]:
    """The names of the events, deltas left out."""
    names = (type(event).__name__ for event in events)
    return [name for name in names if name != "TextDelta"]


def results(history: Sequence[Message]) -> list[Message]:
    """The tool results of a history."""
    return [message for message in history if message.role == "tool"]


def assert_paired(history: Sequence[Message]) -> None:
    """Each call has exactly one result, in call order and right behind the calls."""
    asked = [c.id for message in history for c in message.tool_calls]
    assert [message.tool_call_id for message in results(history)] == asked
    assert len(set(asked)) == len(asked)


async def settled() -> None:
    """Waits until no task but the test's own is left; the test fails where one stays."""
    async with asyncio.timeout(PATIENCE_S):
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.001)


async def until(condition: Callable[[], object]) -> None:
    """Waits until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.001)


@dataclass
class Bench:
    """One test's server, the providers it opened, and what its tools did.

    Attributes:
        server: Answers in every dialect.
        ran: The tools that were run, with their arguments, in order.
        stack: Closes the providers.
        may_refuse: The test means the server to refuse a request.
    """

    server: StandInServer
    stack: AsyncExitStack
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    may_refuse: bool = False

    async def provider(
        self, name: str, *, server: StandInServer | None = None, **settings: Any
    ) -> ChatProvider:
        """A provider of the kind its name begins with.

        `claude` goes by references, `glm` by Anthropic's format alone; `responses` by tool
        search, `kept` by that and replies the service keeps, `late` by additional tools;
        `gpt` is any other.
        """
        chosen = server or self.server
        is_claude = name.startswith(("claude", "bound", "glm"))
        address = chosen.anthropic_base_url if is_claude else chosen.openai_base_url
        common: dict[str, Any] = {"id": name, "base_url": address, "api_key_env": None}
        if name.startswith("claude"):
            common |= {"type": "anthropic", "model": "claude-sonnet-4-6", "strategy": "claude"}
        elif name.startswith("bound"):
            common |= {"type": "anthropic", "model": "claude-opus-5-5", "strategy": "claude"}
        elif name.startswith("glm"):
            common |= {"type": "anthropic", "model": "glm-5"}
        elif name.startswith(("responses", "kept", "late")):
            model = "gpt-5.2" if name.startswith("late") else "gpt-5.5"
            common |= {"type": "openai_responses", "strategy": "openai_responses", "model": model}
            common["previous_response_id"] = name.startswith("kept")
        else:
            common |= {"type": "openai_chat", "model": "gpt-5.4"}
        config = ProviderConfig(**{**common, **settings})
        made = build_provider(config, api_key=KEY, fallbacks=True)
        self.stack.push_async_callback(made.aclose)
        return made

    async def runner(
        self,
        *names: str,
        tools: Sequence[Tool | ExecutableTool] | None = None,
        providers: Mapping[str, ChatProvider] | None = None,
        **settings: Any,
    ) -> ToolSearchRunner:
        """A bot of these providers; without names it has `claude` and `gpt`."""
        if providers is None:
            providers = {name: await self.provider(name) for name in names or ("claude", "gpt")}
        made = [self.runnable(item) for item in (some_tools() if tools is None else tools)]
        return ToolSearchRunner(
            providers=providers, tools=made, **{"config": SEARCHING, "cooldown_s": 3600, **settings}
        )

    def runnable(self, item: Tool | ExecutableTool) -> ExecutableTool:
        """The tool, with a function that notes its calls where it has none."""
        if isinstance(item, ExecutableTool):
            return item

        async def run(**arguments: Any) -> str:
            self.ran.append((item.name, arguments))
            return f"{item.name} is done"

        return ExecutableTool(tool=item, function=run)

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """What arrived at the server."""
        return self.server.requests

    @property
    def asked(self) -> list[tuple[str, int | None]]:
        """The dialect and the status of each request."""
        short = {
            "anthropic": "claude",
            "openai_chat": "gpt",
            "openai_responses": "responses",
        }
        return [(short[request.dialect], request.status) for request in self.requests]


async def turn(
    runner: ToolSearchRunner, message: str | Sequence[ContentPart] = "Hello", **settings: Any
) -> list[RunnerEvent]:
    """The events of one turn."""
    async with asyncio.timeout(PATIENCE_S), aclosing(runner.run(message, **settings)) as events:
        return [event async for event in events]
