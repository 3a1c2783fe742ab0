"""OpenAI Responses replies, read: whole, and event by event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.adapters.contract import plan_of
from tests.adapters.openai_responses.test_wire import CLIENT, KEEPING, found, searching
from tool_search.adapters.openai_responses.reply import StreamedReply, from_wire
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent

SAID = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
}  # fmt: skip
CALLED = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
    "arguments": '{"city": "Paris"}', "status": "completed",
}  # fmt: skip
SEARCHED = {
    "type": "tool_search_call", "id": "tsc_1", "call_id": "call_2", "execution": "client",
    "status": "completed", "arguments": {"query": "mail"},
}  # fmt: skip
REASONED = {
    "type": "reasoning", "id": "rs_1", "summary": [], "content": [], "encrypted_content": "x",
}  # fmt: skip


def response(*output: Any, **more: Any) -> dict[str, Any]:
    """Return a response with these items."""
    return {"id": "resp_1", "status": "completed", "output": list(output), **more}


def read(*output: Any, **more: Any) -> ReplyEnd:
    """Return the end of a reply with these items."""
    return from_wire(response(*output, **more), searching(), CLIENT)


def done(index: int, item: Any) -> dict[str, Any]:
    """Return the event of a complete item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(index: int, text: str) -> dict[str, Any]:
    """Return the event of more text."""
    return {"type": "response.output_text.delta", "output_index": index, "delta": text}


COMPLETED = {"type": "response.completed", "response": response()}


def streamed(events: Sequence[Any]) -> list[ReplyEvent]:
    """Return the reading of a stream's events."""
    reply = StreamedReply(searching(), CLIENT)
    read_events = [made for event in events for made in reply.read(event)]
    return [*read_events, *reply.end()]


def test_text_and_calls_come_in_order() -> None:
    end = read(SAID, CALLED, SEARCHED)
    assert end.message.text == "Sunny."
    assert end.message.tool_calls == (
        ToolCall(id="call_1", name="get_weather", arguments='{"city": "Paris"}'),
        ToolCall(id="call_2", name="tool_search", arguments='{"query":"mail"}'),
    )
    assert end.stop_reason == "calls"


def test_search_is_called_what_the_plan_calls_it() -> None:
    plan = searching()
    entry = plan.tools[0]
    renamed = Tool(name="find_tools", description="Finds tools.")
    plan = type(plan)(
        strategy="openai_responses",
        tools=type(plan.tools)([type(entry)(renamed, is_search=True)]),
        messages=plan.messages,
    )
    (call,) = from_wire(response(SEARCHED), plan, CLIENT).message.tool_calls
    assert call.name == "find_tools"


def test_name_of_a_found_tool_comes_back_canonical() -> None:
    tool = Tool(name="files.read")
    plan = searching(*found(tool))
    wire = "files_read_601e4eb6"
    item = {**CALLED, "name": wire, "namespace": wire}
    (call,) = from_wire(response(item), plan, CLIENT).message.tool_calls
    assert call.name == "files.read"


def test_messages_of_one_reply_are_set_apart() -> None:
    second = {**SAID, "content": [{"type": "output_text", "text": "Warm."}]}
    assert read(SAID, second).message.text == "Sunny.\n\nWarm."
    stream = [delta(0, "Sun"), delta(0, "ny."), done(0, SAID), delta(1, "Warm."), done(1, second)]
    events = streamed([*stream, COMPLETED])
    texts = [event.text for event in events if isinstance(event, ReplyDelta)]
    assert texts == ["Sun", "ny.", "\n\nWarm."]
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].message.text == "".join(texts)


