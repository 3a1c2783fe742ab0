"""Streams that leave out what the documentation promises: read as far as they are sure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.anthropic.test_reply import STOP, block, part, streamed, use, whole
from tests.adapters.contract import plan_of
from tests.adapters.openai_chat.test_reply import GPT, delta, piece
from tests.adapters.openai_responses.test_reply import CALLED, COMPLETED, REASONED, SAID, response
from tests.adapters.openai_responses.test_reply import streamed as responses
from tool_search.adapters.openai_chat.reply import StreamedReply, from_wire
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.wire.values import ObjectEnd
from tool_search.core.messages import Message, ToolCall
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent
from tool_search.stores.record import message_from_dict, message_to_dict

USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def chat(*chunks: Any, announced: bool) -> list[ReplyEvent]:
    """Return the events of a Chat stream that ended with `[DONE]`, or without."""
    reply = StreamedReply(plan_of(), GPT)
    events = [event for chunk in chunks for event in reply.read(chunk)]
    return [*events, *reply.end(announced=announced)]


def end_of(events: list[ReplyEvent]) -> ReplyEnd:
    """Return the last event."""
    assert isinstance(events[-1], ReplyEnd)
    return events[-1]


def without_place(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of Responses as endpoints send them that number nothing."""
    return [{key: event[key] for key in event if key != "output_index"} for event in events]


def added(index: int, item: Any) -> dict[str, Any]:
    """Return the event of an item that begins."""
    opened = {**item, "arguments": ""} if "arguments" in item else {**item, "content": []}
    return {"type": "response.output_item.added", "output_index": index, "item": opened}


