"""Whatever a stream holds: a reply that can be kept and sent back, or a provider's error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.adapters.contract import ADAPTERS, QUESTION, Adapter, plan_of
from tests.adapters.sdk.raw_server import BEGINNINGS, ENDS, WORDS, event
from tool_search.adapters.anthropic import reply as anthropic_reply
from tool_search.adapters.openai_chat import reply as openai_chat_reply
from tool_search.adapters.openai_responses import reply as openai_responses_reply
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.sdk.reply_stream import ReplyLimits, ReplyMeter, ReplyReader, read_stream
from tool_search.core.messages import Message, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.base import ReplyDelta, ReplyEnd, ReplyEvent
from tool_search.stores.record import message_from_dict, message_to_dict

EACH = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.dialect)
READERS: Mapping[str, Callable[[RequestPlan, ProviderProfile], ReplyReader]] = {
    "anthropic": anthropic_reply.StreamedReply,
    "openai_chat": openai_chat_reply.StreamedReply,
    "openai_responses": openai_responses_reply.StreamedReply,
}
ODD_TEXTS = st.sampled_from(
    ["", "x", "\ud83d", "\ude00", "\ud83c\udf24", "\x00", "{", "{}", '{"a":1}', "NaN", "tool_use",
     "thinking", "text", "function_call", "message", "reasoning", "server_tool_use", "unknown"]
)  # fmt: skip
NUMBERS = st.sampled_from(
    [0, 1, -1, 2, True, 1.5, float("nan"), float("inf"), 10**20, -(10**20), 10**3000]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, ODD_TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(ODD_TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = (
    "type", "index", "output_index", "item_id", "id", "name", "call_id", "delta", "content",
    "content_block", "partial_json", "text", "thinking", "signature", "input", "arguments",
    "choices", "tool_calls", "function", "finish_reason", "usage", "message", "item", "response",
    "output", "status", "error", "stop_reason", "stop_details", "reasoning_details",
    "reasoning_content", "refusal", "extra_content", "incomplete_details", "summary",
    "encrypted_content", "execution", "namespace", "input_tokens", "prompt_tokens",
)  # fmt: skip
CALLS: Mapping[str, list[Any]] = {
    "anthropic": [
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"city": "Rome"}'},
        },
        {"type": "content_block_stop", "index": 1},
    ],
    "openai_chat": [
        {
            "choices": [
                {
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "t",
                                "function": {"name": "get_weather", "arguments": "{}"},
                            }
                        ]
                    }
                }
            ]
        }
    ],
    "openai_responses": [
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {
                "type": "function_call",
                "id": "fc",
                "call_id": "t",
                "name": "get_weather",
                "arguments": "{}",
            },
        }
    ],
}

KEPT = {
    "anthropic": '{"type":"content_block_start","index":5,'
    '"content_block":{"type":"new_block","x":%s}}',
    "openai_chat": '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t",'
    '"extra_content":%s,"function":{"name":"f","arguments":"{}"}}]}}]}',
    "openai_responses": '{"type":"response.output_item.done","output_index":5,'
    '"item":{"type":"new_item","x":%s}}',
}
"""An event with a value that is kept and sent back."""


class Sent:
    """A response whose bytes are there."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the bytes, in pieces of no meaning."""
        for start in range(0, len(self._data), 997):
            yield self._data[start : start + 997]


def read(adapter: Adapter, data: bytes) -> list[ReplyEvent] | None:
    """Return the events of a stream; None: it is a provider's error."""

    async def reading() -> list[ReplyEvent]:
        reader = READERS[adapter.dialect](plan_of(), adapter.profile())
        meter = ReplyMeter(ReplyLimits(), reader.progress)
        return [made async for made in read_stream(Sent(data), reader, meter)]

    try:
        return asyncio.run(reading())
    except (ReplyFailedError, ValueError):
        # The two that `SDKProvider` raises as a `ProviderError`.
        return None


def assert_usable(adapter: Adapter, events: list[ReplyEvent]) -> None:
    """The reply can be shown, stored, read back, and sent to any provider."""
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    shown = "".join(made.text for made in events if isinstance(made, ReplyDelta))
    shown.encode()
    kept = json.dumps(message_to_dict(end.message), ensure_ascii=False, allow_nan=False)
    message = message_from_dict(json.loads(kept.encode()))
    results = [
        Message(role="tool", tool_call_id=call.id, name=call.name, content="Done.")
        for call in message.tool_calls
    ]
    for other in ADAPTERS:
        profile = adapter.profile() if other is adapter else other.profile()
        sent = other.module.encode(plan_of(QUESTION, message, *results, QUESTION), profile)
        json.loads(sent.decode())
    assert 0 <= end.usage.input_tokens + end.usage.output_tokens < 10**13


