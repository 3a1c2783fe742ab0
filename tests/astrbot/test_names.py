"""Tools with names that no provider takes: a search names them as the list does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.astrbot.bot import HAS_RESPONSES, AstrBot, new_user
from tests.services.rules import xai
from tool_search.testing import KeywordModel, StandInServer

PROVIDERS = ("openai", "claude", *(("responses",) if HAS_RESPONSES else ()))
ASKED = {
    "查询天气": "查询北京的天气",
    "отправить_письмо": "отправить письмо по электронной почте",
    "parcel.track": "track a parcel",
}
NAMED = """
from astrbot.core.agent.tool import FunctionTool
class Named(FunctionTool):
    async def call(self, context, **arguments):
        return f"named {self.name}"
schema = {"type": "object", "properties": {"where": {"type": "string"}}}
said = {
    "查询天气": "查询某个城市的天气预报",
    "отправить_письмо": "Отправляет письмо по электронной почте",
    "parcel.track": "Tracks a parcel on its way.",
}
manager = bot.lifecycle.provider_manager.llm_tools
for name, description in said.items():
    tool = Named(name=name, description=description, parameters=schema)
    tool.handler_module_path = "data.plugins.astrbot_plugin_toolbox.main"
    manager.func_list.append(tool)
"""
STRANGE = """
from astrbot.core.agent.tool import FunctionTool
manager = bot.lifecycle.provider_manager.llm_tools
for name, schema in {"line\\nbreak": {"type": "object"}, "a_violin": {"type": "string"}}.items():
    tool = FunctionTool(name=name, description="Strange.", parameters=schema)
    tool.handler_module_path = "data.plugins.astrbot_plugin_toolbox.main"
    manager.func_list.append(tool)
"""


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> Iterator[AstrBot]:
    settings = {"native_claude": "on", "native_openai": "on"}
    bot = start_bot(providers=PROVIDERS, tools=40, settings=settings)
    bot.ask("run", code=NAMED)
    yield bot
    bot.stop()


@pytest.mark.parametrize(
    ("provider", "name"), [*zip(PROVIDERS, ASKED, strict=False), ("openai", "parcel.track")]
)
def test_a_found_tool_has_one_name_in_the_result_and_the_list(
    bot: AstrBot, server: StandInServer, name: str, provider: str
) -> None:
    """Otherwise a model calls a name that the provider refuses in the next request."""
    user = new_user()
    assert f"named {name}" in bot.say(ASKED[name], user=user, provider=provider)
    (saved,) = [
        json.loads(said["content"])["matches"]
        for said in bot.ask("history", user=user)
        if said["role"] == "tool" and "matches" in str(said["content"])
    ]
    (called,) = [
        call["function"]["name"]
        for said in bot.ask("history", user=user)
        for call in said.get("tool_calls") or ()
        if call["function"]["name"] != "tool_search"
    ]
    assert called in [match["name"] for match in saved]
    assert not server.violations


def test_another_provider_and_a_restart_know_the_tool_that_was_found(
    bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    bot.say(ASKED["查询天气"], user=user, provider="openai")
    before = server.requests[-1].tool_names
    for provider in PROVIDERS:
        server.reset(model=KeywordModel())
        assert bot.say("hello there", user=user, provider=provider)
        assert not server.violations
    bot.ask("reload")
    (bot.root / "data/plugin_data/astrbot_plugin_tool_search/conversations.json").unlink()
    bot.ask("reload")
    server.reset(model=KeywordModel())
    bot.say("hello there", user=user, provider="openai")
    assert set(server.requests[0].tool_names) >= set(before)
    assert not server.violations


BROKEN = """
run = bot.library("adapters.astrbot.run").AstrBotRun
bot.plan, run.plan = run.plan, lambda *_: 1 / 0
"""
MENDED = 'bot.library("adapters.astrbot.run").AstrBotRun.plan = bot.plan'


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tool_stays_in_the_list_after_a_mistake_of_ours(
    bot: AstrBot, server: StandInServer, provider: str
) -> None:
    """Under the name that the provider takes."""
    bot.ask("run", code=BROKEN)
    try:
        answer = bot.say(ASKED["parcel.track"], user=new_user(), provider=provider)
    finally:
        bot.ask("run", code=MENDED)
    assert "named parcel.track" in answer
    assert "tool_search" not in server.requests[0].tool_names
    assert not server.violations


def test_a_tool_that_no_provider_takes_is_warned_of_once(
    bot: AstrBot, server: StandInServer
) -> None:
    """With each message, it would drive all other warnings out of `status`."""
    bot.ask("run", code=STRANGE)
    for _ in range(3):
        bot.say("hello there", user=new_user(), provider="openai")
    status = bot.say("/tool_search status", user="boss")
    assert status.count("'a_violin'") == 1
    assert status.count("'line\\nbreak'") == 1
    assert not server.violations


def test_a_search_and_a_call_where_the_service_keeps_the_search_tools_name(
    start_bot: Callable[..., AstrBot],
) -> None:
    names = ("grok", *(("grok-responses",) if HAS_RESPONSES else ()))
    with xai().running() as service:
        bot = start_bot(providers=names, tools=40, grok=f"{service.url}/v1")
        for name in names:
            user = new_user()
            for _ in range(2):
                answer = bot.say("Please use count_words", user=user, provider=name)
                assert answer.startswith("answer"), (answer, service.refused, service.bodies)
            called = [
                call["function"]["name"]
                for said in bot.ask("history", user=user)
                for call in said.get("tool_calls") or ()
            ]
            assert called == ["tool_search", "count_words"] * 2
        bot.stop()
    assert service.refused == []
