"""Replies of endpoints that are compatible with OpenAI's, each in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.contract import plan_of
from tool_search.adapters.openai_chat.reply import StreamedReply, from_wire
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.core.messages import ToolCall
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent, Usage
from tool_search.providers.profile_choice import profile_for

GPT = profile_for("openai_chat", "gpt-5.4")


def delta(finish_reason: str | None = None, **content: Any) -> dict[str, Any]:
    """Return a chunk."""
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish_reason}]}


def piece(arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Return a part of a call; `name` is in its function."""
    function: dict[str, Any] = {"arguments": arguments} if arguments is not None else {}
    if "name" in more:
        function["name"] = more.pop("name")
    return {**more, "function": function}


def streamed(*chunks: Any) -> tuple[list[ReplyEvent], ReplyEnd]:
    """Return the events of a stream, and its end."""
    reply = StreamedReply(plan_of(), GPT)
    events = [event for chunk in chunks for event in reply.read(chunk)]
    *last, end = reply.end()
    assert isinstance(end, ReplyEnd)
    return [*events, *last], end


def calls_of(*pieces: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the calls that a stream of these parts makes."""
    _, end = streamed(*(delta(tool_calls=part) for part in pieces), delta("tool_calls"))
    return [(call.id, call.name, call.arguments) for call in end.message.tool_calls]


DOCUMENTED = [
    [piece("", index=0, id="a", name="f", type="function")],
    [piece('{"x"', index=0)],
    [piece(": 1}", index=0)],
    [piece("", index=1, id="b", name="g")],
    [piece("{}", index=1)],
]
INTERLEAVED = [
    [piece("", index=0, id="a", name="f"), piece("", index=1, id="b", name="g")],
    [piece('{"x"', index=0), piece("{", index=1)],
    [piece("}", index=1), piece(": 1}", index=0)],
]
WHOLE = [piece('{"x": 1}', id="a", name="f"), piece("{}", id="b", name="g")]
CALLS = {
    "as documented": DOCUMENTED,
    "interleaved": INTERLEAVED,
    "all at once, no index": [WHOLE],
    "one by one, no index": [[part] for part in WHOLE],
    "index 0 for all": [[{**part, "index": 0}] for part in WHOLE],
    "in parts, by id alone": [
        [piece('{"x"', id="a", name="f")],
        [piece("{}", id="b", name="g")],
        [piece(": 1}", id="a")],
    ],
    "name in every part": [
        [piece('{"x"', index=0, id="a", name="f")],
        [piece(": 1}", index=0, id="a", name="f")],
        [piece("{}", index=1, id="b", name="g")],
    ],
    "another id in every part (vLLM)": [
        [piece('{"x"', index=0, id="a", name="f")],
        [piece(": 1}", index=0, id="a2")],
        [piece("{}", index=1, id="b", name="g")],
    ],
}


@pytest.mark.parametrize("pieces", CALLS.values(), ids=CALLS.keys())
def test_stream_calls_are_put_together(pieces: list[Any]) -> None:
    assert calls_of(*pieces) == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


@pytest.mark.parametrize("given", [{}, {"id": ""}, {"id": None}, {"index": 0}])
def test_stream_calls_without_ids_are_told_apart_and_numbered(given: dict[str, Any]) -> None:
    parts = [[piece('{"x": 1}', name="f", **given)], [piece("{}", name="g", **given)]]
    assert calls_of(*parts) == [("call_0", "f", '{"x": 1}'), ("call_1", "g", "{}")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"x": 1}, '{"x":1}'), (None, "{}"), ("", "{}"), ([1], "[1]"), ("{", "{")],
)
def test_arguments_of_any_type_become_text(arguments: Any, expected: str) -> None:
    """An object is written as JSON; other arguments stay broken, for the model to correct."""
    (call,) = calls_of([piece(arguments, index=0, id="a", name="f")])
    assert call[2] == expected
    wire = {"choices": [{"message": {"tool_calls": [piece(arguments, id="a", name="f")]}}]}
    assert from_wire(wire, plan_of(), GPT).message.tool_calls[0].arguments == expected


def test_stop_beside_calls_means_calls() -> None:
    _, end = streamed(delta(tool_calls=WHOLE), delta("stop"))
    assert end.stop_reason == "calls"
    message = {"content": None, "tool_calls": WHOLE}
    for reason in ("stop", None, "odd"):
        wire = {"choices": [{"message": message, "finish_reason": reason}]}
        assert from_wire(wire, plan_of(), GPT).stop_reason == "calls"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("stop", "answer"), ("length", "length"), ("content_filter", "refusal"), ("odd", "other")],
)
def test_finish_reason_is_read(reason: str, expected: str) -> None:
    assert streamed(delta(content="x"), delta(reason))[1].stop_reason == expected


def test_stream_odd_chunks_are_passed_over() -> None:
    """A repeated role, null deltas, empty choices, other choices, parts for text."""
    events, end = streamed(
        delta(role="assistant", content=""),
        delta(role="assistant", content="Hel"),
        {"choices": [{"delta": None}]},
        {"choices": None},
        {"choices": [{"index": 1, "delta": {"content": "no"}}]},
        {"error": None, "choices": []},
        delta(content=[{"type": "text", "text": "lo"}, {"type": "thinking"}]),
        delta("stop", content=None),
        {},
    )
    assert events == [ReplyDelta("Hel"), ReplyDelta("lo")]
    assert end.message.content == "Hello"


USAGES = {
    "last chunk": [{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}],
    "in the choice (Moonshot)": [
        {"choices": [{"delta": {}, "usage": {"prompt_tokens": 9, "completion_tokens": 2}}]}
    ],
    "in every chunk": [
        {"usage": {"prompt_tokens": 9, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ],
}


@pytest.mark.parametrize("chunks", USAGES.values(), ids=USAGES.keys())
def test_stream_usage_is_found(chunks: list[Any]) -> None:
    _, end = streamed(delta("stop", content="x"), *chunks)
    assert end.usage == Usage(input_tokens=9, output_tokens=2)


def test_usage_may_be_missing_or_odd() -> None:
    """Some endpoints never send it."""
    assert streamed(delta("stop", content="x"))[1].usage == Usage()
    odd = {"usage": {"prompt_tokens": None, "completion_tokens": "2", "prompt_tokens_details": 1}}
    assert streamed(delta("stop", content="x"), odd)[1].usage == Usage()


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 5}},
        {"prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4},
        {"cached_tokens": 5},
    ],
    ids=["OpenAI", "DeepSeek", "Moonshot"],
)
def test_usage_has_cached_tokens(cached: dict[str, Any]) -> None:
    _, end = streamed(delta("stop", content="x"), {"usage": {"prompt_tokens": 9, **cached}})
    assert end.usage == Usage(input_tokens=9, cache_read_tokens=5)


def test_thinking_and_signatures_are_kept_and_not_shown() -> None:
    call = piece("{}", index=0, id="a", name="f", extra_content={"google": {"s": "x"}})
    events, end = streamed(
        delta(reasoning_content="Hm"), delta(reasoning_content="."), delta(tool_calls=[call]),
        delta("tool_calls"),
    )  # fmt: skip
    assert events == [CallDelta(ToolCall(id="a", name="f"))]
    assert end.message.native is not None
    assert end.message.native.blocks == (
        {"reasoning_content": "Hm.", "extra_content": [{"google": {"s": "x"}}]},
    )


def detail(**fields: Any) -> dict[str, Any]:
    """Return a chunk with one entry of `reasoning_details`."""
    chunk = delta(content="")
    chunk["choices"][0]["delta"] |= {"reasoning": "…", "reasoning_details": [fields]}
    return chunk


def test_entries_of_reasoning_details_are_joined_as_they_were_before_the_stream() -> None:
    """Text and summaries come in pieces, signatures after them, encrypted data whole."""
    text, summary = {"type": "reasoning.text"}, {"type": "reasoning.summary"}
    data = {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1"}
    _, end = streamed(
        detail(**summary, summary="Be ", index=0),
        detail(**summary, summary="brief", index=0),
        detail(**data, index=0),
        detail(**text, text="First ", index=1, signature=None),
        detail(**text, text="thought", index=1),
        detail(**text, signature="EqRk", index=1),
        detail(**text, text="Second", index=2),
        delta("stop"),
        delta(content="Hi"),
    )
    assert end.message.native is not None
    assert end.message.native.blocks == (
        {
            "reasoning_details": [
                {**summary, "summary": "Be brief", "index": 0},
                {**data, "index": 0},
                {**text, "text": "First thought", "signature": "EqRk", "index": 1},
                {**text, "text": "Second", "index": 2},
            ]
        },
    )


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_by_the_name_that_it_came_by(name: str) -> None:
    _, end = streamed(
        delta(**{name: "Hm"}), delta(**{name: "."}), delta(content="Hi"), delta("stop")
    )
    assert end.message.native is not None
    assert end.message.native.blocks == ({name: "Hm."},)


def test_reasoning_longer_than_a_model_writes_is_not_kept() -> None:
    """It would be stored, and sent with every later request."""
    _, end = streamed(
        *[delta(reasoning_content="x" * 100_000)] * 100, delta(content="Hi"), delta("stop")
    )
    assert (end.message.text, end.message.native) == ("Hi", None)


def test_refusal_is_the_text() -> None:
    events, end = streamed(delta(refusal="I "), delta(refusal="cannot."), delta("stop"))
    assert [event.text for event in events if isinstance(event, ReplyDelta)] == ["I ", "cannot."]
    assert (end.message.text, end.stop_reason) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"message": "Slow", "type": "rate_limit_error"}, 429, "rate_limit_error"),
        ({"message": "Down", "code": 502}, 502, "502"),
        ({"message": "Long", "type": "x", "code": "context_length_exceeded"}, None, None),
        ("out of memory", None, None),
        ({"message": "Busy", "type": "server_error", "code": ""}, 500, "server_error"),
    ],
)
def test_error_inside_a_reply_is_a_failure(error: Any, status: Any, code: Any) -> None:
    for read in (
        lambda: streamed({"error": error}),
        lambda: from_wire({"error": error}, plan_of(), GPT),
    ):
        with pytest.raises(ReplyFailedError) as caught:
            read()
        assert caught.value.failure.status == status
        assert code is None or caught.value.failure.code == code


@pytest.mark.parametrize("wire", [None, [], "x", {}, {"choices": []}, {"choices": [{}]}])
def test_reply_of_another_shape_is_a_failure(wire: Any) -> None:
    """It is never taken for an empty answer."""
    with pytest.raises(ReplyFailedError) as caught:
        from_wire(wire, plan_of(), GPT)
    assert caught.value.failure.code == "malformed_reply"


def test_stream_without_finish_reason_is_a_failure() -> None:
    with pytest.raises(ReplyFailedError) as caught:
        streamed(delta(content="Hel"))
    assert caught.value.failure.code == "broken_reply"
