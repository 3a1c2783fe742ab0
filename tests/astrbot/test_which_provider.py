"""The provider that AstrBot asks first is the one that the plugin looks at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.astrbot.bot import VERSION, AstrBot, new_user
from tool_search.testing import Fault, StandInServer

ASK = "convert a length from metres to feet"
PICTURE = """
from astrbot.core.message.components import Image
from pathlib import Path
from PIL import Image as Picture
path = Path("dot.png")
Picture.new("RGB", (8, 8)).save(path)
event = bot._event({ask!r}, {user!r}, "")
event.message_obj.message.append(Image.fromFileSystem(str(path.resolve())))
(scheduler,) = bot.lifecycle.pipeline_scheduler_mapping.values()
await scheduler.execute(event)
return event.sent
"""


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """The default provider reads no pictures and calls no tools."""
    settings = {"native_claude": "on"}
    return start_bot(providers=("plain", "claude", "openai"), tools=40, settings=settings)


def test_a_chosen_provider_searches_whatever_the_default_can(
    bot: AstrBot, server: StandInServer
) -> None:
    answer = bot.say(ASK, user="boss", provider="claude")
    assert "mcp convert_length" in answer
    deferred = [tool for tool in server.requests[0].body["tools"] if tool.get("defer_loading")]
    assert len(deferred) == 38
    assert "Last request: claude (claude-sonnet-4-6), 41 tools" in bot.say(
        "/tool_search status", user="boss"
    )
    assert not server.violations


def test_a_provider_without_tools_hears_nothing_of_a_search(
    bot: AstrBot, server: StandInServer
) -> None:
    bot.say("hello there", user=new_user())
    (request,) = server.requests
    assert not request.tool_names
    assert b"tool_search" not in request.raw_body


def test_a_fallback_after_a_provider_without_tools_gets_a_search(
    bot: AstrBot, server: StandInServer
) -> None:
    server.faults.add(Fault(dialect="openai_chat", times=None, status=500))
    bot.say("hello there", user=new_user())
    last = server.requests[-1]
    assert last.dialect == "anthropic"
    assert [tool["name"] for tool in last.body["tools"] if not tool.get("defer_loading")] == [
        "future_task",
        "send_message_to_user",
        "tool_search",
    ]


@pytest.mark.skipif(VERSION < (4, 26), reason="4.25 asks no fallback for the sake of a picture")
def test_a_picture_goes_to_a_provider_that_reads_it(bot: AstrBot, server: StandInServer) -> None:
    bot.set_runner(fallbacks=["claude"])
    try:
        bot.ask("run", code=PICTURE.format(ask=ASK, user=new_user()))
    finally:
        bot.set_runner(fallbacks=["claude", "openai"])
    assert {request.dialect for request in server.requests} == {"anthropic"}
    assert "tool_search" in server.requests[0].tool_names
    assert not server.violations


@pytest.mark.skipif(VERSION >= (4, 26), reason="newer releases ask a fallback that reads it")
def test_a_picture_stays_with_a_provider_that_reads_none(
    bot: AstrBot, server: StandInServer
) -> None:
    bot.ask("run", code=PICTURE.format(ask=ASK, user=new_user()))
    (request,) = server.requests
    assert request.dialect == "openai_chat"
    assert b"tool_search" not in request.raw_body


def test_status_names_the_next_strategy_of_each_provider(
    bot: AstrBot, server: StandInServer
) -> None:
    status = bot.say("/tool_search status", user="boss")
    assert "Next request to claude: claude" in status
    assert "Next request to openai: generic" in status