def done(index: int, item: Any) -> dict[str, Any]:
    """Return the event of a complete item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text_delta(index: int, item: Any, text: str) -> dict[str, Any]:
    """Return the event of more text of an item."""
    kind = "response.output_text.delta"
    return {"type": kind, "output_index": index, "item_id": item["id"], "delta": text}


@pytest.mark.parametrize("deltas", [[], [part("")], [part('{"city":')], [part('{"city": "Oslo"}')]])
def test_call_without_its_stop_is_never_run(deltas: list[Any]) -> None:
    """The service never said that it was complete, even if it looks so."""
    events, end = streamed(*block(0, use(), *deltas)[:-1], STOP)
    assert events == []
    (call,) = end.message.tool_calls
    assert call.is_cut


def test_call_without_its_stop_leaves_the_others_whole() -> None:
    _, end = streamed(*block(0, use(id="a")), *block(1, use(id="b"))[:-1], STOP)
    assert [(call.id, call.is_cut) for call in end.message.tool_calls] == [
        ("a", False),
        ("b", True),
    ]


def test_thinking_without_its_stop_is_not_kept() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    said = {"type": "thinking_delta", "thinking": "Hm"}
    _, end = streamed(
        *block(0, thinking, said)[:-1],
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"}),
        STOP,
    )
    assert (end.message.text, end.message.native) == ("Hi", None)


def test_input_of_what_the_service_runs_is_an_object() -> None:
    """Joined from its deltas: as text, the block would be refused when it goes back."""
    start = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    _, end = streamed(
        *block(0, start, part(""), part('{"query": "we'), part('ather"}')),
        *block(1, result),
        *block(2, {"type": "text", "text": "Sunny."}),
        STOP,
    )
    assert end.message.native is not None
    assert end.message.native.blocks[0]["input"] == {"query": "weather"}
    assert end.message.tool_calls == ()


def test_search_that_the_length_has_cut_is_not_kept() -> None:
    start = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    end = whole(thinking, start, stop_reason="max_tokens")
    assert end.message.native is not None
    assert end.message.native.blocks == (thinking,)


def test_blocks_without_numbers_are_told_apart() -> None:
    events = [*block(0, use(id="a"), part('{"n":1}')), *block(1, use(id="b"), part('{"n":2}'))]
    _, end = streamed(*({k: e[k] for k in e if k != "index"} for e in events), STOP)
    assert [call.arguments for call in end.message.tool_calls] == ['{"n":1}', '{"n":2}']


def test_chat_that_ends_with_usage_and_done_is_a_reply() -> None:
    """Recorded of Snowflake Cortex: no chunk has a finish reason."""
    events = chat(delta(content="Sun"), delta(content="ny."), USAGE, announced=True)
    end = end_of(events)
    assert (end.message.text, end.stop_reason) == ("Sunny.", "answer")
    assert end.usage.input_tokens == 7
    call = piece('{"city": "Paris"}', index=0, id="a", name="get_weather")
    called = end_of(chat(delta(tool_calls=[call]), USAGE, announced=True))
    assert called.stop_reason == "calls"
    assert [call.is_cut for call in called.message.tool_calls] == [False]


def test_chat_without_a_finish_reason_runs_no_open_call() -> None:
    call = piece('{"city": "Par', index=0, id="a", name="get_weather")
    end = end_of(chat(delta(tool_calls=[call]), USAGE, announced=True))
    assert [call.is_cut for call in end.message.tool_calls] == [True]


@pytest.mark.parametrize(
    ("chunks", "announced"),
    [([], True), ([delta(content="Sun")], True), ([delta(content="Sun"), USAGE], False)],
    ids=["nothing", "no usage", "no end"],
)
def test_chat_that_just_stops_is_broken(chunks: list[Any], *, announced: bool) -> None:
    with pytest.raises(ReplyFailedError) as caught:
        chat(*chunks, announced=announced)
    assert caught.value.failure.code == "broken_reply"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("STOP", "answer"), ("eos_token", "answer"), ("MAX_TOKENS", "length"),
        ("model_length", "length"), ("model_context_window_exceeded", "length"),
        ("sensitive", "refusal"), ("content_filter: PROHIBITED_CONTENT", "refusal"),
        ("SAFETY", "refusal"), ("function_call_filter: MALFORMED_FUNCTION_CALL", "other"),
        ("", "other"), (None, "other"), (7, "other"),
    ],
)  # fmt: skip
def test_words_of_vendors_mean_the_same(reason: object, expected: str) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": reason}
    assert from_wire({"choices": [choice]}, plan_of(), GPT).stop_reason == expected


def test_error_beside_a_finish_reason_is_the_failure() -> None:
    error = {"code": 502, "message": "Provider returned error"}
    last = {"choices": [{"delta": {}, "finish_reason": "error", "error": error}]}
    with pytest.raises(ReplyFailedError) as caught:
        chat(delta(content="Sun"), last, announced=True)
    assert (caught.value.failure.status, caught.value.failure.detail) == (
        502,
        "Provider returned error",
    )


def test_responses_without_places_are_told_apart_by_their_ids() -> None:
    other = {**CALLED, "id": "fc_2", "call_id": "call_2", "arguments": '{"city": "Rome"}'}
    events = responses(
        [
            *without_place(
                added(0, SAID),
                text_delta(0, SAID, "Sunny."),
                done(0, SAID),
                added(1, CALLED),
                added(2, other),
                done(2, other),
                done(1, CALLED),
            ),
            COMPLETED,
        ]
    )
    assert [event.text for event in events if isinstance(event, ReplyDelta)] == ["Sunny."]
    assert [call.id for call in end_of(events).message.tool_calls] == ["call_1", "call_2"]
    assert [event.call.id for event in events if isinstance(event, CallDelta)] == [
        "call_2",
        "call_1",
    ]


def test_responses_whose_items_all_have_one_place_are_told_apart() -> None:
    other = {**CALLED, "id": "fc_2", "call_id": "call_2"}
    items = (SAID, CALLED, other)
    events = responses([event for i in items for event in (added(0, i), done(0, i))] + [COMPLETED])
    end = end_of(events)
    assert end.message.text == "Sunny."
    assert [call.id for call in end.message.tool_calls] == ["call_1", "call_2"]


def test_responses_item_that_comes_twice_counts_once() -> None:
    """Its call would be run twice."""
    events = responses([done(0, CALLED), done(0, CALLED), COMPLETED])
    assert [call.id for call in end_of(events).message.tool_calls] == ["call_1"]


def test_responses_call_that_only_opened_is_never_run() -> None:
    """The last event leaves it out, so nobody said what it was to be."""
    fragment = {
        "type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"ci',
    }  # fmt: skip
    events = responses([added(0, CALLED), fragment, COMPLETED])
    assert [call.is_cut for call in end_of(events).message.tool_calls] == [True]


def test_responses_call_with_whole_arguments_needs_no_end_of_its_item() -> None:
    finished = {
        "type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": '{"a":1}',
    }  # fmt: skip
    (call,) = end_of(responses([added(0, CALLED), finished, COMPLETED])).message.tool_calls
    assert (call.arguments, call.is_cut) == ('{"a":1}', False)


def test_responses_item_that_was_not_streamed_is_taken_from_the_last_event() -> None:
    last = {"type": "response.completed", "response": response(REASONED, SAID, CALLED)}
    events = responses([done(0, REASONED), done(1, SAID), added(2, CALLED), last])
    assert [call.is_cut for call in end_of(events).message.tool_calls] == [False]
    assert [event.call.id for event in events if isinstance(event, CallDelta)] == ["call_1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": "}"}', True), ('{"a": "\\"}"', False), ('{"a": "\\\\"}', True), ("", False),
        ("{", False), ("{} \n", True), ("{}x", False), ('{"a": {}}', True), ('{"a": {}', False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_end_of_an_object_is_seen_however_it_is_cut(
    arguments: str, size: int, *, expected: bool
) -> None:
    end = ObjectEnd()
    for start in range(0, len(arguments), size):
        end.feed(arguments[start : start + size])
    assert end.is_over is expected


def test_call_that_was_cut_is_kept_so() -> None:
    call = ToolCall(id="a", name="f", arguments="{", is_cut=True)
    message = Message(role="assistant", tool_calls=(call, ToolCall(id="b", name="f")))
    kept = json.loads(json.dumps(message_to_dict(message)))
    assert message_from_dict(kept) == message
    assert "is_cut" not in kept["tool_calls"][1]
