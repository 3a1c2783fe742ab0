"""Settings of one conversation, and places at which AstrBot has the plugin switched off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.astrbot.bot import AstrBot, lists, new_user
from tool_search.testing import StandInServer

PLUGIN = "astrbot_plugin_tool_search"
ASK = "convert a length from metres to feet"


@pytest.fixture(autouse=True)
def _nothing_set(small_bot: AstrBot) -> Iterator[None]:
    """Each test leaves the administrator's conversation as it was."""
    small_bot.say("/new", user="boss")
    yield
    for setting in ("tool_schema_mode", "max_results", "language"):
        small_bot.say(f"/tool_search set {setting} default", user="boss")


def test_a_mode_holds_in_one_conversation(small_bot: AstrBot, server: StandInServer) -> None:
    """From its next message on; what was found before is found again at the end of it."""
    small_bot.say(ASK, user="boss")
    assert "full" in small_bot.say("/tool_search mode full", user="boss")
    server.reset()
    assert "mcp convert_length" in small_bot.say(ASK, user="boss")
    assert len(server.requests[0].tool_names) == 40
    server.reset()
    small_bot.say(ASK, user=new_user())
    assert "tool_search" in server.requests[0].tool_names
    small_bot.say("/tool_search mode default", user="boss")
    server.reset()
    small_bot.say("hello there", user="boss")
    assert "tool_search" in server.requests[0].tool_names
    assert "convert_length" in server.requests[0].tool_names
    assert not server.violations


def test_other_settings_hold_there_too(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.say("/tool_search set max_results 1", user="boss")
    small_bot.say(ASK, user="boss")
    first, second, *_ = lists(server.requests)
    assert len(second) == len(first) + 1
    small_bot.say("/tool_search set language ru-RU", user="boss")
    assert "Режим" in small_bot.say("/tool_search status", user="boss")
    shown = small_bot.say("/tool_search set", user="boss")
    assert "max_results = 1" in shown
    assert "language = ru-RU" in shown


@pytest.mark.parametrize("value", ["quick", "skills_like"])
def test_a_value_that_is_not_allowed_is_refused(
    small_bot: AstrBot, server: StandInServer, value: str
) -> None:
    assert "tool_search, full" in small_bot.say(f"/tool_search mode {value}", user="boss")
    small_bot.say("hello there", user="boss")
    assert "tool_search" in server.requests[0].tool_names


def test_users_set_nothing(small_bot: AstrBot, server: StandInServer) -> None:
    user = new_user()
    small_bot.say("/tool_search mode full", user=user)
    server.reset()
    small_bot.say("hello there", user=user)
    assert "tool_search" in server.requests[0].tool_names


def test_a_conversation_with_the_plugin_off_has_every_tool(
    small_bot: AstrBot, server: StandInServer
) -> None:
    """As the WebUI has it; the hook at the start of agents must not bring it back."""
    user = new_user()
    umo = f"probe:FriendMessage:{user}"
    kept = {umo: {"enabled_plugins": [], "disabled_plugins": [PLUGIN]}}
    code = f"from astrbot.core import sp; await sp.session_put({umo!r}, 'session_plugin_config', "
    small_bot.ask("run", code=f"{code}{kept!r})")
    assert "mcp convert_length" in small_bot.say(ASK, user=user)
    assert len(server.requests[0].tool_names) == 40
    assert "tool_search" not in server.requests[0].tool_names


def test_a_configuration_without_the_plugin_has_every_tool(
    small_bot: AstrBot, server: StandInServer
) -> None:
    """Its list of plugins holds for all conversations under it."""
    small_bot.ask("configure", changes={"plugin_set": ["astrbot_plugin_toolbox"]})
    try:
        small_bot.say(ASK, user=new_user())
    finally:
        small_bot.ask("configure", changes={"plugin_set": ["*"]})
    assert len(server.requests[0].tool_names) == 40
    assert "tool_search" not in server.requests[0].tool_names
