"""Everything that AstrBot does around tools goes on working."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.astrbot.bot import VERSION, AstrBot, lists, new_user
from tool_search.testing import (
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

CORE = ("future_task", "send_message_to_user", "tool_search")
ASK = "convert a length from metres to feet"
GUARDED = pytest.mark.skipif(VERSION < (4, 26), reason="4.26 was the first to guard tools")


def calling(name: str, arguments: dict[str, Any]) -> ModelReply:
    """Return a reply that calls one tool, which may not be shown."""
    return ModelReply(calls=(ModelCall(name=name, arguments=arguments, hidden=True),))


def ending(seen: list[str]) -> Callable[[ModelView], ModelReply]:
    """Return the last step of a script: keeps the results that the model reads."""

    def step(view: ModelView) -> ModelReply:
        seen.extend(result.text for result in view.results)
        return ModelReply(text="done")

    return step


def test_a_streamed_reply_is_the_same(small_bot: AstrBot, server: StandInServer) -> None:
    plain = small_bot.say(ASK, user=new_user(), streaming=False)
    streamed = small_bot.say(ASK, user=new_user(), streaming=True)
    assert plain.split("{")[0] in streamed
    assert {request.stream for request in server.requests} == {True, False}
    assert not server.violations


def test_a_claude_reply_is_streamed_too(claude_bot: AstrBot, server: StandInServer) -> None:
    seen: list[str] = []
    arguments = {"value": 1, "from_unit": "m", "to_unit": "ft"}
    search = calling("tool_search", {"query": "convert a length"})
    call = calling("convert_length", arguments)
    server.reset(model=ScriptedModel([search, call, ending(seen)]))
    assert claude_bot.say(ASK, user=new_user(), streaming=True) == "done"
    assert "mcp convert_length" in seen[-1]
    assert b'"tool_reference"' in server.requests[-1].raw_body
    assert all(request.stream for request in server.requests)
    assert not server.violations


def test_reset_and_new_start_without_discoveries(small_bot: AstrBot, server: StandInServer) -> None:
    user = new_user()
    for command in ("/reset", "/new"):
        small_bot.say(ASK, user=user)
        small_bot.say(command, user=user)
        server.reset()
        small_bot.say("hello there", user=user)
        assert lists(server.requests)[0] == CORE


def test_two_users_at_once_find_for_themselves(small_bot: AstrBot, server: StandInServer) -> None:
    scripts = {
        "metres": [calling("tool_search", {"query": "length", "limit": 1}), ModelReply(text="one")],
        "prime": [calling("tool_search", {"query": "prime", "limit": 1}), ModelReply(text="two")],
    }
    server.reset(model=ScriptedModel(turns=scripts))
    answers = small_bot.ask(
        "say_together",
        messages=[{"text": text, "user": new_user()} for text in ("in metres", "is it prime")],
    )
    assert answers == [["one"], ["two"]]
    found = {request.tool_names[len(CORE) :] for request in server.requests}
    assert len(found) == 3
    assert {len(names) for names in found} == {0, 1}


def test_a_group_shares_its_conversation(small_bot: AstrBot, server: StandInServer) -> None:
    group = new_user()
    small_bot.say(ASK, user="ann", group=group)
    server.reset()
    small_bot.say("hello there", user="bob", group=group)
    assert "convert_length" in server.requests[0].tool_names


def test_a_tool_that_a_plugin_adds_after_us_is_core(
    small_bot: AstrBot, claude_bot: AstrBot, server: StandInServer
) -> None:
    small_bot.say("hello there with a late tool", user=new_user())
    assert server.requests[0].tool_names == (*CORE, "a_late_tool")
    claude_bot.say("hello there with a late tool", user=new_user())
    late = server.requests[-1].body["tools"][-1]
    assert late["name"] == "a_late_tool"
    assert "defer_loading" not in late
    assert not server.violations


def test_a_tool_that_is_switched_off_is_not_found(
    small_bot: AstrBot, server: StandInServer
) -> None:
    small_bot.ask("switch", tool="convert_length", active=False)
    try:
        small_bot.say(ASK, user=new_user())
    finally:
        small_bot.ask("switch", tool="convert_length", active=True)
    assert all(b'"name":"convert_length"' not in request.raw_body for request in server.requests)
    assert len(server.requests) > 1


@GUARDED
def test_a_tool_for_administrators_is_found_by_them_alone(
    small_bot: AstrBot, server: StandInServer
) -> None:
    small_bot.ask("permit", tool="convert_length", who="admin")
    try:
        small_bot.say(ASK, user=new_user())
        assert all("convert_length" not in request.tool_names for request in server.requests)
        server.reset()
        assert "convert_length" in small_bot.say(ASK, user="boss")
    finally:
        small_bot.ask("permit", tool="convert_length", who="member")
    assert "convert_length" in server.requests[-1].tool_names


@GUARDED
def test_the_guard_refuses_a_call_without_a_search(
    small_bot: AstrBot, server: StandInServer
) -> None:
    """Calls run AstrBot's wrapper, never the tool in it."""
    seen: list[str] = []
    server.reset(
        model=ScriptedModel(
            [
                calling("is_prime", {"number": 7}),
                ending(seen),
            ]
        )
    )
    small_bot.ask("permit", tool="is_prime", who="admin")
    try:
        small_bot.say("hm", user=new_user())
    finally:
        small_bot.ask("permit", tool="is_prime", who="member")
    assert "plugin is_prime" not in seen[0]
    # A tool that this user may not call is answered as a name that nobody knows.
    assert "There is no tool named is_prime" in seen[0]


