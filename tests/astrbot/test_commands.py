"""What administrators can ask the plugin."""

from __future__ import annotations

from tests.astrbot.bot import AstrBot, lists
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"


def test_status_says_what_was_found_and_saved(generic_bot: AstrBot, server: StandInServer) -> None:
    """In the conversation's language."""
    generic_bot.say("/new", user="boss")
    assert "120" in generic_bot.say("/tool_search status", user="boss")
    generic_bot.say(ASK, user="boss")
    status = generic_bot.say("/tool_search status", user="boss")
    assert "Mode: tool_search (above_threshold)" in status
    assert "Strategy: generic" in status
    assert "convert_length" in status
    assert "118 wait to be found" in status


def test_status_is_answered_in_the_bots_language(
    generic_bot: AstrBot, server: StandInServer
) -> None:
    """Which is the user's, where no other is set."""
    generic_bot.say("/new", user="boss")
    generic_bot.say("你好，今天过得怎么样", user="boss")
    assert "模式" in generic_bot.say("/tool_search status", user="boss")


def test_test_shows_what_a_search_finds(generic_bot: AstrBot, server: StandInServer) -> None:
    """Nothing is discovered by it, and no model is asked."""
    assert "convert_length" in generic_bot.say("/tool_search test convert length", user="boss")
    assert not server.requests


def test_reset_forgets_what_was_found(generic_bot: AstrBot, server: StandInServer) -> None:
    """Though the history still shows the search."""
    generic_bot.say("/new", user="boss")
    generic_bot.say(ASK, user="boss")
    assert any(digit in generic_bot.say("/tool_search reset", user="boss") for digit in "12345")
    server.reset()
    generic_bot.say("hello there", user="boss")
    assert "convert_length" not in lists(server.requests)[0]


def test_others_may_not_ask(generic_bot: AstrBot, server: StandInServer) -> None:
    """AstrBot answers them that they lack the permission."""
    assert "Mode" not in generic_bot.say("/tool_search status", user="somebody")
