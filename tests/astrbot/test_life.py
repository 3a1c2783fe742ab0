"""Restart, reload, mistakes of ours, and the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.astrbot.bot import AstrBot, lists
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests change it, in this order."""
    return start_bot(providers=("openai",), tools=40)


def test_a_restart_keeps_what_was_found(bot: AstrBot, server: StandInServer) -> None:
    """The saved history shows it."""
    bot.say(ASK)
    before = server.requests[-1].tool_names
    bot.stop()
    bot.start()
    server.reset()
    bot.say("hello there")
    assert lists(server.requests)[0] == before


def test_a_reload_wraps_nothing_twice(bot: AstrBot, server: StandInServer) -> None:
    """As often as the plugin is loaded."""
    bot.ask("reload")
    bot.ask("reload")
    assert bot.ask("state")["wrapped"] == 1
    assert "convert_length" in bot.say(ASK, user="after")


def test_a_mistake_of_ours_leaves_the_bot_its_tools(bot: AstrBot, server: StandInServer) -> None:
    """It answers with its full set, and the log says why."""
    bot.ask(
        "run",
        code="""
async def broken(*_):
    raise ZeroDivisionError("a mistake on purpose")
bot._star().star_cls.tool_search._prepare = broken
""",
    )
    assert "mcp convert_length" in bot.say(ASK, user="unlucky")
    assert len(server.requests[0].tool_names) == 40
    assert "tool_search" not in server.requests[0].tool_names
    assert "a mistake on purpose" in bot.log
    bot.ask("reload")


def test_a_missing_hook_filters_instead(bot: AstrBot, server: StandInServer) -> None:
    """An AstrBot whose provider has other methods."""
    bot.ask(
        "run",
        code="""
from astrbot.core.provider.sources import anthropic_source
bot.kept, anthropic_source.ProviderAnthropic = anthropic_source.ProviderAnthropic, object
""",
    )
    bot.ask("reload")
    assert "mcp convert_length" in bot.say(ASK, user="other")
    assert "this AstrBot is not as expected" in bot.log
    bot.ask(
        "run",
        code="""
from astrbot.core.provider.sources import anthropic_source
anthropic_source.ProviderAnthropic = bot.kept
""",
    )


def test_uninstalling_leaves_astrbot_as_it_was(bot: AstrBot, server: StandInServer) -> None:
    """Methods, modules and paths."""
    bot.ask("uninstall")
    state = bot.ask("state")
    assert state["untouched"]
    assert "astrbot_plugin_tool_search" not in state["library"]
    assert state["paths"] == []
    assert state["handlers"] == 0
    bot.say(ASK, user="alone")
    assert len(server.requests[0].tool_names) == 40