def test_a_deferred_tool_called_by_name_runs_if_its_arguments_fit(
    small_bot: AstrBot, server: StandInServer
) -> None:
    """Otherwise the model reads its schema."""
    seen: list[str] = []
    server.reset(
        model=ScriptedModel(
            [
                calling("is_prime", {"number": "many"}),
                calling("is_prime", {"number": 7}),
                ending(seen),
            ]
        )
    )
    assert small_bot.say("hm", user=new_user()) == "done"
    assert '"properties"' in seen[0]
    assert "plugin is_prime" in seen[1]
    assert "is_prime" in server.requests[-1].tool_names


def test_the_last_step_has_neither_tools_nor_references(
    claude_bot: AstrBot, server: StandInServer
) -> None:
    with claude_bot.runner(max_steps=1):
        claude_bot.say(ASK, user=new_user())
    last = server.requests[-1]
    assert not last.tool_names
    assert b"tool_reference" not in last.raw_body
    assert b"convert_length" in last.raw_body


def test_a_persona_has_its_own_tools(small_bot: AstrBot, server: StandInServer) -> None:
    small_bot.ask(
        "run",
        code="""
await bot.lifecycle.persona_mgr.create_persona(
    "calm", "You are calm.", tools=["convert_length", "is_prime"])
""",
    )
    with small_bot.runner(persona="calm"):
        answer = small_bot.say(ASK, user=new_user())
    assert "mcp convert_length" in answer
    assert "tool_search" not in server.requests[0].tool_names
    assert {"convert_length", "is_prime"} <= set(server.requests[0].tool_names)


def test_web_search_tools_are_core(small_bot: AstrBot, server: StandInServer) -> None:
    web = {"web_search": True, "websearch_provider": "tavily", "websearch_tavily_key": ["k"]}
    small_bot.ask("configure", changes={"provider_settings": web})
    try:
        small_bot.say("hello there", user=new_user())
    finally:
        web["web_search"] = False
        small_bot.ask("configure", changes={"provider_settings": web})
    assert any("tavily" in name for name in server.requests[0].tool_names)
    assert len(server.requests[0].tool_names) < 10


def test_a_provider_without_tool_use_gets_no_tools(
    small_bot: AstrBot, server: StandInServer
) -> None:
    change = "bot.lifecycle.star_context.get_using_provider().provider_config['modalities'] = "
    small_bot.ask("run", code=f"{change}['text']")
    try:
        small_bot.say("hello there", user=new_user())
    finally:
        small_bot.ask("run", code=f"{change}['text', 'image', 'tool_use']")
    (request,) = server.requests
    assert not request.tool_names
    assert b"tool_search" not in request.raw_body


def test_a_handoff_is_core_and_its_agent_searches_too(
    small_bot: AstrBot, server: StandInServer
) -> None:
    small_bot.ask(
        "run",
        code="""
from astrbot.core.agent.agent import Agent
from astrbot.core.agent.handoff import HandoffTool
tool = HandoffTool(Agent(name="helper", instructions="You help.", tools=None))
bot.lifecycle.star_context.subagent_orchestrator.handoffs.append(tool)
""",
    )
    server.reset(
        model=ScriptedModel(
            [
                calling("transfer_to_helper", {"input": "is 7 a prime"}),
                calling("tool_search", {"query": "prime"}),
                calling("is_prime", {"number": 7}),
                ModelReply(text="it is"),
                ModelReply(text="done"),
            ]
        )
    )
    small_bot.ask("configure", changes={"subagent_orchestrator": {"main_enable": True}})
    try:
        assert small_bot.say("hm", user=new_user()) == "done"
    finally:
        small_bot.ask("configure", changes={"subagent_orchestrator": {"main_enable": False}})
    main, first, second, _third, last = lists(server.requests)
    assert "transfer_to_helper" in main
    assert "tool_search" in first
    assert len(first) < 10
    assert "is_prime" in second
    assert last == main
