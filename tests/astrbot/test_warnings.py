"""Warnings are where operators look: on the WebUI's log page and in `status`."""

from __future__ import annotations

import pytest

from tests.astrbot.bot import VERSION, AstrBot
from tool_search.testing import StandInServer

WARN = """
import logging
log = logging.getLogger(bot.library("adapters.astrbot.plugin").__name__)
for number in range({count}):
    log.warning("{text} %s", number)
log.info("an aside {text}")
"""
LEVEL = """
from astrbot.core import LogManager
LogManager.set_plugin_log_level("astrbot_plugin_tool_search", {level!r})
"""


def page(bot: AstrBot, text: str) -> list[str]:
    """Return the lines of the log page with a text."""
    return [entry["data"] for entry in bot.ask("log_page") if text in entry["data"]]


def test_a_warning_is_on_the_log_page_once(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.ask("run", code=WARN.format(count=1, text="trouble with a library"))
    assert len(page(small_bot, "trouble with a library 0")) == 1
    assert len(page(small_bot, "an aside trouble with a library")) == 1


@pytest.mark.skipif(VERSION < (4, 29), reason="4.29 was the first with a level for each plugin")
def test_the_plugins_log_level_counts(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.ask("run", code=LEVEL.format(level="ERROR"))
    try:
        small_bot.ask("run", code=WARN.format(count=1, text="quiet trouble"))
    finally:
        small_bot.ask("run", code=LEVEL.format(level=None))
    assert not page(small_bot, "quiet trouble")
    assert "quiet trouble 0" in small_bot.say("/tool_search status", user="boss")


def test_status_has_the_last_ten(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.ask("run", code=WARN.format(count=12, text="much trouble"))
    status = small_bot.say("/tool_search status", user="boss")
    assert [f"much trouble {n}\n" in f"{status}\n" for n in range(12)] == [False] * 2 + [True] * 10
