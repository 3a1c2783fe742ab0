"""Replies of calls alone: no empty text is reported, and no two calls become one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.adapters.contract import plan_of
from tests.adapters.recorded.traffic import READERS
from tool_search.adapters.sdk.reply_stream import reply_events
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.settings import Dialect
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession

PROFILES = {
    "anthropic": profile_for("anthropic", "claude-sonnet-4-6"),
    "openai_chat": profile_for("openai_chat", "gpt-5.4"),
    "openai_responses": profile_for("openai_responses", "gpt-5.4"),
}
USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
EMPTY = {"type": "text", "text": ""}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
SILENT = {
    "type": "message", "id": "msg_1", "role": "assistant",
    "content": [{"type": "output_text", "text": ""}],
}  # fmt: skip


def completion(**message: Any) -> dict[str, Any]:
    """Return a whole reply of Chat Completions."""
    said = {"role": "assistant", **message}
    return {"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """Return a part of a streamed one."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def response(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a whole reply of Responses."""
    return {"id": "resp_1", "status": "completed", "output": list(items)}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a block of Anthropic's."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def item(index: int, content: dict[str, Any], *texts: str) -> list[dict[str, Any]]:
    """Return the events of an item of Responses."""
    place = {"output_index": index}
    return [
        {"type": "response.output_item.added", "item": content, **place},
        *({"type": "response.output_text.delta", "delta": text, **place} for text in texts),
        {"type": "response.output_item.done", "item": content, **place},
    ]


WHOLE: list[tuple[Dialect, Any]] = [
    ("anthropic", {"content": [USE], "stop_reason": "tool_use"}),
    ("anthropic", {"content": [EMPTY, USE], "stop_reason": "tool_use"}),
    ("openai_chat", completion(content=None, tool_calls=[CALL])),
    ("openai_chat", completion(content="", refusal="", tool_calls=[CALL])),
    ("openai_chat", completion(content=[], tool_calls=[CALL])),
    ("openai_responses", response(ITEM)),
    ("openai_responses", response(SILENT, ITEM)),
]
START = {"type": "message_start", "message": {"usage": {}}}
STOP = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
INPUT = {"type": "input_json_delta", "partial_json": "{}"}
STREAMED: list[tuple[Dialect, list[Any]]] = [
    ("anthropic", [START, *block(0, USE, INPUT), *STOP]),
    (
        "anthropic",
        [START, *block(0, EMPTY, {"type": "text_delta", "text": ""}), *block(1, USE, INPUT), *STOP],
    ),
    ("openai_chat", [chunk(content=None), chunk(tool_calls=[CALL]), chunk("tool_calls")]),
    (
        "openai_chat",
        [chunk(content="", refusal=""), chunk(content="", tool_calls=[CALL]), chunk("tool_calls")],
    ),
    ("openai_responses", [*item(0, ITEM), {"type": "response.completed", "response": response()}]),
    (
        "openai_responses",
        [*item(0, SILENT, ""), *item(1, ITEM),
         {"type": "response.completed", "response": response(SILENT, ITEM)}],
    ),
    ("openai_responses", [{"type": "response.completed", "response": response(ITEM)}]),
]  # fmt: skip


def streamed(dialect: Dialect, events: Iterable[Any]) -> list[ReplyEvent]:
    """Return the contents of a streamed reply."""
    reply = READERS[dialect].StreamedReply(plan_of(), PROFILES[dialect])
    told = [event for given in events for event in reply.read(given)]
    return [*told, *reply.end()]


@pytest.mark.parametrize(("dialect", "reply"), WHOLE)
def test_whole_reply_of_calls_alone_tells_of_no_text(dialect: Dialect, reply: Any) -> None:
    """A bot would send an empty message to its user."""
    events = list(reply_events(READERS[dialect].from_wire(reply, plan_of(), PROFILES[dialect])))
    assert [type(event) for event in events] == [CallDelta, ReplyEnd]


@pytest.mark.parametrize(("dialect", "events"), STREAMED)
def test_streamed_reply_of_calls_alone_tells_of_no_text(
    dialect: Dialect, events: list[Any]
) -> None:
    told = streamed(dialect, events)
    assert not [event for event in told if isinstance(event, ReplyDelta)]
    assert [type(event) for event in told] == [CallDelta, ReplyEnd]


def part(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    """Return a piece of a call, all calls under one id."""
    return {"index": index, "id": "same", "function": {"arguments": arguments, **more}}


ORDERS = {
    "one after the other": [
        [part(0, '{"x"', name="f")], [part(0, ": 1}")],
        [part(1, '{"y"', name="g")], [part(1, ": 2}")],
    ],
    "interleaved": [
        [part(0, '{"x"', name="f")], [part(1, '{"y"', name="g")],
        [part(0, ": 1}")], [part(1, ": 2}")],
    ],
    "both in one chunk": [
        [part(0, '{"x"', name="f"), part(1, '{"y"', name="g")], [part(0, ": 1}"), part(1, ": 2}")],
    ],
    "the same tool": [
        [part(0, '{"x": 1}', name="f")], [part(1, '{"y": 2}', name="f")],
    ],
}  # fmt: skip


@pytest.mark.parametrize("pieces", ORDERS.values(), ids=ORDERS.keys())
def test_calls_with_one_id_are_told_apart_by_their_index(pieces: list[Any]) -> None:
    chunks = [*(chunk(tool_calls=parts) for parts in pieces), chunk("tool_calls")]
    end = streamed("openai_chat", chunks)[-1]
    assert isinstance(end, ReplyEnd)
    calls = end.message.tool_calls
    assert [call.parsed_arguments() for call in calls] == [{"x": 1}, {"y": 2}]
    session = ToolSearchSession(ToolCatalog([Tool(name="f"), Tool(name="g")]))
    session.begin_turn("Hi.", profile=PROFILES["openai_chat"])
    own = session.accept(end.message)
    assert [call.arguments for call in own] == [call.arguments for call in calls]
    assert len({call.id for call in own}) == 2


def begun(arguments: str, name: str, call_id: str, **place: int) -> dict[str, Any]:
    """Return the first piece of a call."""
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, **place}


FOLLOWED = {
    "by their ids, all of index 0": [
        begun('{"x"', "f", "a", index=0), begun('{"y"', "g", "b", index=0),
        {"index": 0, "id": "a", "function": {"arguments": ": 1}"}},
        {"index": 0, "id": "b", "function": {"arguments": ": 2}"}},
    ],
    "by their ids, later without an index": [
        begun('{"x"', "f", "a", index=0), begun('{"y"', "g", "b", index=1),
        {"id": "a", "function": {"arguments": ": 1}"}},
        {"id": "b", "function": {"arguments": ": 2}"}},
    ],
    "by their order, later without id and index": [
        begun('{"x"', "f", "a", index=0), {"function": {"arguments": ": 1}"}},
        begun('{"y"', "g", "b", index=1), {"function": {"arguments": ": 2}"}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("pieces", FOLLOWED.values(), ids=FOLLOWED.keys())
def test_pieces_of_a_call_come_together_whatever_names_the_call(pieces: list[Any]) -> None:
    chunks = [*(chunk(tool_calls=[piece]) for piece in pieces), chunk("tool_calls")]
    end = streamed("openai_chat", chunks)[-1]
    assert isinstance(end, ReplyEnd)
    calls = end.message.tool_calls
    assert [(call.id, call.name) for call in calls] == [("a", "f"), ("b", "g")]
    assert [call.parsed_arguments() for call in calls] == [{"x": 1}, {"y": 2}]
