"""A bot with 120 tools answers as it should, on every kind of provider."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.astrbot.bot import ODD, AstrBot, lists, new_user
from tool_search.catalog.schema.vocabulary import wire_key
from tool_search.testing import ModelCall, ModelReply, ModelView, ScriptedModel, StandInServer

CORE = ("future_task", "send_message_to_user", "tool_search")
ASK = "convert a length from metres to feet"


def test_a_tool_is_searched_called_and_answered(
    generic_bot: AstrBot, server: StandInServer
) -> None:
    """Three requests: a search, the call of what it found, the answer."""
    answer = generic_bot.say(ASK, user=new_user())
    assert "convert_length" in answer
    first, second, third = lists(server.requests)
    assert first == CORE
    assert second[: len(first)] == first
    assert "convert_length" in second
    assert third == second
    assert not server.violations


def test_the_library_is_the_one_in_the_zip(generic_bot: AstrBot) -> None:
    """So that nothing needs publishing."""
    assert "astrbot_plugin_tool_search/library" in generic_bot.ask("state")["library"]


def test_a_tool_of_an_mcp_server_is_deferred_and_runs(
    generic_bot: AstrBot, server: StandInServer
) -> None:
    answer = generic_bot.say(ASK, user=new_user())
    assert "mcp convert_length" in answer


def test_a_decorated_tool_of_a_plugin_runs(generic_bot: AstrBot, server: StandInServer) -> None:
    answer = generic_bot.say("greet the person named Ann by name", user=new_user())
    assert "decorated greet_person" in answer


@pytest.mark.parametrize("kind", ["generic_bot", "claude_bot"])
@pytest.mark.parametrize("name", ODD)
def test_a_tool_with_a_key_that_claude_refuses_is_called_with_it(
    kind: str, name: str, request: pytest.FixtureRequest, server: StandInServer
) -> None:
    """No request is refused for it, whoever writes the list; the tool gets its own key."""
    bot: AstrBot = request.getfixturevalue(kind)
    seen: list[str] = []

    def end(view: ModelView) -> ModelReply:
        seen.extend(result.text for result in view.results)
        return ModelReply(text="done")

    angle = {"value": 1, "from_unit": "degree", "to_unit": "degree"}
    given = {**(angle if name == "convert_angle" else {"radius": 1}), wire_key("$note"): "n"}
    call = ModelReply(calls=(ModelCall(name=name, arguments=given, hidden=True),))
    search = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": name}),))
    server.reset(model=ScriptedModel([search, call, end]))
    assert bot.say(f"use {name}", user=new_user()) == "done"
    assert not server.violations
    assert '"$note": "n"' in seen[-1]
    assert f'"{wire_key("$note")}"'.encode() in server.requests[-1].raw_body


def test_what_was_found_stays_for_later_messages(
    generic_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    generic_bot.say(ASK, user=user)
    generic_bot.say("hello there", user=user)
    generic_bot.say("how many days between two dates", user=user)
    generic_bot.say(ASK, user=user)
    sent = lists(server.requests)
    assert all(late[: len(early)] == early for early, late in pairwise(sent))
    assert "convert_length" in sent[-1]
    assert not server.violations


def test_a_claude_model_gets_the_whole_catalog_deferred(
    claude_bot: AstrBot, server: StandInServer
) -> None:
    """The list's bytes never change, and a search result is references."""
    user = new_user()
    arguments = {"value": 1, "from_unit": "m", "to_unit": "ft"}
    search = ModelCall(name="tool_search", arguments={"query": "convert a length"})
    found = ModelCall(name="convert_length", arguments=arguments)
    replies = (ModelReply(calls=(search,)), ModelReply(calls=(found,)), ModelReply(text="so"))
    server.reset(model=ScriptedModel([*replies, ModelReply(text="bye")]))
    assert claude_bot.say(ASK, user=user) == "so"
    assert claude_bot.say("thank you", user=user) == "bye"
    assert b"mcp convert_length" in server.requests[2].raw_body
    assert {request.dialect for request in server.requests} == {"anthropic"}
    assert len({request.tools_bytes for request in server.requests}) == 1
    tools = server.requests[0].body["tools"]
    assert len(tools) == 121
    assert [tool["name"] for tool in tools if not tool.get("defer_loading")] == list(CORE)
    assert b'"tool_reference"' in server.requests[1].raw_body
    assert not server.violations
