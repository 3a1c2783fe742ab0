"""Requests in OpenAI's Chat Completions format."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.adapters.contract import QUESTION, plan_of
from tool_search.adapters.openai_chat.wire import encode, to_wire
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    ImagePart,
    Message,
    NativeReply,
    ReferencePart,
    TextPart,
    ToolCall,
)
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_openai_chat

GPT = profile_for("openai_chat", "gpt-5.4")
CALL = ToolCall(id="c1", name="files.read", arguments='{"path": "a"}')
CALLED = Message(role="assistant", tool_calls=(CALL,))
RESULT = Message(role="tool", tool_call_id="c1", name="files.read", content="text")


def test_late_tools_come_behind_the_results_or_before_the_call_that_needs_them() -> None:
    """In a message with nothing else; what stays in the result is its text."""
    part = ReferencePart(("files.read",), (Tool(name="files.read"),))
    search = Message(role="assistant", tool_calls=(replace(CALL, name="tool_search"),))
    found = replace(RESULT, name="tool_search", content=(TextPart("{}"), part))
    called = replace(CALLED, tool_calls=(replace(CALL, id="c2"),), content=(part,))
    result = replace(RESULT, tool_call_id="c2")
    kimi = profile_for("openai_chat", "kimi-k3", base_url="https://api.moonshot.ai/v1")
    plan = plan_of(QUESTION, search, found, called, result)
    body = to_wire(replace(plan, strategy="tools_in_messages"), kimi)
    brought = {"role": "system", "tools": body["messages"][4]["tools"]}
    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "assistant", "tool", "system", "system", "assistant", "tool",
    ]  # fmt: skip
    assert body["messages"][3]["content"] == "{}"
    assert body["messages"][4] == body["messages"][5] == brought
    assert brought["tools"][0]["function"]["name"] == "files_read_601e4eb6"
    assert check_openai_chat(body) is None


@pytest.mark.parametrize(
    ("required", "base_url", "strict"),
    [
        (["city"], None, True),
        ([], None, False),
        (["city"], "https://api.deepseek.com/v1", False),
    ],
)
def test_openai_holds_arguments_to_a_schema_as_strict_as_it_wants(
    required: list[str], base_url: str | None, strict: bool
) -> None:
    """As recorded; nobody else is sent a field that he may refuse."""
    schema = {
        "type": "object", "properties": {"city": {"type": "string"}},
        "required": required, "additionalProperties": False,
    }  # fmt: skip
    profile = profile_for("openai_chat", "gpt-5", base_url=base_url)
    (tool,) = to_wire(plan_of(tools=(Tool(name="t", parameters=schema),)), profile)["tools"]
    assert tool["function"].get("strict", False) is strict
    assert tool["function"]["parameters"] == schema


def test_to_wire_plan_has_the_documented_form() -> None:
    """The system text first, arguments and results as strings, null content with calls alone."""
    wire = to_wire(plan_of(QUESTION, CALLED, RESULT), GPT)
    assert wire == snapshot(
        {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "get_weather",
                        "description": "The weather — погода, 天气.",
                        "parameters": {
                            "type": "object",
                            "properties": {"city": {"type": "string"}},
                        },
                    },
                }
            ],
            "model": "gpt-5.4",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "You are helpful."},
                {"role": "user", "content": "What is the weather in Paris?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {
                                "name": "files_read_601e4eb6",
                                "arguments": '{"path": "a"}',
                            },
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "text"},
            ],
        }
    )
    assert check_openai_chat(wire) is None


@pytest.mark.parametrize("stream", [True, False])
def test_encode_writes_extra_fields_and_no_null(stream: bool) -> None:
    extra = {"user": "ü", "stream_options": None}
    encoded = json.loads(encode(plan_of(QUESTION), GPT, stream=stream, extra_body=extra))
    assert (encoded["user"], encoded.get("stream", False)) == ("ü", stream)
    assert "stream_options" not in encoded


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ""),
        ((TextPart("a"), TextPart("b")), "a\nb"),
        (
            (TextPart("a"), ImagePart("https://x/y.png"), TextPart("")),
            [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ],
        ),
    ],
    ids=["empty", "texts", "picture"],
)
def test_to_wire_user_content_is_text_unless_there_are_pictures(
    content: Any, expected: Any
) -> None:
    wire = to_wire(plan_of(Message(role="user", content=content), system=""), GPT)
    assert wire["messages"] == [{"role": "user", "content": expected}]
    assert check_openai_chat(wire) is None


def test_to_wire_result_is_a_string_whatever_it_holds() -> None:
    """A reference cannot come here by way of a strategy, but would be read."""
    parts = (TextPart("a"), ReferencePart(("files.read",)), ImagePart("https://x/y.png"))
    wire = to_wire(plan_of(QUESTION, CALLED, replace(RESULT, content=parts)), GPT)
    assert wire["messages"][-1]["content"] == 'a\n["files_read_601e4eb6"]'
    assert check_openai_chat(wire) is None


def test_to_wire_result_of_pictures_alone_is_said_in_words() -> None:
    """In a history of another client's: the model would read nothing at all."""
    parts = (ImagePart("https://x/y.png"), TextPart(" "), ImagePart("https://x/z.png"))
    wire = to_wire(plan_of(QUESTION, CALLED, replace(RESULT, content=parts)), GPT)
    assert wire["messages"][-1]["content"] == "[pictures: 2]"
    assert check_openai_chat(wire) is None


