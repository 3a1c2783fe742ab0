"""The plugin's commands for administrators."""

from __future__ import annotations

import re

from tests.astrbot.bot import AstrBot, lists
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"


def test_status_says_what_was_found_and_saved(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.say("/new", user="boss")
    before = small_bot.say("/tool_search status", user="boss")
    assert "38" in before
    assert "AstrBot 内置工具" in before
    small_bot.say(ASK, user="boss")
    status = small_bot.say("/tool_search status", user="boss")
    assert "Mode: tool_search (above_threshold)" in status
    assert "Strategy: generic" in status
    assert "convert_length" in status
    assert "38 wait to be found" in status
    assert "Always sent: future_task, send_message_to_user" in status
    assert "Last request: openai (gpt-5.4)" in status
    assert "Next request to openai: generic" in status
    assert re.search(r"Last search: .+ → .*convert_length", status)
    assert re.search(r"Saved since the bot started: about [1-9]\d+ tokens in \d+ requests", status)
    assert "Declared in the last request: future_task, send_message_to_user, tool_search" in status


def test_status_is_answered_in_the_bots_language(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.say("/new", user="boss")
    small_bot.say("你好，今天过得怎么样", user="boss")
    assert "模式" in small_bot.say("/tool_search status", user="boss")


def test_test_shows_what_a_search_finds(small_bot: AstrBot, server: StandInServer) -> None:
    assert "convert_length" in small_bot.say("/tool_search test convert length", user="boss")
    assert not server.requests


def test_reset_forgets_what_was_found(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.say("/new", user="boss")
    small_bot.say(ASK, user="boss")
    assert re.search("[1-9]", small_bot.say("/tool_search reset", user="boss"))
    server.reset()
    small_bot.say("hello there", user="boss")
    assert "convert_length" not in lists(server.requests)[0]


def test_others_may_not_ask(small_bot: AstrBot, server: StandInServer) -> None:
    assert "Mode" not in small_bot.say("/tool_search status", user="somebody")