def test_search_of_the_service_is_no_call_and_stays_in_the_reply() -> None:
    """Without nulls, but for the id that it does not have."""
    call = {**SEARCHED, "execution": "server", "call_id": None, "arguments": {"paths": ["mail"]}}
    tools = [
        {
            "type": "namespace",
            "name": "mail",
            "tools": [{"type": "function", "name": "send_mail", "output_schema": None}],
        }
    ]
    output = {
        "type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
        "status": "completed", "tools": tools,
    }  # fmt: skip
    end = read(call, output, SAID)
    assert end.message.tool_calls == ()
    assert end.message.native is not None
    first, second, _ = end.message.native.blocks
    assert (first["call_id"], first["arguments"]) == (None, {"paths": ["mail"]})
    assert second["tools"][0]["tools"] == [{"type": "function", "name": "send_mail"}]
    assert "id" not in second


def test_reply_that_the_neutral_form_holds_has_no_items_of_its_own() -> None:
    """Only ids would be lost, and they are not sent."""
    assert read(SAID, CALLED, SEARCHED).message.native is None


@pytest.mark.parametrize(
    "output",
    [(REASONED, SAID), ({**SAID, "phase": "final_answer"},), ({**CALLED, "namespace": "mail"},)],
    ids=["reasoning", "phase", "namespace"],
)
def test_reply_keeps_the_items_that_say_more(output: tuple[Any, ...]) -> None:
    end = read(*output)
    assert end.message.native is not None
    blocks = end.message.native.blocks
    assert [block["type"] for block in blocks] == [item["type"] for item in output]
    assert [block["type"] == "reasoning" for block in blocks] == ["id" in b for b in blocks]
    assert all("status" not in block for block in blocks)


@pytest.mark.parametrize("last", [(), ({**SAID, "content": []},)], ids=["cut short", "empty"])
def test_reasoning_that_nothing_follows_is_left_out(last: tuple[Any, ...]) -> None:
    end = read(REASONED, SAID, {**REASONED, "id": "rs_2"}, *last)
    assert end.message.native is not None
    assert [block["type"] for block in end.message.native.blocks] == ["reasoning", "message"]


def test_reasoning_without_its_content_is_left_out() -> None:
    """The service would look for it, and may not have kept it."""
    bare = {key: value for key, value in REASONED.items() if key != "encrypted_content"}
    assert read(bare, SAID).message.native is None


def test_broken_arguments_go_back_as_nothing() -> None:
    end = read(REASONED, {**CALLED, "arguments": '{"city":'})
    assert not end.message.tool_calls[0].is_readable
    assert end.message.native is not None
    assert end.message.native.blocks[1]["arguments"] == "{}"


def test_kept_reply_has_its_id_with_it() -> None:
    native = from_wire(response(SAID), plan_of(), KEEPING).message.native
    assert native is not None
    assert native.blocks[-1]["id"] == "resp_1"
    assert len(native.blocks[-1]["input"]) == 32


def test_usage_has_cached_tokens_among_the_input() -> None:
    details = {"cached_tokens": 64, "cache_write_tokens": 8}
    usage = {"input_tokens": 100, "input_tokens_details": details, "output_tokens": 7}
    counted = read(SAID, usage=usage).usage
    assert (counted.input_tokens, counted.output_tokens) == (100, 7)
    assert (counted.cache_read_tokens, counted.cache_write_tokens) == (64, 8)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("max_output_tokens", "length"), ("content_filter", "refusal"), ("odd", "other")],
)
def test_incomplete_reply_says_why(reason: str, expected: str) -> None:
    more = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    end = read(SAID, **more)
    assert (end.stop_reason, end.message.text) == (expected, "Sunny.")
    events = streamed(
        [done(0, SAID), {"type": "response.incomplete", "response": response(**more)}]
    )
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].stop_reason == expected


def test_refusal_is_text_and_a_reason() -> None:
    item = {**SAID, "content": [{"type": "refusal", "refusal": "No."}]}
    assert (read(item).stop_reason, read(item).message.text) == ("refusal", "No.")
    said = {"type": "response.refusal.delta", "output_index": 0, "delta": "No."}
    assert streamed([said, done(0, item), COMPLETED])[0] == ReplyDelta("No.")


