"""Replies in Anthropic's Messages format, and in formats that are almost it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.contract import plan_of
from tool_search.adapters.anthropic.reply import StreamedReply, from_wire
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.core.messages import ToolCall
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent, Usage
from tool_search.providers.profile_choice import profile_for

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
STOP = {"type": "message_stop"}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def use(**more: Any) -> dict[str, Any]:
    """Return the start of a call."""
    return {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}, **more}


def part(text: str) -> dict[str, Any]:
    """Return a part of a call's arguments."""
    return {"type": "input_json_delta", "partial_json": text}


def streamed(*events: Any) -> tuple[list[ReplyEvent], ReplyEnd]:
    """Return the events of a stream, and its end."""
    reply = StreamedReply(plan_of(), CLAUDE)
    read = [out for event in events for out in reply.read(event)]
    (end,) = reply.end()
    assert isinstance(end, ReplyEnd)
    return read, end


def whole(*content: Any, **more: Any) -> ReplyEnd:
    """Return a reply that is not streamed."""
    return from_wire({"content": list(content), **more}, plan_of(), CLAUDE)


def test_stream_usage_is_put_together_with_the_cache() -> None:
    """`input_tokens` leaves the cache out; nulls and missing figures keep what was said."""
    start = {
        "input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }  # fmt: skip
    more = {"output_tokens": 7, "input_tokens": None}
    _, end = streamed(
        {"type": "message_start", "message": {"usage": start}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": more},
        STOP,
    )
    assert end.usage == Usage(
        input_tokens=125, output_tokens=7, cache_read_tokens=100, cache_write_tokens=20
    )


@pytest.mark.parametrize(
    ("start", "deltas", "expected"),
    [
        (use(), [part(""), part('{"city":'), part(' "Rome"}')], '{"city": "Rome"}'),
        (use(), [part("")], "{}"),
        (use(), [], "{}"),
        (use(input={"city": "Rome"}), [], '{"city":"Rome"}'),
        (use(input='{"city"'), [], '{"city"'),
        (use(input=None), [], "{}"),
        (use(), [part('{"city":')], '{"city":'),
    ],
    ids=["parts", "empty part", "none", "in the start", "text", "null", "cut"],
)
def test_stream_arguments_are_put_together(start: Any, deltas: Any, expected: str) -> None:
    """As the model wrote them, broken or not; some endpoints send them with the start."""
    events, end = streamed(*block(0, start, *deltas), STOP)
    call = ToolCall(id="t1", name="get_weather", arguments=expected)
    assert events == [CallDelta(call)]
    assert end.message.tool_calls == (call,)
    assert end.stop_reason == "calls"


def test_stream_calls_without_ids_are_numbered_alike_in_delta_and_end() -> None:
    events, end = streamed(*block(0, use(id="")), *block(1, use(id=None)), STOP)
    assert [event.call.id for event in events if isinstance(event, CallDelta)] == [
        "call_0",
        "call_1",
    ]
    assert [call.id for call in end.message.tool_calls] == ["call_0", "call_1"]


def test_stream_text_of_several_blocks_is_joined() -> None:
    events, end = streamed(
        *block(0, {"type": "text", "text": "A"}, {"type": "text_delta", "text": "b"}),
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": "C"},
        },
        {"type": "ping"},
        STOP,
    )
    assert [event.text for event in events if isinstance(event, ReplyDelta)] == ["A", "b", "C"]
    assert end.message.text == "AbC"


def test_thinking_is_kept_with_the_blocks_around_it() -> None:
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    events, end = streamed(
        *block(
            0,
            empty,
            {"type": "thinking_delta", "thinking": "Hm."},
            {"type": "signature_delta", "signature": "sig"},
        ),
        *block(1, {"type": "text", "text": ""}),
        *block(2, use(), part('{"city": "Rome"}')),
        STOP,
    )
    assert len(events) == 1
    assert end.message.native is not None
    assert end.message.native.origin == CLAUDE.origin
    assert end.message.native.blocks == (THINKING, use(input={"city": "Rome"}))


def test_streamed_citations_are_kept_as_those_of_a_whole_reply() -> None:
    cited = {"type": "char_location", "cited_text": "Rome.", "document_index": 0}
    text = {"type": "text", "text": "", "citations": []}
    _, end = streamed(
        *block(0, THINKING),
        *block(
            1,
            text,
            {"type": "text_delta", "text": "In Rome."},
            {"type": "citations_delta", "citation": cited},
        ),
        *block(2, use(), part("{}")),
        STOP,
    )
    assert end.message.native is not None
    assert end.message.native.blocks[1] == {**text, "text": "In Rome.", "citations": [cited]}


def test_broken_arguments_go_back_as_none_beside_thinking() -> None:
    """The neutral form keeps them for the model to see its mistake."""
    _, end = streamed(*block(0, THINKING), *block(1, use(), part("{")), STOP)
    assert end.message.native is not None
    assert end.message.native.blocks[1]["input"] == {}
    assert end.message.tool_calls[0].arguments == "{"


def test_kept_call_without_an_id_has_the_one_that_its_result_will_name() -> None:
    """A block without a type is dropped: nobody takes it back."""
    end = whole(THINKING, {"text": "?"}, use(id=None), "odd")
    assert end.message.native is not None
    assert end.message.native.blocks == (THINKING, use(id="call_0"))
    assert end.message.tool_calls[0].id == "call_0"


def test_plain_reply_keeps_no_blocks() -> None:
    assert whole({"type": "text", "text": "Hi"}, use()).message.native is None


def test_server_side_search_is_left_out_of_the_reply() -> None:
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "tool_search_tool_bm25",
        "input": {"query": "x"},
    }
    result = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
    end = whole({"type": "text", "text": "Hi"}, search, result, use(), stop_reason="tool_use")
    assert end.message.native is None
    assert [call.id for call in end.message.tool_calls] == ["t1"]
    thoughtful = whole(THINKING, search, result, use())
    assert thoughtful.message.native is not None
    assert thoughtful.message.native.blocks == (THINKING, use())


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "answer"),
        ("stop_sequence", "answer"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        (None, "other"),
    ],
)
def test_stop_reason_is_read(reason: Any, expected: str) -> None:
    assert whole({"type": "text", "text": "x"}, stop_reason=reason).stop_reason == expected


