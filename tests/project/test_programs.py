"""The programs that the documents show work as they are, on a server in the vendors' place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from tool_search import (
    Bot,
    Done,
    Message,
    ToolFinished,
    ToolSearchRunner,
    ToolSearchSession,
    build_provider,
    open_bot,
    profile_for,
)
from tool_search.adapters.anthropic import AnthropicProvider
from tool_search.adapters.openai_chat import OpenAIChatProvider, from_wire, to_wire
from tool_search.adapters.openai_responses import OpenAIResponsesProvider
from tool_search.core.messages import RequestPlan
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

FORECAST = ModelReply(
    calls=(ModelCall(name="get_forecast", arguments={"city": "Paris"}, hidden=True),)
)
SEARCH = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "convert miles"}),))
CONVERT = ModelReply(
    calls=(
        ModelCall(
            name="convert_length", arguments={"value": 42.195, "from_unit": "km", "to_unit": "mile"}
        ),
    )
)
ANSWER = ModelReply(text="Rain, 9 °C.")


def get_forecast(city: str) -> str:
    """Return the weather forecast for a city."""
    return f"{city}: rain, 9 °C"


def send_email(to: str, text: str) -> str:
    """Send an email to one recipient."""
    return f"sent {len(text)} characters to {to}"


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInServer]:
    """A server that answers in the place of Anthropic and OpenAI, keys included."""
    with StandInServer(model=ScriptedModel([FORECAST, ANSWER])) as server:
        for kind, url in (
            (AnthropicProvider, server.anthropic_base_url),
            (OpenAIChatProvider, server.openai_base_url),
            (OpenAIResponsesProvider, server.openai_base_url),
        ):
            monkeypatch.setattr(kind, "_sdk", replace(kind._sdk, base_url=url))
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, "sk-of-a-test")
        yield server


async def test_1_a_bot_from_yaml_answers(
    vendors: StandInServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendors.reset(model=ScriptedModel([SEARCH, CONVERT, ModelReply(text="26.2 miles.")]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.yaml").write_text(
        "providers:\n  - {id: claude, type: anthropic, model: claude-sonnet-4-6}\n"
        "tools: [tool_search.sources.toolbox]\nstore: {path: bot.db}\n"
    )
    async with open_bot("bot.yaml") as bot:
        answer = await bot.ask("How many miles are 42.195 km?")
    assert answer == "26.2 miles."
    assert "26.218" in json.dumps(vendors.requests[-1].body["messages"][-1])
    assert (tmp_path / "bot.db").is_file()


async def test_2_a_bot_without_a_file_answers(vendors: StandInServer) -> None:
    bot = Bot(["anthropic:claude-sonnet-4-6", "openai:gpt-5.4"], tools=[get_forecast, send_email])
    async with bot:
        events = [event async for event in bot.run("Weather in Paris?", conversation="me")]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.answer, done.provider) == ("Rain, 9 °C.", "anthropic:claude-sonnet-4-6")
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.content == "Paris: rain, 9 °C"
    assert vendors.requests


async def test_3_a_runner_takes_strings_and_functions(vendors: StandInServer) -> None:
    provider = build_provider("anthropic:claude-sonnet-4-6")
    runner = ToolSearchRunner(providers=["openai:gpt-5.4", provider], tools=[get_forecast])
    runner.use("anthropic:claude-sonnet-4-6", conversation="b")
    vendors.reset(model=ScriptedModel([FORECAST, ANSWER] * 2))
    ends = []
    for conversation in ("a", "b"):
        events = [event async for event in runner.run("Weather?", conversation=conversation)]
        ends.append(events[-1])
    await runner.aclose()
    await provider.aclose()
    assert [done.provider for done in ends if isinstance(done, Done)] == [
        "openai:gpt-5.4",
        "anthropic:claude-sonnet-4-6",
    ]
    assert [request.dialect for request in vendors.requests] == [
        "openai_responses", "openai_responses", "anthropic", "anthropic",
    ]  # fmt: skip


async def test_4_a_loop_of_ones_own_runs_its_calls(vendors: StandInServer) -> None:
    profile = profile_for("openai-chat", "gpt-5.4")
    async with AsyncOpenAI(base_url=vendors.openai_base_url, api_key="unused") as client:

        async def my_request(plan: RequestPlan) -> Message:
            reply = await client.chat.completions.create(**to_wire(plan, profile, stream=False))
            return from_wire(reply.model_dump(), plan, profile).message

        session = ToolSearchSession(tools=[get_forecast])
        session.begin_turn("Weather in Paris?", profile=profile)
        while True:
            plan = session.plan(profile)
            calls = session.accept(await my_request(plan))
            if not calls:
                break
            for call in calls:
                await session.run(call)
    assert [message.text for message in session.history[-2:]] == [
        "Paris: rain, 9 °C",
        "Rain, 9 °C.",
    ]