def changed(data: st.DataObject, value: Any) -> Any:
    """Return a value, some place in which holds something else."""
    if isinstance(value, list) and value and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], changed(data, value[place]), *value[place + 1 :]]
    if isinstance(value, dict) and data.draw(st.booleans()):
        keys = st.sampled_from(sorted(value)) if value else st.nothing()
        key = data.draw(st.one_of(keys, st.sampled_from(KEYS)))
        if data.draw(st.integers(0, 5)) == 0:
            return {name: kept for name, kept in value.items() if name != key}
        return {**value, key: changed(data, value.get(key))}
    return data.draw(VALUES)


@EACH
@settings(max_examples=50)
@given(data=st.data())
def test_stream_with_anything_in_its_events(adapter: Adapter, data: st.DataObject) -> None:
    dialect = adapter.dialect
    real = [*BEGINNINGS[dialect], *CALLS[dialect], *ENDS[dialect]]
    events = [
        changed(data, one) if data.draw(st.integers(0, 2)) == 0 else one
        for one in real
        for _ in range(data.draw(st.sampled_from([0, 1, 1, 1, 1, 1, 2])))
    ]
    if data.draw(st.booleans()):
        events = data.draw(st.permutations(events))
    made = read(adapter, b"".join(map(event, events)))
    if made is not None:
        assert_usable(adapter, made)


@EACH
@settings(max_examples=25)
@given(data=st.binary(max_size=300))
@example(b"data: \xff\xfe\n\n")
@example(b"data: {\n\ndata: }\n\n")
@example(b"event: error\ndata: it is broken\n\n")
@example(b'event: error\ndata: "it is broken"\n\n')
@example(b"data: " + b"9" * 5_000 + b"\n\n")
def test_stream_of_any_bytes(adapter: Adapter, data: bytes) -> None:
    start, end = (b"".join(map(event, table[adapter.dialect])) for table in (BEGINNINGS, ENDS))
    for wire in (data, start + data + end, start + b"data: " + data + b"\n\n" + end):
        made = read(adapter, wire)
        if made is not None:
            assert_usable(adapter, made)


@EACH
@pytest.mark.parametrize("depth", [300, 390, 401, 5_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_nesting_of_any_depth(adapter: Adapter, depth: int, brackets: str) -> None:
    opening, closing = brackets[0], brackets[1]
    deep = (opening if opening == "[" else '{"a":') * depth + "1" + closing * depth
    start, end = (b"".join(map(event, table[adapter.dialect])) for table in (BEGINNINGS, ENDS))
    for data in (KEPT[adapter.dialect] % deep, f'{{"unknown":{deep}}}'):
        made = read(adapter, start + event(data) + end)
        assert (made is None) is (depth > 390)
        if made is not None:
            assert_usable(adapter, made)


@EACH
@pytest.mark.parametrize("written", ["NaN", "-Infinity", "1e999", '[1,{"a":NaN}]'])
def test_numbers_that_are_no_json_are_not_kept(adapter: Adapter, written: str) -> None:
    start, end = (b"".join(map(event, table[adapter.dialect])) for table in (BEGINNINGS, ENDS))
    made = read(adapter, start + event(KEPT[adapter.dialect] % written) + end)
    assert made is not None
    assert_usable(adapter, made)


@EACH
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\ud83c", "\udf24"], "🌤"),
        (["a\ud83c", "\udf24b"], "a🌤b"),
        (["\ud83c"], "\ufffd"),
        (["\udf24", "."], "\ufffd."),
        (["\ud83c", "x"], "\ufffdx"),
        (["\ud83c\ud83c", "\udf24"], "\ufffd🌤"),
    ],
)
def test_halves_of_a_sign_are_joined(adapter: Adapter, pieces: list[str], text: str) -> None:
    words = [WORDS[adapter.dialect](piece) for piece in pieces]
    ends = list(ENDS[adapter.dialect])
    if adapter.dialect == "openai_responses":
        said = "Well" + "".join(pieces)
        part = {"type": "output_text", "text": said}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        ends[0] = {**ends[0], "item": item}
    made = read(adapter, b"".join(map(event, [*BEGINNINGS[adapter.dialect], *words, *ends])))
    assert made is not None
    assert isinstance(made[-1], ReplyEnd)
    shown = "".join(one.text for one in made if isinstance(one, ReplyDelta))
    assert shown == made[-1].message.text == "Well" + text
    assert_usable(adapter, made)


@pytest.mark.long
@EACH
@settings(max_examples=2_000)
@given(data=st.data())
def test_stream_with_anything_in_its_events_at_length(
    adapter: Adapter, data: st.DataObject
) -> None:
    test_stream_with_anything_in_its_events.hypothesis.inner_test(adapter, data)