@pytest.mark.parametrize("wire", [None, [], "x", 1, {}, {"content": "text"}])
def test_reply_of_another_shape_is_a_failure(wire: Any) -> None:
    """It is never taken for an empty answer."""
    with pytest.raises(ReplyFailedError) as caught:
        from_wire(wire, plan_of(), CLAUDE)
    assert caught.value.failure.code == "malformed_reply"
    with pytest.raises(ReplyFailedError):
        streamed({"type": "error"}, STOP)


@pytest.mark.parametrize(
    ("kind", "status"), [("overloaded_error", 529), ("rate_limit_error", 429), ("odd", None)]
)
def test_error_inside_a_reply_has_its_usual_status(kind: str, status: int | None) -> None:
    """So that the same thing happens as if it had come before the stream."""
    error = {"type": "error", "error": {"type": kind, "message": "No."}}
    with pytest.raises(ReplyFailedError) as caught:
        streamed(error)
    assert caught.value.failure.status == status
    assert (caught.value.failure.code, caught.value.failure.detail) == (kind, "No.")


def test_error_with_a_code_of_its_own_is_known_by_it() -> None:
    details = {"error_code": "tool_reference_unresolved"}
    error = {"type": "invalid_request_error", "message": "x", "details": details}
    with pytest.raises(ReplyFailedError) as caught:
        from_wire({"type": "error", "error": error}, plan_of(), CLAUDE)
    assert caught.value.failure.code == "tool_reference_unresolved"


def test_stream_without_message_stop_is_a_failure() -> None:
    with pytest.raises(ReplyFailedError) as caught:
        streamed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert caught.value.failure.code == "broken_reply"


def test_stream_odd_events_are_passed_over() -> None:
    events, end = streamed(
        {"type": "message_start", "message": None},
        {"type": "new_event"},
        {"type": "content_block_delta", "index": "x", "delta": {"type": "new_delta"}},
        {"type": "content_block_stop", "index": 7},
        {"type": "message_delta", "delta": None, "usage": None},
        STOP,
    )
    assert events == []
    assert end.message.text == ""
