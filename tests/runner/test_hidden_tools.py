"""Tools that some users of a conversation may call and others may not, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.runner.bench import (
    SEARCHING,
    Bench,
    call,
    calling,
    named,
    results,
    say,
    search,
    tool,
    turn,
)
from tool_search import (
    CallOptions,
    MemoryStore,
    Permissions,
    PermissionSettings,
    RunnerEvent,
    RunnerWarning,
    Tool,
    ToolFinished,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.core.messages import Message
from tool_search.testing import CapturedRequest, ModelCall, ModelReply, ScriptedModel

FULL = ToolSearchConfig(tool_schema_mode="full")
KINDS = pytest.mark.parametrize("kind", ["claude", "gpt", "responses", "late", "bound"])
BAN = call("ban_user", {"who": "eve"})
ADMIN = ["admin"]


def chat_tools() -> list[Tool]:
    """What everybody may call, and what takes an administrator."""
    return [
        tool("get_time", "The time of day now.", always_load=True),
        tool("get_forecast", "Weather forecast of a city.", "city"),
        tool("ban_user", "Ban a user from the chat for good.", "who", roles=ADMIN),
        tool("mute_user", "Mute a user of the chat.", "who", roles=ADMIN),
    ]


def options(**settings: Any) -> CallOptions:
    """Options with these permissions."""
    return CallOptions(permissions=Permissions(PermissionSettings.model_validate(settings)))


def declared(request: CapturedRequest) -> set[str]:
    """The names of the tools of a request's list."""
    listed = [one.get("function", one) for one in request.body.get("tools", [])]
    return {one["name"] for one in listed if "name" in one}


def history(runner: ToolSearchRunner) -> tuple[Message, ...]:
    """What was said in the conversation."""
    session = runner.session()
    assert session is not None
    return session.history


def announced(events: Sequence[RunnerEvent]) -> list[str]:
    """The warnings of a turn that speak of its prefix."""
    codes = [str(one.code) for one in named(events, RunnerWarning)]
    return [code for code in codes if code in ("permitted_tools_changed", "prefix_moved")]


@KINDS
async def test_full_list_has_what_this_turns_user_may_call(bench: Bench, kind: str) -> None:
    bench.server.reset(model=ScriptedModel([say(f"Turn {n}.") for n in range(5)]))
    runner = await bench.runner(kind, tools=chat_tools(), config=FULL)
    turns = [await turn(runner, roles=roles) for roles in ([], [], ADMIN, ADMIN, [])]
    everybody = {"get_time", "get_forecast"}
    everything = everybody | {"ban_user", "mute_user"}
    assert [declared(request) for request in bench.requests] == [
        everybody, everybody, everything, everything, everybody,
    ]  # fmt: skip
    is_new = ["permitted_tools_changed"]
    assert [announced(events) for events in turns] == [[], [], is_new, [], is_new]


async def test_change_of_who_speaks_is_announced_after_a_restart_too(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("One."), say("Two."), say("Three.")]))
    store, told = MemoryStore(), []
    for roles in (ADMIN, [], []):
        runner = await bench.runner("gpt", tools=chat_tools(), config=FULL, store=store)
        told.append(announced(await turn(runner, roles=roles)))
    assert told == [[], ["permitted_tools_changed"], []]


@KINDS
async def test_call_of_a_hidden_tool_says_what_an_unknown_name_gets(
    bench: Bench, kind: str
) -> None:
    """By its exact name, its alias and its name in `call_tool`; it is not declared from then on."""
    tools = chat_tools()
    tools[2] = replace(tools[2], aliases=("banish",))
    guesses = [BAN, call("ban_usex", {"who": "eve"}), call("banish", {"who": "eve"})]
    bench.server.reset(model=ScriptedModel([calling(*guesses), say("No."), say("Still no.")]))
    runner = await bench.runner(kind, tools=tools, config=FULL)
    events = await turn(runner)
    await turn(runner)
    contents = [one.content for one in named(events, ToolFinished)]
    assert contents == [f"There is no tool named {one.name}." for one in guesses]
    assert bench.ran == []
    assert all("Ban a user" not in json.dumps(request.body) for request in bench.requests)


