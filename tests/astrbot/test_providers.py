"""Providers change, fail, or do not know tool search, and nothing found is lost."""

from __future__ import annotations

import pytest

from tests.astrbot.bot import AstrBot, new_user
from tool_search.testing import Endpoint, Fault, ModelReply, ScriptedModel, StandInServer

ASK = "convert a length from metres to feet"


def test_another_provider_takes_over_in_the_middle_of_a_run(
    claude_bot: AstrBot, server: StandInServer
) -> None:
    server.faults.add(Fault(dialect="anthropic", skip=1, times=None, status=529))
    answer = claude_bot.say(ASK, user=new_user())
    assert "mcp convert_length" in answer
    dialects = [request.dialect for request in server.requests]
    assert dialects[0] == "anthropic"
    assert dialects[-2:] == ["openai_chat", "openai_chat"]
    last = server.requests[-1]
    assert "convert_length" in last.tool_names
    assert len(last.tool_names) < 20
    assert b"tool_reference" not in last.raw_body
    assert not server.violations


@pytest.mark.parametrize(
    "fault",
    [
        Fault(dialect="anthropic", skip=1, times=None, status=529),
        Fault(dialect="anthropic", skip=1, times=None, status=529, after_events=1),
        Fault(dialect="anthropic", skip=1, times=None, broken=True, after_events="tool_call"),
    ],
    ids=["at once", "in the stream", "in a call"],
)
def test_another_provider_takes_over_in_the_middle_of_a_streamed_run(
    claude_bot: AstrBot, server: StandInServer, fault: Fault
) -> None:
    server.faults.add(fault)
    assert "mcp convert_length" in claude_bot.say(ASK, user=new_user(), streaming=True)
    assert all(request.stream for request in server.requests)
    assert server.requests[0].dialect == "anthropic"
    assert server.requests[-1].dialect == "openai_chat"
    assert "convert_length" in server.requests[-1].tool_names
    assert not server.violations


def test_the_saved_history_is_neutral(claude_bot: AstrBot, server: StandInServer) -> None:
    user = new_user()
    claude_bot.say(ASK, user=user)
    saved = claude_bot.ask("history", user=user)
    assert "tool_reference" not in str(saved)
    assert any("matches" in str(said.get("content")) for said in saved)


def test_what_a_compaction_removed_is_shown_again_once(
    claude_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    claude_bot.say(ASK, user=user)
    claude_bot.ask(
        "run",
        code=f"""
manager = bot.lifecycle.star_context.conversation_manager
umo = "probe:FriendMessage:{user}"
history = [{{"role": "user", "content": "hi"}}, {{"role": "assistant", "content": "hello"}}]
await manager.update_conversation(umo, await manager.get_curr_conversation_id(umo), history)
""",
    )
    server.reset(model=ScriptedModel([ModelReply(text="one"), ModelReply(text="two")]))
    claude_bot.say("and now", user=user)
    claude_bot.say("and then", user=user)
    first, second = server.requests
    assert b'"tool_name":"convert_length"' in first.raw_body
    assert second.raw_body.count(b"restored_") == first.raw_body.count(b"restored_") == 2
    assert not server.violations


def test_an_endpoint_that_does_not_know_tool_search_gets_a_filtered_list(
    claude_bot: AstrBot, server: StandInServer
) -> None:
    server.reset(endpoint=Endpoint(supports_tool_search=False))
    answer = claude_bot.say(ASK, user=new_user())
    assert "mcp convert_length" in answer
    assert {request.dialect for request in server.requests} == {"anthropic"}
    assert sum(b"defer_loading" in request.raw_body for request in server.requests) == 1
    assert "does not know tool search" in claude_bot.log
    server.reset(endpoint=Endpoint())
    claude_bot.ask("reload")


def test_native_search_can_be_switched_off(claude_bot: AstrBot, server: StandInServer) -> None:
    claude_bot.ask("settings", changes={"native_claude": "off"})
    try:
        assert "mcp convert_length" in claude_bot.say(ASK, user=new_user())
    finally:
        claude_bot.ask("settings", changes={"native_claude": "on"})
    assert all(b"defer_loading" not in request.raw_body for request in server.requests)
    assert len(server.requests[0].tool_names) == 3
    assert not server.violations
