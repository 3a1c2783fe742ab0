"""What searches teach in AstrBot, and what administrators see and erase of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.astrbot.bot import VERSION, AstrBot, new_user
from tool_search.testing import KeywordModel, ModelCall, ModelReply, ScriptedModel, StandInServer

ASK = "convert a length from metres to feet"
LENGTH = {"value": 1, "from_unit": "m", "to_unit": "ft"}


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One that has learned nothing yet."""
    settings = {"language": "en-US"}
    return start_bot(providers=("openai",), tools=40, settings=settings)


def scripted(*calls: ModelCall) -> ScriptedModel:
    """Return a model that makes these calls one after the other."""
    return ScriptedModel([*(ModelReply(calls=(call,)) for call in calls), ModelReply(text="done")])


def searched(query: str) -> ModelCall:
    """Return the call of a search."""
    return ModelCall(name="tool_search", arguments={"query": query})


def test_a_miss_about_something_else_teaches_a_group_nothing(
    bot: AstrBot, server: StandInServer
) -> None:
    """Under a persona, which has none of the tools that the first search was for."""
    group = new_user()
    call = ModelCall(name="convert_length", arguments=LENGTH)
    server.reset(model=scripted(searched("zyzzyva frobnication"), searched("length"), call))
    bot.say("find a zyzzyva, then convert a length", user="ann", group=group)
    learned = bot.say("/tool_search learned", user="boss")
    assert "convert_length: length" in learned
    assert "zyzzyva" not in learned


def test_what_was_learned_is_erased_by_tool(bot: AstrBot, server: StandInServer) -> None:
    call = ModelCall(name="convert_length", arguments=LENGTH)
    server.reset(model=scripted(searched("length of a room"), call))
    bot.say("hm", user=new_user())
    assert "convert_length" in bot.say("/tool_search learned", user="boss")
    assert "convert_length: " in bot.say("/tool_search forget convert_length", user="boss")
    assert "convert_length" not in bot.say("/tool_search learned", user="boss")
    assert "<tool>" in bot.say("/tool_search forget", user="boss")


def test_others_may_not_see_or_erase_it(bot: AstrBot, server: StandInServer) -> None:
    user = new_user()
    assert "Words" not in bot.say("/tool_search learned", user=user)
    assert "Forgotten" not in bot.say("/tool_search forget convert_length", user=user)


def test_a_test_finds_what_the_model_would_find(bot: AstrBot, server: StandInServer) -> None:
    """With what was learned, and without discovering anything."""
    call = ModelCall(name="convert_length", arguments=LENGTH)
    server.reset(model=scripted(searched("quux"), searched("quux length"), call))
    bot.say("/new", user="boss")
    bot.say("hm", user="boss")
    bot.say("/new", user="boss")
    assert "1. convert_length" in bot.say("/tool_search test quux", user="boss")
    server.reset(model=KeywordModel())
    bot.say("hello there", user="boss")
    assert "convert_length" not in server.requests[0].tool_names
    bot.say(ASK, user="boss")
    assert "Callable already: convert_length" in bot.say(
        "/tool_search test convert length", user="boss"
    )


@pytest.mark.skipif(VERSION < (4, 26), reason="4.26 was the first to guard tools")
def test_a_test_finds_what_its_user_may_call(bot: AstrBot, server: StandInServer) -> None:
    bot.ask("permit", tool="is_prime", who="admin")
    code = """
event = bot._event("", {user!r}, "")
event.role = {role!r}
return await bot._star().star_cls.commands.test(event, "is a number prime")
"""
    try:
        member = bot.ask("run", code=code.format(user=new_user(), role="member"))
        boss = bot.ask("run", code=code.format(user=new_user(), role="admin"))
    finally:
        bot.ask("permit", tool="is_prime", who="member")
    assert "is_prime" not in member
    assert "is_prime" in boss


@pytest.mark.skipif(VERSION < (4, 26), reason="4.26 was the first to guard tools")
def test_a_test_in_a_group_is_its_users_and_changes_nothing(
    bot: AstrBot, server: StandInServer
) -> None:
    """The last message was a member's, whose permissions and lessons are the conversation's."""
    bot.ask("permit", tool="is_prime", who="admin")
    try:
        server.reset(model=scripted())
        bot.say("hm", user="ann", group="testers")
        assert "is_prime" in bot.say(
            "/tool_search test is a number prime", user="boss", group="testers"
        )
        seen = bot.ask("run", code=LAST_USER)
    finally:
        bot.ask("permit", tool="is_prime", who="member")
    assert seen == "probe:ann"


LAST_USER = """
known = bot._star().star_cls.tool_search._conversations
return next(each.learned.user for (place, _), each in known.items() if "testers" in place)
"""


def test_what_astrbot_adds_to_a_message_is_not_searched_for(
    bot: AstrBot, server: StandInServer
) -> None:
    """A model may copy a whole message into a query; AstrBot ends it with date and time."""
    noted = f"{ASK}\n<system_reminder>Current datetime: 2026-11-23, Monday</system_reminder>"
    call = ModelCall(name="convert_length", arguments=LENGTH)
    server.reset(model=scripted(searched(noted), call))
    bot.say("hm", user=new_user())
    learned = bot.say("/tool_search learned", user="boss")
    assert "convert_length: " in learned
    assert "monday" not in learned