def test_interleaved_calls_are_told_apart() -> None:
    """Arguments that the last event of an item leaves out are those that were streamed."""
    other = {**CALLED, "call_id": "call_7", "arguments": ""}
    pieces = [
        {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}
        for index, text in ((0, '{"a":'), (1, '{"b":'), (0, "1}"), (1, "2}"))
    ]
    ends = [done(1, other), done(0, {**CALLED, "arguments": ""})]
    events = streamed([*pieces, *ends, COMPLETED])
    deltas = [event.call.arguments for event in events if isinstance(event, CallDelta)]
    assert deltas == ['{"b":2}', '{"a":1}']
    assert isinstance(events[-1], ReplyEnd)
    assert [call.id for call in events[-1].message.tool_calls] == ["call_1", "call_7"]


def test_output_of_the_last_event_counts_where_no_item_was_streamed() -> None:
    events = streamed([{"type": "response.completed", "response": response(SAID, CALLED)}])
    assert [type(event) for event in events] == [ReplyDelta, CallDelta, ReplyEnd]
    assert events[0] == ReplyDelta("Sunny.")


def test_text_that_came_without_deltas_is_streamed_at_once() -> None:
    """And never twice."""
    assert streamed([done(0, SAID), COMPLETED])[0] == ReplyDelta("Sunny.")
    spoken = [delta(0, "Sunny."), delta(1, "Sunny."), done(0, SAID), done(1, SAID)]
    events = streamed([*spoken, COMPLETED])
    assert [type(event) for event in events] == [ReplyDelta, ReplyDelta, ReplyEnd]


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({"type": "error", "code": "server_error", "message": "No."}, 500, "server_error"),
        ({"type": "error", "code": None, "message": "No."}, None, None),
        (
            {"type": "error", "error": {"type": "rate_limit_error", "message": "No."}},
            429,
            "rate_limit_error",
        ),
    ],
)
def test_error_event_is_a_failure(event: Any, status: int | None, code: str | None) -> None:
    """With the status that it would have outside of a stream."""
    with pytest.raises(ReplyFailedError) as caught:
        streamed([event])
    failure = caught.value.failure
    assert (failure.detail, failure.status, failure.code) == ("No.", status, code)


def test_failed_reply_is_a_failure() -> None:
    failed = response(
        status="failed", error={"code": "rate_limit_exceeded", "message": "Slow down."}
    )
    with pytest.raises(ReplyFailedError, match=r"Slow down\.") as caught:
        streamed([{"type": "response.failed", "response": failed}])
    assert caught.value.failure.status == 429
    with pytest.raises(ReplyFailedError, match="not a response"):
        read(status="failed", error=None)


def test_stream_without_its_last_event_is_broken() -> None:
    with pytest.raises(ReplyFailedError, match=r"response\.completed"):
        streamed([done(0, CALLED)])


@pytest.mark.parametrize("reply", [None, [], {}, {"output": None}, {"output": "x"}, "x"])
def test_what_is_no_response_is_malformed(reply: Any) -> None:
    with pytest.raises(ReplyFailedError) as caught:
        from_wire(reply, plan_of(), CLIENT)
    assert caught.value.failure.code == "malformed_reply"


@pytest.mark.parametrize(
    "item",
    [
        None,
        "x",
        {"type": None},
        {"type": "message"},
        {"type": "message", "content": "x"},
        {"type": "web_search_call", "id": "ws_1"},
        {**CALLED, "name": None, "arguments": None, "call_id": None},
        {**SEARCHED, "arguments": "not an object"},
    ],
    ids=json.dumps,
)
def test_odd_item_is_read_as_far_as_it_goes(item: Any) -> None:
    end = read(item, SAID)
    assert end.message.text == "Sunny."
    assert isinstance(streamed([done(0, item), done(1, SAID), COMPLETED])[-1], ReplyEnd)
