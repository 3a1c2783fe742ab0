"""Lists of conversations that go on: a limit, tools that are switched off, plugins as groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.astrbot.bot import AstrBot, lists, new_user
from tool_search.testing import (
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

ASK = "convert a length from metres to feet"
CORE = ("future_task", "send_message_to_user", "tool_search")
LENGTH = {"value": 1, "from_unit": "m", "to_unit": "ft"}
AREA = {"value": 1, "from_unit": "m2", "to_unit": "cm2"}
QUERIES = ("convert length", "prime number", "solve equation", "days between dates", "area")


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """At most six found tools are declared."""
    return start_bot(providers=("openai",), tools=60, settings={"max_discovered": 6})


def calling(name: str, arguments: dict[str, Any]) -> ModelReply:
    """Return a reply that calls one tool, which may not be declared."""
    return ModelReply(calls=(ModelCall(name=name, arguments=arguments, hidden=True),))


def test_a_full_list_ends_in_a_tool_that_calls_the_others(
    bot: AstrBot, server: StandInServer
) -> None:
    """Nothing is forgotten, and the list stays a prefix of the next."""
    seen: list[str] = []

    def end(view: ModelView) -> ModelReply:
        seen.extend(result.text for result in view.results)
        return ModelReply(text="done")

    searches = [calling("tool_search", {"query": query}) for query in QUERIES]
    by_name = calling("call_tool", {"name": "convert_area", "arguments": AREA})
    server.reset(model=ScriptedModel([*searches, by_name, end]))
    assert bot.say("many things", user="longtime") == "done"
    sent = lists(server.requests)
    assert all(late[: len(early) - 1] == early[:-1] for early, late in pairwise(sent))
    assert len(sent[-1]) == len(CORE) + 6 + 1
    assert sent[-1][-1] == "call_tool"
    assert "convert_area" not in sent[-1]
    assert "mcp convert_area" in seen[-1]
    assert not server.violations


CUT = """
manager = bot.lifecycle.star_context.conversation_manager
umo = "probe:FriendMessage:longtime"
current = await manager.get_curr_conversation_id(umo)
found = await manager.get_conversation(umo, current)
import json
history = json.loads(found.history)
last = [m for m in history if m.get("role") != "_checkpoint"][-3:]
await manager.update_conversation(umo, current, [{"role": "user", "content": "go on"}, *last])
"""


def test_a_full_list_begins_anew_where_astrbot_cuts_the_history(
    bot: AstrBot, server: StandInServer
) -> None:
    server.reset(model=KeywordModel())
    bot.say("hello there", user="longtime")
    full = server.requests[-1].tool_names
    bot.ask("run", code=CUT)
    bot.say("hello there", user="longtime")
    begun = server.requests[-1].tool_names
    assert len(begun) < len(full)
    assert begun[: len(CORE)] == CORE
    assert not server.violations


def test_a_tool_that_is_switched_off_stays_declared_and_is_refused(
    bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    server.reset(model=KeywordModel())
    bot.say(ASK, user=user)
    before = server.requests[-1].tool_names
    seen: list[str] = []

    def end(view: ModelView) -> ModelReply:
        seen.extend(result.text for result in view.results)
        return ModelReply(text="done")

    bot.ask("switch", tool="convert_length", active=False)
    try:
        server.reset(
            model=ScriptedModel(
                [
                    calling("convert_length", LENGTH),
                    calling("tool_search", {"query": "convert length"}),
                    end,
                ]
            )
        )
        assert bot.say("again", user=user) == "done"
        assert server.requests[0].tool_names == before
        assert "mcp convert_length" not in seen[0]
        assert '"name":"convert_length"' not in seen[-1].replace('": "', '":"')
        assert "Switched off in AstrBot: convert_length" in english_status(bot)
        bot.say("/new", user=user)
        server.reset(model=KeywordModel())
        bot.say("hello there", user=user)
        assert server.requests[0].tool_names == CORE
    finally:
        bot.ask("switch", tool="convert_length", active=True)
    assert not server.violations


def english_status(bot: AstrBot) -> str:
    """Return the status in English."""
    bot.say("/tool_search set language en-US", user="boss")
    return bot.say("/tool_search status", user="boss")


def test_a_plugin_is_a_group_of_tools(bot: AstrBot, server: StandInServer) -> None:
    """The search tool counts all that can be found, and results name the plugin."""
    seen: list[str] = []

    def end(view: ModelView) -> ModelReply:
        seen.extend(result.text for result in view.results)
        return ModelReply(text="done")

    search = calling("tool_search", {"query": "greet a person by name"})
    server.reset(model=ScriptedModel([search, end]))
    bot.say("hm", user=new_user())
    (tool,) = [
        each["function"]
        for each in server.requests[0].body["tools"]
        if each["function"]["name"] == "tool_search"
    ]
    assert '"astrbot_plugin_toolbox" (35)' in tool["description"]
    assert '"toolbox" (23)' in tool["description"]
    assert '"name":"greet_person"' in seen[-1]
    assert '"server":"astrbot_plugin_toolbox"' in seen[-1]
    bot.ask("settings", changes={"always_loaded_tools": ["astrbot_plugin_toolbox:*"]})
    try:
        server.reset(model=KeywordModel())
        bot.say("hello there", user=new_user())
        names = server.requests[0].tool_names
        assert len(names) == 38
        assert "greet_person" in names
    finally:
        bot.ask("settings", changes={"always_loaded_tools": []})
