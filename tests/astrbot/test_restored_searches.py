"""Searches that the plugin writes into a history that was cut, and what services demand of them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.astrbot.bot import AstrBot, new_user
from tests.astrbot.loopback import Service, service
from tool_search.testing import ModelReply, ScriptedModel, StandInServer

ASK = "convert a length from metres to feet"
CUT = """
manager = bot.lifecycle.star_context.conversation_manager
umo = "probe:FriendMessage:{user}"
current = await manager.get_curr_conversation_id(umo)
await manager.update_conversation(umo, current, [
    {{"role": "user", "content": "a summary of what was said"}},
    {{"role": "assistant", "content": "so it was"}}])
"""


@pytest.fixture(scope="module")
def gemini() -> Iterator[Service]:
    """Gemini's own API, which greets."""
    part = {"text": "hello"}
    content = {"role": "model", "parts": [part]}
    said = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    with service(lambda _: said) as served:
        yield served


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot], gemini: Service) -> AstrBot:
    """40 tools; each test asks another provider after the history was cut."""
    providers = ("openai", "deepseek", "moonshot", "gemini3")
    return start_bot(providers=providers, tools=40, gemini=gemini.address)


def found_and_cut(bot: AstrBot) -> str:
    """Return a user whose tools were found, and whose history does not show it."""
    user = new_user()
    bot.set_runner(provider="openai", fallbacks=[])
    bot.say(ASK, user=user)
    bot.ask("run", code=CUT.format(user=user))
    return user


@pytest.mark.parametrize("provider", ["openai", "deepseek", "moonshot"])
def test_a_restored_search_has_the_reasoning_that_a_service_demands(
    bot: AstrBot, server: StandInServer, provider: str
) -> None:
    user = found_and_cut(bot)
    bot.set_runner(provider=provider)
    server.reset(model=ScriptedModel([ModelReply(text="hi"), ModelReply(text="bye")]))
    assert bot.say("hello there", user=user) == "hi"
    assert bot.say("thank you", user=user) == "bye"
    for request in server.requests:
        (call,) = [said for said in request.body["messages"] if said.get("tool_calls")]
        assert ("reasoning_content" in call) is (provider != "openai")
        assert "convert_length" in request.tool_names
    assert not server.violations


def test_a_restored_search_follows_a_change_of_provider(
    bot: AstrBot, server: StandInServer
) -> None:
    user = found_and_cut(bot)
    server.reset(model=ScriptedModel([ModelReply(text="hi"), ModelReply(text="bye")]))
    assert bot.say("hello there", user=user) == "hi"
    bot.set_runner(provider="moonshot")
    assert bot.say("thank you", user=user) == "bye"
    assert not server.violations


def test_a_restored_search_has_googles_text_in_place_of_a_signature(
    bot: AstrBot, server: StandInServer, gemini: Service
) -> None:
    user = found_and_cut(bot)
    bot.set_runner(provider="gemini3")
    gemini.asked.clear()
    bot.say("hello there", user=user)
    (_, body) = gemini.asked[-1]
    calls: list[dict[str, Any]] = [
        part
        for content in body["contents"]
        for part in content.get("parts", ())
        if "functionCall" in part
    ]
    (call,) = calls
    signature = call["thoughtSignature"].replace("-", "+").replace("_", "/")
    assert b64decode(signature) == b"skip_thought_signature_validator"
