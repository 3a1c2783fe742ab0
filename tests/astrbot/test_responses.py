"""OpenAI's own tool search, over AstrBot's Responses provider."""

from __future__ import annotations

from typing import Any

import pytest

from tests.astrbot.bot import HAS_RESPONSES, AstrBot, new_user
from tool_search.testing import (
    CapturedRequest,
    Endpoint,
    Fault,
    ModelCall,
    ModelReply,
    ScriptedModel,
    StandInServer,
)

pytestmark = pytest.mark.skipif(not HAS_RESPONSES, reason="this AstrBot has no such provider")
ASK = "convert a length from metres to feet"


def items(request: CapturedRequest, kind: str) -> list[dict[str, Any]]:
    """Return the items of one kind in a request's input."""
    return [item for item in request.body["input"] if item.get("type") == kind]


def test_a_search_is_the_services_own_and_its_list_never_changes(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    assert "mcp convert_length" in responses_bot.say(ASK, user=user)
    responses_bot.say("hello there", user=user)
    assert {request.dialect for request in server.requests} == {"openai_responses"}
    assert len({request.tools_bytes for request in server.requests}) == 1
    kinds = {tool["type"] for tool in server.requests[0].body["tools"]}
    assert kinds == {"function", "tool_search"}
    last = server.requests[-1]
    call, output = items(last, "tool_search_call")[0], items(last, "tool_search_output")[0]
    assert call["call_id"] == output["call_id"]
    assert "convert_length" in [tool["name"] for tool in output["tools"]]
    run = items(last, "function_call")[0]
    assert run["namespace"] == run["name"] == "convert_length"
    assert not server.violations


def test_what_is_sent_begins_with_what_was_sent(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    responses_bot.say(ASK, user=user)
    responses_bot.say("how many days between two dates", user=user)
    inputs = [request.body["input"] for request in server.requests]
    shorter = inputs[2]
    assert len(inputs) > 4
    assert all(later[: len(shorter)] == shorter for later in inputs[3:])


def test_a_streamed_search_is_the_services_own_too(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    assert "mcp convert_length" in responses_bot.say(ASK, user=new_user(), streaming=True)
    assert server.requests[-1].stream
    assert items(server.requests[-1], "tool_search_output")
    assert not server.violations


def test_the_saved_history_has_no_item_of_the_services(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    responses_bot.say(ASK, user=user)
    saved = str(responses_bot.ask("history", user=user))
    assert "tool_search_call" not in saved
    assert "additional_tools" not in saved
    assert "matches" in saved


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_claude_takes_over_with_what_openai_found(
    responses_bot: AstrBot, server: StandInServer, *, streaming: bool
) -> None:
    server.faults.add(Fault(dialect="openai_responses", skip=1, times=None, status=500))
    answer = responses_bot.say(ASK, user=new_user(), streaming=streaming)
    assert "mcp convert_length" in answer
    assert server.requests[0].dialect == "openai_responses"
    last = server.requests[-1]
    assert last.dialect == "anthropic"
    assert b'"tool_name":"convert_length"' in last.raw_body
    assert not server.violations


def test_openai_takes_over_with_what_claude_found(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    server.faults.add(Fault(dialect="openai_responses", times=None, status=500))
    responses_bot.say(ASK, user=user)
    server.faults.clear()
    server.reset()
    responses_bot.say("hello there", user=user)
    output = items(server.requests[-1], "tool_search_output")[0]
    assert "convert_length" in [tool["name"] for tool in output["tools"]]
    assert not server.violations


def test_a_tool_called_without_a_search_is_brought_before_its_call(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    """In an item of its own, so that the call finds it."""
    call = ModelCall(name="is_prime", arguments={"number": 7}, hidden=True)
    server.reset(model=ScriptedModel([ModelReply(calls=(call,)), ModelReply(text="so")]))
    assert responses_bot.say("hm", user=new_user()) == "so"
    kinds = [item["type"] for item in server.requests[-1].body["input"]]
    assert kinds[-3:] == ["additional_tools", "function_call", "function_call_output"]
    assert not server.violations


def test_what_another_plugin_adds_is_in_the_list(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    responses_bot.say("hello there with a late tool", user=new_user())
    late = server.requests[-1].body["tools"][-1]
    assert (late["type"], late["name"]) == ("function", "a_late_tool")
    assert not server.violations


def test_an_endpoint_without_tool_search_gets_a_filtered_list_at_once(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    """AstrBot would take the tools away altogether."""
    server.reset(endpoint=Endpoint(supports_tool_search=False))
    try:
        assert "mcp convert_length" in responses_bot.say(ASK, user=new_user())
    finally:
        server.reset(endpoint=Endpoint())
        responses_bot.ask("reload")
    assert "does not know tool search" in responses_bot.log


def test_it_can_be_switched_off_for_one_conversation(
    responses_bot: AstrBot, server: StandInServer
) -> None:
    responses_bot.say("/tool_search set native_openai off", user="boss")
    responses_bot.say(ASK, user="boss")
    responses_bot.say("/tool_search set native_openai default", user="boss")
    assert len(server.requests) == 3
    assert all(b'"tool_search_output"' not in request.raw_body for request in server.requests)
    assert "convert_length" in server.requests[-1].tool_names
    server.reset()
    responses_bot.say("hello there", user="boss")
    assert items(server.requests[0], "tool_search_output")
    assert not server.violations
