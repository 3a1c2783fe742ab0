"""The contract of every chat adapter: the table of adapters, and helpers to ask one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import anthropic as anthropic_sdk
import openai as openai_sdk

from tool_search.adapters import anthropic, openai_chat, openai_responses
from tool_search.adapters.anthropic import AnthropicProvider
from tool_search.adapters.openai_chat import OpenAIChatProvider
from tool_search.adapters.openai_responses import OpenAIResponsesProvider
from tool_search.adapters.sdk.connection import tls_context
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DeclaredTool, Message, RequestPlan, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect, StrategyChoice
from tool_search.providers.base import ReplyEnd, ReplyEvent
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import StandInServer

KEY = "sk-a-secret-of-the-test-0123456789"
Provider = AnthropicProvider | OpenAIChatProvider | OpenAIResponsesProvider
Client = anthropic_sdk.AsyncAnthropic | openai_sdk.AsyncOpenAI

WEATHER = Tool(
    name="get_weather",
    description="The weather — погода, 天气.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)
QUESTION = Message(role="user", content="What is the weather in Paris?")


def http_library(sdk: ModuleType) -> ModuleType:
    """Return the HTTP library of an SDK: httpx, or httpx2 for newer SDKs."""
    client = sdk.DefaultAsyncHttpxClient.__mro__[1]
    return sys.modules[client.__module__.partition(".")[0]]


class Responses:
    """The responses that a client has got.

    Attributes:
        seen: In the order they came.
        came: Set once there is one.
    """

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.came = asyncio.Event()

    async def note(self, response: Any) -> None:
        """Take one in."""
        self.seen.append(response)
        self.came.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter under the contract.

    Attributes:
        dialect: Its wire format.
        model: A model that has everything.
        module: The adapter's module.
        sdk: The SDK's module.
        provider: Its provider class.
        base_url: A stand-in server's address for it.
        limit: The field that limits a reply's length.
        history: The field that holds the messages.
        strategy: Its name in a configuration, for an endpoint that is not the vendor's.
    """

    dialect: Dialect
    model: str
    module: ModuleType
    sdk: ModuleType
    provider: Callable[..., Provider]
    base_url: Callable[[StandInServer], str]
    limit: str = "max_tokens"
    history: str = "messages"
    strategy: StrategyChoice = "auto"

    def profile(self, server: StandInServer | None = None) -> ProviderProfile:
        """Return the profile of the model, at the server or at its vendor."""
        url = self.base_url(server) if server else None
        return profile_for(self.dialect, self.model, base_url=url, strategy=self.strategy)

    def connect(self, server: StandInServer, **options: Any) -> Provider:
        """Return a provider that asks the server."""
        settings = {"profile": self.profile(server), "base_url": self.base_url(server)}
        return self.provider(**{"api_key": KEY, "id": "tested", **settings, **options})

    def client(self, server: StandInServer, responses: Responses) -> Client:
        """Return a client of the SDK that notes the responses it gets."""
        kind = self.sdk.DefaultAsyncHttpxClient
        http = kind(event_hooks={"response": [responses.note]}, verify=tls_context(kind))
        make: Callable[..., Client] = (
            self.sdk.AsyncAnthropic if self.dialect == "anthropic" else self.sdk.AsyncOpenAI
        )
        url = self.base_url(server)
        return make(api_key=KEY, base_url=url, http_client=http, max_retries=0, timeout=5.0)


ADAPTERS = (
    Adapter(
        dialect="anthropic",
        model="claude-sonnet-4-6",
        module=anthropic,
        sdk=anthropic_sdk,
        provider=AnthropicProvider,
        base_url=lambda server: server.anthropic_base_url,
    ),
    Adapter(
        dialect="openai_chat",
        model="gpt-5.4",
        module=openai_chat,
        sdk=openai_sdk,
        provider=OpenAIChatProvider,
        base_url=lambda server: server.openai_base_url,
    ),
    Adapter(
        dialect="openai_responses",
        model="gpt-5.4",
        module=openai_responses,
        sdk=openai_sdk,
        provider=OpenAIResponsesProvider,
        base_url=lambda server: server.openai_base_url,
        limit="max_output_tokens",
        history="input",
        # Else the model's reasoning is not asked for.
        strategy="openai_responses",
    ),
)


def plan_of(*messages: Message, tools: tuple[Tool, ...] = (WEATHER,), **more: Any) -> RequestPlan:
    """Return a generic plan of these messages, or of a question."""
    settings: Mapping[str, Any] = {"strategy": "generic", "system": "You are helpful.", **more}
    return RequestPlan(
        tools=ToolList(map(DeclaredTool, tools)), messages=messages or (QUESTION,), **settings
    )


async def events_of(provider: Provider, plan: RequestPlan) -> list[ReplyEvent]:
    """Return the events of one reply; the provider is closed afterwards."""
    async with provider, aclosing(provider.stream(plan)) as stream:
        return [event async for event in stream]


async def reply_of(provider: Provider, plan: RequestPlan) -> ReplyEnd:
    """Return the end of one reply."""
    last = (await events_of(provider, plan))[-1]
    assert isinstance(last, ReplyEnd)
    return last
