"""Requests in Anthropic's Messages format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.adapters.contract import QUESTION, WEATHER, plan_of
from tool_search.adapters.anthropic.wire import encode, encode_tools, to_wire
from tool_search.core.catalog.naming import NameRule
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    DeclaredTool,
    ImagePart,
    Message,
    NativeReply,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_anthropic

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
COMPATIBLE = profile_for("anthropic", "glm-5", base_url="https://api.z.ai/api/anthropic")
SEARCH = Tool(name="tool_search", description="Finds tools.")
CALL = ToolCall(id="c1", name="tool_search", arguments='{"query": "weather"}')


def claude_plan(*messages: Message, **more: Any) -> RequestPlan:
    """Return a plan of the Claude strategy: a search tool and a deferred one."""
    tools = (DeclaredTool(SEARCH, cache_breakpoint=True), DeclaredTool(WEATHER, deferred=True))
    return replace(plan_of(*messages, **{"strategy": "claude", **more}), tools=ToolList(tools))


def found(*names: str, **more: Any) -> Message:
    """Return a search result that refers to tools."""
    content = more.pop("content", (ReferencePart(names),))
    return Message(role="tool", tool_call_id="c1", name="tool_search", content=content, **more)


SEARCHED = (QUESTION, Message(role="assistant", content="", tool_calls=(CALL,)))


def test_to_wire_claude_plan_has_the_documented_form() -> None:
    """Deferred tools, one breakpoint each on tools, system and messages, a reference alone."""
    messages = (*SEARCHED, found("get_weather"), Message(role="user", content="And now?"))
    plan = claude_plan(*messages, cache_system=True, cached_messages=(0, 3))
    assert to_wire(plan, CLAUDE) == snapshot(
        {
            "tools": [
                {
                    "name": "tool_search",
                    "description": "Finds tools.",
                    "input_schema": {"type": "object", "properties": {}},
                    "cache_control": {"type": "ephemeral"},
                },
                {
                    "name": "get_weather",
                    "description": "The weather — погода, 天气.",
                    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                    "defer_loading": True,
                },
            ],
            "model": "claude-sonnet-4-6",
            "max_tokens": 128_000,
            "stream": True,
            "system": [
                {"type": "text", "text": "You are helpful.", "cache_control": {"type": "ephemeral"}}
            ],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "text",
                            "text": "What is the weather in Paris?",
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "tool_use",
                            "id": "c1",
                            "name": "tool_search",
                            "input": {"query": "weather"},
                        }
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c1",
                            "is_error": False,
                            "content": [{"type": "tool_reference", "tool_name": "get_weather"}],
                        },
                        {
                            "type": "text",
                            "text": "And now?",
                            "cache_control": {"type": "ephemeral"},
                        },
                    ],
                },
            ],
        }
    )
    assert check_anthropic(to_wire(plan, CLAUDE)) is None


@pytest.mark.parametrize("stream", [True, False])
def test_encode_writes_extra_fields_and_no_null(stream: bool) -> None:
    extra = {"metadata": {"user_id": "ü"}, "system": None}
    encoded = json.loads(encode(claude_plan(), CLAUDE, stream=stream, extra_body=extra))
    assert (encoded["metadata"], encoded.get("stream", False)) == ({"user_id": "ü"}, stream)
    assert "system" not in encoded


@pytest.mark.parametrize("rule", ["common", "identifier"])
def test_encode_tools_depend_on_the_profile(rule: Any) -> None:
    """One list, several endpoints: breakpoints only for those that know them, names by rule."""
    plan = claude_plan()
    plan = replace(plan, tools=ToolList([*plan.tools, DeclaredTool(Tool(name="1st"))]))
    for profile in (CLAUDE, COMPATIBLE):
        ruled = replace(profile, name_rule=NameRule(rule))
        anew = replace(plan, tools=ToolList(plan.tools))
        assert json.loads(encode_tools(plan.tools, ruled)) == to_wire(anew, ruled)["tools"]
    assert b"cache_control" in encode_tools(plan.tools, CLAUDE)
    assert b"cache_control" not in encode_tools(plan.tools, COMPATIBLE)


def test_to_wire_compatible_endpoint_gets_no_breakpoint_and_a_plain_system() -> None:
    wire = to_wire(claude_plan(cache_system=True, cached_messages=(0,)), COMPATIBLE)
    assert "cache_control" not in json.dumps(wire)
    assert wire["system"] == "You are helpful."


def test_to_wire_marks_the_end_of_a_filtered_list_too() -> None:
    """At endpoints that accept marks, with any strategy; a mark is not part of the cached text."""
    tools = [DeclaredTool(Tool(name=name)) for name in "ab"]
    profile = replace(CLAUDE.generic(), origin="anthropic:proxy.example")
    wire = to_wire(replace(claude_plan(), tools=ToolList(tools)), profile)["tools"]
    assert [tool["name"] for tool in wire if "cache_control" in tool] == ["b"]


@pytest.mark.parametrize(("automatic", "expected"), [(False, 4), (True, 4)])
def test_to_wire_never_has_more_than_four_breakpoints(automatic: bool, expected: int) -> None:
    messages = [Message(role="user", content=str(n)) for n in range(9)]
    plan = claude_plan(*messages, cache_system=True, cached_messages=tuple(range(9)))
    extra = {"cache_control": {"type": "ephemeral"}} if automatic else {}
    wire = to_wire(plan, CLAUDE, extra_body=extra)
    assert json.dumps(wire).count("cache_control") == expected
    assert "cache_control" in wire["messages"][-1]["content"][-1]


def test_to_wire_merges_messages_of_one_role_results_first() -> None:
    calls = (CALL, ToolCall(id="c2", name="get_weather"))
    plan = plan_of(
        QUESTION,
        Message(role="assistant", content="One."),
        Message(role="assistant", content="Two.", tool_calls=calls),
        Message(role="user", content="Hurry!"),
        Message(role="tool", tool_call_id="c1", name="tool_search", content="{}"),
        Message(role="tool", tool_call_id="c2", name="get_weather", content="21"),
    )
    wire = to_wire(plan, CLAUDE)["messages"]
    assert [message["role"] for message in wire] == ["user", "assistant", "user"]
    assert [b["type"] for b in wire[1]["content"]] == ["text", "text", "tool_use", "tool_use"]
    assert [b["type"] for b in wire[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert check_anthropic(to_wire(plan, CLAUDE)) is None


@pytest.mark.parametrize("blank", ["", " \n", ()])
def test_to_wire_never_has_an_empty_block(blank: Any) -> None:
    """Not for a user who said nothing, nor for a tool that returned nothing."""
    plan = plan_of(
        Message(role="user", content=blank),
        Message(role="assistant", content=blank, tool_calls=(CALL,)),
        Message(role="tool", tool_call_id="c1", name="x", content=blank, is_error=True),
        Message(role="assistant", content=blank),
        Message(role="assistant", content="Yes.", tool_calls=(replace(CALL, id="c2", name=""),)),
        Message(role="tool", tool_call_id="c2", name="x", content=blank),
        system=" ",
    )
    assert check_anthropic(to_wire(plan, CLAUDE)) is None
    assert "system" not in to_wire(plan, CLAUDE)


def test_to_wire_history_that_begins_with_a_reply_is_opened() -> None:
    plan = plan_of(Message(role="assistant", content="Hello."), QUESTION)
    assert check_anthropic(to_wire(plan, CLAUDE)) is None


def test_to_wire_text_beside_references_stands_behind_the_result() -> None:
    part = (TextPart("Two tools."), ReferencePart(("get_weather",)))
    plan = claude_plan(*SEARCHED, found(content=part))
    assert [b["type"] for b in to_wire(plan, CLAUDE)["messages"][2]["content"]] == [
        "tool_result",
        "text",
    ]
    assert check_anthropic(to_wire(plan, CLAUDE)) is None


def test_to_wire_references_of_an_error_are_text() -> None:
    """An error result takes nothing else."""
    plan = claude_plan(*SEARCHED, found("get_weather", is_error=True))
    assert check_anthropic(to_wire(plan, CLAUDE)) is None
    assert '[\\"get_weather\\"]' in json.dumps(to_wire(plan, CLAUDE)["messages"])


def test_to_wire_long_reference_and_odd_id_fit() -> None:
    tool = Tool(name="很" * 90)
    call = replace(CALL, id="functions.tool_search:0" * 3)
    result = replace(found(tool.name), tool_call_id=call.id)
    plan = replace(
        claude_plan(QUESTION, Message(role="assistant", tool_calls=(call,)), result),
        tools=ToolList([DeclaredTool(SEARCH), DeclaredTool(tool, deferred=True)]),
    )
    assert check_anthropic(to_wire(plan, CLAUDE)) is None


def test_to_wire_final_phase_forbids_calls_and_keeps_tools() -> None:
    plan = claude_plan(*SEARCHED, found("get_weather"), phase="final", tool_use="none")
    wire = to_wire(plan, CLAUDE)
    assert wire["tool_choice"] == {"type": "none"}
    assert len(wire["tools"]) == 2
    assert check_anthropic(wire) is None


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://a/b.png", {"type": "url", "url": "https://a/b.png"}),
        ("data:image/gif;base64,R0lG", {"media_type": "image/gif", "data": "R0lG"}),
        ("data:image/svg+xml,%3Csvg%3E", {"media_type": "image/svg+xml", "data": "PHN2Zz4="}),
        ("data:;base64,AAAA", {"media_type": "image/png", "data": "AAAA"}),
    ],
)
def test_to_wire_picture_is_an_address_or_its_bytes(url: str, source: dict[str, str]) -> None:
    """By `https:` as it is, by `data:` in Base64."""
    plan = plan_of(Message(role="user", content=(TextPart("Look"), ImagePart(url))))
    block = to_wire(plan, CLAUDE)["messages"][0]["content"][1]
    assert block == {"type": "image", "source": {"type": "base64", **source}}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
USE = {"type": "tool_use", "id": "c1", "name": "tool_search", "input": {"query": "weather"}}


def native_plan(profile: ProviderProfile, *blocks: dict[str, Any]) -> list[Any]:
    """Return the blocks sent for a reply that has blocks of its own."""
    native = NativeReply(CLAUDE.origin, blocks)
    reply = Message(role="assistant", tool_calls=(CALL,), native=native)
    plan = plan_of(QUESTION, reply, found(content="{}"), cached_messages=(1,))
    blocks_sent: list[Any] = to_wire(plan, profile)["messages"][1]["content"]
    return blocks_sent


def test_to_wire_native_blocks_go_back_unchanged_to_their_origin() -> None:
    use, *rest = reversed(native_plan(CLAUDE, THINKING, USE))
    assert rest == [THINKING]
    assert {**use, "cache_control": None} == {**USE, "cache_control": None}
    assert native_plan(CLAUDE, USE, THINKING)[1] == THINKING


@pytest.mark.parametrize("name", ["no such tool!", "", "x" * 300])
def test_to_wire_native_call_of_an_invented_name_is_one_that_requests_take(name: str) -> None:
    _, use = native_plan(CLAUDE, THINKING, {**USE, "name": name})
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", use["name"])


def test_to_wire_native_blocks_go_nowhere_else() -> None:
    """Nor back to their origin, if the message was edited since."""
    assert native_plan(COMPATIBLE, THINKING, USE) == [USE]
    assert [b["type"] for b in native_plan(CLAUDE, THINKING)] == ["tool_use"]


@pytest.mark.parametrize("null", [True, False])
def test_to_wire_extra_body_replaces_and_removes(null: bool) -> None:
    wire = to_wire(plan_of(), CLAUDE, extra_body={"max_tokens": 9, "stream": None if null else 1})
    assert wire["max_tokens"] == 9
    assert ("stream" in wire) is not null
