"""Bytes that are kept from earlier requests are those of a request that is written anew."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.plans import plans
from tool_search import ImagePart, Message, TextPart, Tool, ToolCall, profile_for
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.adapters.openai_responses.wire import history_digest
from tool_search.core.messages import (
    DeclaredTool,
    KeptWork,
    NativeReply,
    ReferencePart,
    RequestPlan,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

_RESPONSES = profile_for("openai_responses", "gpt-5.5")
_PROFILES = {
    "anthropic": profile_for("anthropic", "claude-sonnet-4-6"),
    "chat": profile_for("openai_chat", "gpt-5.4"),
    "responses": _RESPONSES,
    "kept": replace(_RESPONSES, keeps_replies=True),
}
_WIRES = {
    "anthropic": (anthropic_wire.encode, anthropic_wire.to_wire),
    "openai_chat": (openai_chat_wire.encode, openai_chat_wire.to_wire),
    "openai_responses": (openai_responses_wire.encode, openai_responses_wire.to_wire),
}
_IDS = st.sampled_from(["c1", "c2", "c3"])
_NAMES = st.sampled_from(["tool_search", "get_forecast", "send_mail"])
_TOOLS = st.sampled_from([Tool(name="get_forecast"), Tool(name="send_mail", server="mail")])
_CONTENTS = st.one_of(
    st.sampled_from(["", "hello", "[]"]),
    st.lists(
        st.one_of(
            st.just(TextPart("words")),
            st.just(ImagePart("https://a/b.png")),
            _TOOLS.map(lambda tool: ReferencePart((tool.name,), (tool,))),
        ),
        max_size=2,
    ).map(tuple),
)
_HOSTED = {
    "type": "tool_search_output",
    "tools": [{"type": "function", "name": "get_forecast"}],
}


def _blocks(ids: list[str], names: list[str], extra: str) -> tuple[Mapping[str, Any], ...]:
    """Return a Responses reply's own items, which say what its calls say."""
    calls = [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
        for call_id, name in zip(ids, names, strict=False)
    ]
    own: dict[str, list[Mapping[str, Any]]] = {
        "": [],
        "hosted": [_HOSTED],
        "kept": [{"type": "kept_reply", "id": "resp_1", "input": "never this"}],
    }
    return (*own[extra], *calls)


@st.composite
def _replies(draw: st.DrawFn) -> Message:
    ids = draw(st.lists(_IDS, unique=True, max_size=2))
    names = [draw(_NAMES) for _ in ids]
    calls = tuple(ToolCall(id=i, name=n) for i, n in zip(ids, names, strict=True))
    extra = draw(st.sampled_from(["", "hosted", "kept"]))
    native = NativeReply(
        _RESPONSES.origin, _blocks(ids, names, extra), told=draw(st.sampled_from(["", "c1"]))
    )
    return Message(
        role="assistant",
        content=draw(_CONTENTS),
        tool_calls=calls,
        native=native if draw(st.booleans()) else None,
    )


_USERS = st.builds(Message, role=st.just("user"), content=_CONTENTS)
_RESULTS = st.builds(
    Message, role=st.just("tool"), content=_CONTENTS, tool_call_id=_IDS, name=_NAMES
)
_TURNS = st.tuples(
    st.lists(_USERS, min_size=1, max_size=2),
    st.lists(st.one_of(_replies(), _RESULTS), max_size=3),
    st.lists(_replies(), max_size=1),
).map(lambda parts: [message for part in parts for message in part])
_HISTORIES = st.lists(_TURNS, max_size=4).map(
    lambda turns: tuple(message for turn in turns for message in turn)
)


def _check(plan: RequestPlan, profile: ProviderProfile) -> None:
    """The encoded request equals the whole request."""
    encode, to_wire = _WIRES[profile.dialect]
    assert json.loads(encode(plan, profile)) == to_wire(plan, profile)