def test_to_wire_odd_names_and_ids_fit() -> None:
    """64 and 40 characters; ids of other providers stay in step with their results."""
    call = ToolCall(id="functions.read:0" * 5, name="", arguments="{")
    history = (Message(role="assistant", tool_calls=(call,)), replace(RESULT, tool_call_id=call.id))
    wire = to_wire(plan_of(QUESTION, *history), GPT)
    assert check_openai_chat(wire) is None
    assert wire["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_to_wire_reply_of_nothing_is_left_out() -> None:
    wire = to_wire(plan_of(QUESTION, Message(role="assistant", content=" "), QUESTION), GPT)
    assert [message["role"] for message in wire["messages"]] == ["system", "user"]


def own(origin: str) -> Message:
    """Return a reply with thinking and a signed call."""
    block = {"reasoning_content": "hm", "extra_content": [{"google": {"s": "x"}}]}
    return replace(CALLED, native=NativeReply(origin, (block,)))


def test_to_wire_thinking_goes_back_for_as_long_as_its_reply_does() -> None:
    """To its origin: without it, the next turn would have another prefix."""
    plan = plan_of(QUESTION, own(GPT.origin), RESULT, system="")
    reply = to_wire(plan, GPT)["messages"][1]
    assert reply["reasoning_content"] == "hm"
    assert reply["tool_calls"][0]["extra_content"] == {"google": {"s": "x"}}
    later = to_wire(plan_of(QUESTION, own(GPT.origin), RESULT, QUESTION, system=""), GPT)
    assert later["messages"][1] == reply
    elsewhere = json.dumps(to_wire(plan_of(QUESTION, own("openai_chat:other"), RESULT), GPT))
    assert "reasoning_content" not in elsewhere
    assert "extra_content" not in elsewhere


@pytest.mark.parametrize("missing", ["", " "])
def test_to_wire_a_reply_with_calls_has_reasoning_where_the_service_wants_it(missing: str) -> None:
    profile = replace(GPT, missing_reasoning=missing)
    said = Message(role="assistant", content="Hello.")
    wire = to_wire(plan_of(QUESTION, said, QUESTION, CALLED, RESULT, system=""), profile)
    written = [message.get("reasoning_content") for message in wire["messages"]]
    assert written == [None, None, None, missing, None]


def test_to_wire_reasoning_of_another_name_is_repeated_where_the_service_named_it() -> None:
    """After a refusal: until then the reply's own name is enough."""
    native = NativeReply(GPT.origin, ({"reasoning": "hm"},))
    plan = plan_of(QUESTION, replace(CALLED, native=native), RESULT, system="")
    first = to_wire(plan, replace(GPT, missing_reasoning=""))["messages"][1]
    assert (first["reasoning"], first.get("reasoning_content")) == ("hm", None)
    second = to_wire(plan, replace(GPT, missing_reasoning=" "))["messages"][1]
    assert second["reasoning_content"] == "hm"


def test_to_wire_an_endpoint_that_refused_reasoning_is_sent_none() -> None:
    profile = replace(GPT, returns_reasoning=False)
    reply = to_wire(plan_of(QUESTION, own(GPT.origin), RESULT, system=""), profile)["messages"][1]
    assert "reasoning_content" not in reply
    assert reply["tool_calls"][0]["extra_content"] == {"google": {"s": "x"}}


def test_to_wire_states_the_effort_beside_reasoning_where_a_gateway_wants_both() -> None:
    profile = replace(GPT, missing_reasoning=" ", states_effort=True)
    assert "reasoning_effort" not in to_wire(plan_of(QUESTION), profile)
    plan = plan_of(QUESTION, own(GPT.origin), RESULT)
    assert to_wire(plan, profile)["reasoning_effort"] == "high"
    stated = to_wire(plan, profile, extra_body={"reasoning_effort": "low"})
    assert stated["reasoning_effort"] == "low"


def test_to_wire_final_phase_forbids_calls() -> None:
    """The tools stay: the prefix does too."""
    wire = to_wire(plan_of(phase="final", tool_use="none"), GPT)
    assert wire["tool_choice"] == "none"
    assert len(wire["tools"]) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_to_wire_asks_for_usage_in_a_stream_only(stream: bool) -> None:
    assert ("stream_options" in to_wire(plan_of(), GPT, stream=stream)) is stream