@KINDS
async def test_what_the_conversation_refers_to_stays_declared(bench: Bench, kind: str) -> None:
    """An administrator has called it; a guest's call of it is answered like an unknown name."""
    script = [calling(BAN), say("Banned."), calling(BAN), say("I cannot."), say("Nor now.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(kind, tools=chat_tools(), config=FULL)
    await turn(runner, roles=ADMIN)
    (refused,) = named(await turn(runner), ToolFinished)
    assert (refused.content, refused.is_error) == ("There is no tool named ban_user.", True)
    assert declared(bench.requests[-1]) == {"get_time", "get_forecast", "ban_user"}
    assert [name for name, _ in bench.ran] == ["ban_user"]


@KINDS
@pytest.mark.parametrize("hidden", ["keep", "strict"])
async def test_discovered_tool_stays_declared_unless_hiding_is_strict(
    bench: Bench, kind: str, hidden: str
) -> None:
    script = [search("ban a user"), calling(BAN), say("Banned."), calling(BAN), say("I cannot.")]
    bench.server.reset(model=ScriptedModel([*script, calling(BAN), say("Again.")]))
    runner = await bench.runner(
        kind, tools=chat_tools(), config=SEARCHING, calls=options(hidden=hidden)
    )
    await turn(runner, "Ban Eve", roles=ADMIN)
    before = len(bench.requests)
    events = await turn(runner, "Ban Bo")
    (refused,) = named(events, ToolFinished)
    assert refused.content.startswith("There is no tool named ban_user.")
    for request in bench.requests[before:]:
        assert _has_definition(request, "ban_user") is (hidden == "keep")
    assert announced(events) == (["permitted_tools_changed"] if hidden == "strict" else [])
    events = await turn(runner, "Ban Eve again", roles=ADMIN)
    assert named(events, ToolFinished)[0].content == "ban_user is done"
    assert _has_definition(bench.requests[-1], "ban_user")
    assert announced(events) == (["permitted_tools_changed"] if hidden == "strict" else [])


def _has_definition(request: CapturedRequest, name: str) -> bool:
    """True if the model is shown a tool's definition, in the list or by a reference."""
    written = json.dumps(request.body)
    if '"tool_reference"' in written or any("defer_loading" in t for t in request.body["tools"]):
        return f'"tool_reference", "tool_name": "{name}"' in written
    return f'"name": "{name}", "description"' in written


async def test_reference_that_is_left_out_is_text(bench: Bench) -> None:
    found = search("ban mute user weather forecast")
    bench.server.reset(model=ScriptedModel([found, say("Found."), say("Nothing.")]))
    runner = await bench.runner(
        "claude", tools=chat_tools(), config=SEARCHING, calls=options(hidden="strict")
    )
    await turn(runner, "What is there?", roles=ADMIN)
    await turn(runner, "What is there?")
    content = bench.requests[-1].body["messages"][2]["content"]
    (result,) = (block for block in content if block["type"] == "tool_result")
    assert [one["tool_name"] for one in result["content"]] == ["get_forecast"]
    (text,) = (b["text"] for b in content if b["type"] == "text" and "matches" in b["text"])
    assert sorted(one["name"] for one in json.loads(text)["matches"]) == ["ban_user", "mute_user"]


async def test_definition_that_is_left_out_of_a_native_search_is_text(bench: Bench) -> None:
    found = search("ban mute user weather forecast")
    bench.server.reset(model=ScriptedModel([found, say("Found."), say("Nothing.")]))
    runner = await bench.runner(
        "responses", tools=chat_tools(), config=SEARCHING, calls=options(hidden="strict")
    )
    await turn(runner, "What is there?", roles=ADMIN)
    await turn(runner, "What is there?")
    items = bench.requests[-1].body["input"]
    (output,) = (item for item in items if item.get("type") == "tool_search_output")
    assert "get_forecast" in json.dumps(output)
    assert "ban_user" not in json.dumps(output)
    (note,) = (item["content"] for item in items if item.get("role") == "developer")
    assert sorted(one["name"] for one in json.loads(note)["matches"]) == ["ban_user", "mute_user"]


async def test_what_the_services_own_search_found_is_not_sent_back_to_everybody(
    bench: Bench,
) -> None:
    looked = ModelReply(
        calls=(ModelCall(name="tool_search", arguments={"paths": ["chat"]}),), text="Found."
    )
    bench.server.reset(model=ScriptedModel([looked, say("There."), say("Nothing.")]))
    tools = [replace(one, kind="mcp", server="chat") for one in chat_tools()]
    service = await bench.provider("responses", tool_search="hosted")
    runner = await bench.runner(
        providers={"service": service},
        tools=tools,
        config=SEARCHING,
        calls=options(hidden="strict"),
    )
    await turn(runner, "What is there?", roles=ADMIN)
    assert "Ban a user" in json.dumps(bench.requests[-1].body)
    await turn(runner, "What is there?")
    assert '"Ban a user from the chat for good.", "parameters"' not in json.dumps(
        bench.requests[-1].body
    )


async def test_cut_history_shows_a_discovery_to_nobody_who_may_not_call_it(bench: Bench) -> None:
    script = [search("ban a user"), say("Found."), say("Hello."), calling(BAN), say("Banned.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(
        "claude", tools=chat_tools(), config=SEARCHING, calls=options(hidden="strict")
    )
    await turn(runner, "Ban Eve", roles=ADMIN)
    session = runner.session()
    assert session is not None
    cut = [Message(role="user", content="Earlier"), Message(role="assistant", content="Yes")]
    session.adopt_history(cut)
    await turn(runner, "Hello")
    assert "ban_user" not in json.dumps(bench.requests[-1].body["messages"])
    await turn(runner, "Ban Eve", roles=ADMIN)
    assert [name for name, _ in bench.ran] == ["ban_user"]


@pytest.mark.parametrize("kind", ["claude", "gpt", "responses"])
async def test_model_can_pick_no_hidden_tool_in_skills_like(bench: Bench, kind: str) -> None:
    bench.server.reset(model=ScriptedModel([calling(BAN), say("No such tool.")]))
    config = ToolSearchConfig(tool_schema_mode="skills_like")
    runner = await bench.runner(kind, tools=chat_tools(), config=config)
    (finished,) = named(await turn(runner), ToolFinished)
    assert finished.content == "There is no tool named ban_user."
    assert all("Ban a user" not in json.dumps(request.body) for request in bench.requests)


async def test_what_plan_mode_refuses_says_why_and_an_alias_says_the_same(bench: Bench) -> None:
    tools = [replace(chat_tools()[1], aliases=("weather",)), chat_tools()[0]]
    calls = [call("get_forecast", {"city": "Paris"}), call("weather", {"city": "Paris"})]
    bench.server.reset(model=ScriptedModel([calling(*calls), say("Not now.")]))
    runner = await bench.runner("gpt", tools=tools, config=FULL, calls=options())
    runner.permissions.use_mode("plan", conversation="default")
    events = await turn(runner)
    said = "get_forecast may change something, and only reading is allowed at the moment."
    assert [one.content for one in named(events, ToolFinished)] == [said, said]
    assert declared(bench.requests[0]) == set()
    assert [message.is_error for message in results(history(runner))] == [True, True]