@pytest.mark.parametrize("name", _PROFILES)
@settings(deadline=None, max_examples=1_000 if _IS_LONG else 20)
@given(plans(), _HISTORIES, st.lists(st.integers(1, 12), max_size=2))
def test_history_written_step_by_step_is_the_history_written_at_once(
    name: str, plan: RequestPlan, history: tuple[Message, ...], steps: list[int]
) -> None:
    for count in (*steps, len(history)):
        marked = plan.cached_messages[:1]
        _check(replace(plan, messages=history[:count], cached_messages=marked), _PROFILES[name])


def _user(text: str = "hello") -> Message:
    return Message(role="user", content=text)


def _calls(name: str, *, native: tuple[Mapping[str, Any], ...] | None = None) -> Message:
    own = None if native is None else NativeReply(_RESPONSES.origin, native)
    return Message(role="assistant", tool_calls=(ToolCall(id="c1", name=name),), native=own)


def _result(name: str, *tools: Tool) -> Message:
    part = ReferencePart(tuple(tool.name for tool in tools), tools)
    content = (part,) if tools else "done"
    return Message(role="tool", tool_call_id="c1", name=name, content=content)


_ANSWER = Message(role="assistant", content="It is so.")
_FORECAST = Tool(name="get_forecast", server="weather")
_CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "get_forecast", "arguments": "{}"}
_LINKED = {
    "a definition comes after its call": (
        _user(), _calls("get_forecast"), _result("get_forecast"), _ANSWER,
        _user(), _calls("tool_search"), _result("tool_search", _FORECAST), _ANSWER, _user(),
    ),
    "a search is answered a turn later": (
        _user(), _calls("tool_search"), _user(), _result("tool_search", _FORECAST), _user(),
    ),
    "the service's own search brought the tool": (
        _user(), _calls("send_mail", native=(_HOSTED, {**_CALL_ITEM, "name": "send_mail"})),
        _result("send_mail"), _ANSWER,
        _user(), _calls("get_forecast", native=(_CALL_ITEM,)), _result("get_forecast"),
    ),
    "a service's items say what a later exchange says": (
        _user(), _calls("tool_search"), _result("tool_search", _FORECAST), _ANSWER, _user(),
        replace(_calls("send_mail"), native=NativeReply(
            _RESPONSES.origin, ({**_CALL_ITEM, "name": "send_mail"},), told="c1")),
    ),
    "two answers follow each other": (_user(), _ANSWER, _ANSWER, _user(), _user(), _ANSWER),
    "an empty answer": (_user(), Message(role="assistant"), _user(), _ANSWER, _user()),
}  # fmt: skip


@pytest.mark.parametrize("marked", [(), (0,), (1,), (4,)])
@pytest.mark.parametrize("name", _PROFILES)
@pytest.mark.parametrize("history", _LINKED.values(), ids=_LINKED.keys())
def test_what_later_messages_say_of_earlier_ones_is_written(
    name: str, history: tuple[Message, ...], marked: tuple[int, ...]
) -> None:
    search = DeclaredTool(Tool(name="tool_search"), is_search=True)
    for first in range(1, len(history)):
        kept = KeptWork()
        for count in (first, len(history)):
            plan = RequestPlan(
                strategy="generic",
                tools=ToolList([search]),
                messages=history[:count],
                cached_messages=marked if count == first else (),
                kept=kept,
            )
            _check(plan, _PROFILES[name])


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_request_goes_on_from_a_kept_reply_of_any_turn(turns: int) -> None:
    """Items that the service keeps are left out, later ones are not."""
    profile, kept = _PROFILES["kept"], KeptWork()
    plan = RequestPlan(strategy="generic", tools=ToolList(), messages=(_user("one"),), kept=kept)
    own = {"type": "kept_reply", "id": "resp_1", "input": history_digest(plan, profile)}
    said = {"type": "message", "role": "assistant", "content": "It is so."}
    native = NativeReply(profile.origin, (said, own))
    since = [_user("two")]
    for number in range(turns):
        since += [_ANSWER, _user(f"more {number}")]
    messages = (_user("one"), replace(_ANSWER, native=native), *since)
    for count in range(2, len(messages) + 1):
        body = json.loads(
            openai_responses_wire.encode(replace(plan, messages=messages[:count]), profile)
        )
        assert body["previous_response_id"] == "resp_1"
        assert [item["content"] for item in body["input"]] == [m.text for m in messages[2:count]]
