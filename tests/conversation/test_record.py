"""Conversations and messages as plain JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import (
    ConversationRecord,
    Discovery,
    ImagePart,
    Message,
    ModeDecision,
    TextPart,
    Tool,
    ToolCall,
)
from tool_search.core.conversation.record import ThinkingRecord
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.discoveries import ToolOrderRecord
from tool_search.core.messages import NativeReply
from tool_search.i18n import LANGUAGES
from tool_search.stores.record import message_from_dict, message_to_dict

TEXT = st.text(max_size=6)
NAMES = st.text("abc", min_size=1, max_size=3)
TOOLS = st.builds(Tool, name=NAMES, description=TEXT, server=st.none() | NAMES)
CALLS = st.builds(ToolCall, id=TEXT, name=NAMES, arguments=TEXT.filter(bool))
NATIVE = st.builds(
    NativeReply, TEXT, st.lists(st.dictionaries(TEXT, TEXT, max_size=2), max_size=2).map(tuple)
)
CONTENT = TEXT | st.lists(
    st.builds(TextPart, TEXT) | st.builds(ImagePart, TEXT), max_size=3
).map(tuple)  # fmt: skip
MESSAGES = st.one_of(
    st.builds(Message, role=st.just("user"), content=CONTENT),
    st.builds(
        Message,
        role=st.just("assistant"),
        content=CONTENT,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        native=st.none() | NATIVE,
    ),
    st.builds(
        Message,
        role=st.just("tool"),
        content=TEXT,
        tool_call_id=TEXT,
        name=NAMES,
        is_error=st.booleans(),
    ),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Histories in which each call has its result right after it."""
    history: list[Message] = []
    for message in draw(st.lists(MESSAGES.filter(lambda m: m.role != "tool"), max_size=3)):
        ids = [f"{len(history)}.{place}" for place in range(len(message.tool_calls))]
        calls = zip(message.tool_calls, ids, strict=True)
        history.append(replace(message, tool_calls=tuple(replace(c, id=own) for c, own in calls)))
        history += [
            Message(role="tool", content=draw(TEXT), tool_call_id=own, name=draw(NAMES))
            for own in ids
        ]
    return tuple(history)


LISTED = st.lists(NAMES, unique=True, max_size=3).map(tuple)
RECORDS = st.builds(
    ConversationRecord,
    language=st.sampled_from(LANGUAGES),
    decision=st.just(ModeDecision(mode="tool_search", reason="configured")),
    search_tool=TOOLS,
    tool_order=st.builds(
        ToolOrderRecord,
        catalog_order=LISTED,
        declared_order=LISTED,
        core=LISTED,
        catalog=TEXT,
        shown=st.dictionaries(NAMES, TEXT, max_size=2),
    ),
    discoveries=st.lists(
        st.builds(Discovery, tool=TOOLS, via=st.sampled_from(["search", "call"])), max_size=2
    ).map(tuple),
    insertion_points=st.lists(
        st.builds(
            InsertionPoint,
            fingerprint=TEXT,
            ordinal=st.integers(0, 5),
            messages=st.lists(MESSAGES, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    history=histories(),
    thinking=st.builds(
        ThinkingRecord, holds_from=st.integers(0, 9), messages=st.integers(0, 9), digest=TEXT
    ),
    configured=st.sampled_from([None, "auto", "full", "tool_search"]),
    former_search_names=st.lists(TEXT, max_size=2).map(tuple),
)


@given(RECORDS)
def test_a_record_survives_json(record: ConversationRecord) -> None:
    again = ConversationRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again == record


@given(MESSAGES)
def test_a_message_survives_json(message: Message) -> None:
    """A message that was sent once must be sent again unchanged."""
    assert message_from_dict(json.loads(json.dumps(message_to_dict(message)))) == message


def test_a_message_is_written_as_openai_has_it() -> None:
    call = ToolCall(id="1", name="get", arguments='{"a":1}')
    assert message_to_dict(Message(role="assistant", content="x", tool_calls=(call,))) == {
        "role": "assistant",
        "content": "x",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}}
        ],
    }
    result = Message(role="tool", content="ok", tool_call_id="1", name="get")
    assert message_to_dict(result) == {
        "role": "tool", "content": "ok", "tool_call_id": "1", "name": "get",
    }  # fmt: skip


def test_a_reply_under_another_dialects_origin_is_read_without_its_blocks() -> None:
    blocks = ({"type": "text", "text": "ok"},)
    kept = NativeReply("anthropic:api.anthropic.com:claude-sonnet-4-6", blocks)
    message = Message(role="assistant", content="ok", native=kept)
    assert message_from_dict(message_to_dict(message)) == message
    foreign = replace(message, native=NativeReply("openai_chat:api.openai.com:gpt-5.4", blocks))
    assert message_from_dict(message_to_dict(foreign)) == replace(message, native=None)


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (None, ""),
        ("x", "x"),
        ([{"type": "text", "text": "x"}], (TextPart("x"),)),
        (["x"], (TextPart("x"),)),
        ([{"type": "image_url", "image_url": {"url": "u"}}], (ImagePart("u"),)),
        ([{"type": "image_url", "image_url": "u"}], (ImagePart("u"),)),
        ([{"type": "input_audio", "input_audio": {}}, {"type": "text", "text": "x"}],
         (TextPart("x"),)),
    ],
)  # fmt: skip
def test_the_content_of_a_bots_message_is_read_in_any_form(written: Any, content: Any) -> None:
    assert message_from_dict({"role": "user", "content": written}).content == content


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"a":1}', '{"a":1}'), ("", "{}"), (None, "{}"), ({"a": 1}, '{"a":1}'), ({}, "{}")],
)
def test_the_arguments_of_a_bots_call_are_read_in_any_form(arguments: Any, text: str) -> None:
    call = {"id": "1", "function": {"name": "get", "arguments": arguments}}
    message = message_from_dict({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message.tool_calls == (ToolCall(id="1", name="get", arguments=text),)
