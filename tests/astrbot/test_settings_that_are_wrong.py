"""Settings that cannot be meant, and settings that are saved in the middle of a conversation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.astrbot.bot import AstrBot, lists
from tests.astrbot.test_warnings import page
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests change its settings, in this order."""
    return start_bot(providers=("openai",), tools=40, settings={"max_results": 2})


def test_a_wrong_value_keeps_the_last_good_one_and_is_told(
    bot: AstrBot, server: StandInServer
) -> None:
    bot.ask("settings", changes={"max_results": 0, "always_loaded_tools": ["is_prime", "nope_*"]})
    bot.say(ASK, user="boss")
    first, second, *_ = lists(server.requests)
    assert "is_prime" in first
    assert len(second) <= len(first) + 2
    bot.say("/tool_search set language en-US", user="boss")
    status = bot.say("/tool_search status", user="boss")
    said = "max_results: 0 is not allowed; allowed: a whole number from 1 to 100; 2, the last good"
    assert said in status
    assert "always_loaded_tools without a tool: nope_*" in status
    assert page(bot, said)


def test_a_number_of_one_conversation_is_refused_with_its_range(
    bot: AstrBot, server: StandInServer
) -> None:
    answer = bot.say("/tool_search set max_results 0", user="boss")
    assert "max_results may be: a whole number from 1 to 100" in answer


def test_saved_settings_forget_nothing_of_a_conversation(
    bot: AstrBot, server: StandInServer
) -> None:
    """Its list stays as it was, also where AstrBot has cut the history meanwhile."""
    bot.ask("settings", changes={"max_results": 3, "always_loaded_tools": []})
    bot.say(ASK, user="keeper")
    before = server.requests[-1].tool_names
    bot.ask("run", code=CUT)
    bot.ask("settings", changes={"max_results": 4})
    server.reset()
    bot.say("hello there", user="keeper")
    assert "convert_length" in before
    assert server.requests[0].tool_names == before
    assert not server.violations


CUT = """
manager = bot.lifecycle.star_context.conversation_manager
umo = "probe:FriendMessage:keeper"
current = await manager.get_curr_conversation_id(umo)
await manager.update_conversation(umo, current, [
    {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
"""


def test_dropped_tools_stay_dropped_after_a_reload(bot: AstrBot, server: StandInServer) -> None:
    bot.say("/new", user="boss")
    bot.say(ASK, user="boss")
    bot.say("/tool_search reset", user="boss")
    bot.ask("reload")
    server.reset()
    bot.say("hello there", user="boss")
    assert "convert_length" not in server.requests[0].tool_names


def test_the_help_of_the_command_is_chinese_first(bot: AstrBot) -> None:
    lines = bot.ask(
        "run",
        code="""
from astrbot.core.star.star_handler import star_handlers_registry
return [h.desc for h in star_handlers_registry
        if "tool_search" in h.handler_module_path and h.handler_name in ("status", "test", "set")]
""",
    )
    assert len(lines) == 3
    assert all("\u4e00" <= line[0] <= "\u9fff" for line in lines)
