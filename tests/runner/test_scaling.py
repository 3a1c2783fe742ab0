"""Thousands of calls or fragments in a reply cost linear work: counted, and at length timed.

Python's own calls are counted for one size and for twice as much of it; copies of text and
lists, which are no calls, are seen in the processor's time with `make test-long`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from tests.adapters.contract import ADAPTERS, Adapter
from tests.adapters.sdk.raw_server import BEGINNINGS, ENDS, WORDS, event
from tests.adapters.sdk.test_fuzzed_streams import read
from tests.runner.bench import SEARCHING, assert_paired
from tool_search import ToolCall, ToolSearchRunner
from tool_search.adapters.openai_chat.wire import encode
from tool_search.core.messages import Message, RequestPlan
from tool_search.providers.base import ReplyEnd, Usage
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.execution import tool_from_function

EACH = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.dialect)


class ManyCalls:
    """A provider that makes calls once, and then says that it is done."""

    def __init__(self, calls: tuple[ToolCall, ...]) -> None:
        self.profile = profile_for("openai_chat", "m", base_url="http://x/v1")
        self._replies = [Message(role="assistant", tool_calls=calls)]

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEnd]:
        """Writes the request, as any provider does, and replies."""
        encode(plan, self.profile)
        done = Message(role="assistant", content="Done.")
        reply = self._replies.pop() if self._replies else done
        yield ReplyEnd(
            message=reply, stop_reason="calls" if reply.tool_calls else "answer", usage=Usage()
        )


async def add(a: int = 0) -> int:
    """Add one."""
    return a + 1


def call(number: int, **more: Any) -> ToolCall:
    """A call under an id of its own."""
    return ToolCall(**{"id": f"c{number}", "name": "add", **more})


KINDS: Mapping[str, Callable[[int], ToolCall]] = {
    "own ids": call,
    "one id": lambda n: call(n, id="c"),
    "no id": lambda n: call(n, id=""),
    "cut": lambda n: call(n, is_cut=True),
    "unknown": lambda n: call(n, name="nope"),
    "broken": lambda n: call(n, arguments="{"),
    "searches": lambda n: call(n, name="tool_search", arguments='{"query": "add"}'),
}


def turn_with(kind: str, count: int) -> Callable[[], None]:
    """A turn whose model makes so many calls in one reply."""
    calls = tuple(map(KINDS[kind], range(count)))
    tools = [tool_from_function(add)]

    async def turn(runner: ToolSearchRunner) -> None:
        async for _ in runner.run("Add!"):
            pass

    def run() -> None:
        runner = ToolSearchRunner(providers={"p": ManyCalls(calls)}, tools=tools, config=SEARCHING)
        asyncio.run(turn(runner))
        session = runner.session()
        assert session is not None
        assert_paired(session.history)

    return run


def text_of(adapter: Adapter, count: int) -> bytes:
    """A reply of so many words."""
    table = adapter.dialect
    words = event(WORDS[table]("word ")) * count
    start, end = (b"".join(map(event, part[table])) for part in (BEGINNINGS, ENDS))
    return start + words + end


def calls_of(adapter: Adapter, count: int) -> bytes:
    """A reply of so many calls, each in two fragments that come after all have begun."""
    opened, grown, closed = CALLS[adapter.dialect]
    events = [
        *(opened(n) for n in range(1, count + 1)),
        *(grown(n, part) for part in ('{"a":', "1}") for n in range(1, count + 1)),
        *(closed(n) for n in range(1, count + 1)),
    ]
    table = adapter.dialect
    start, end = (b"".join(map(event, part[table])) for part in (BEGINNINGS, ENDS))
    return start + b"".join(event(one) for one in events if one is not None) + end


def one_call_of(adapter: Adapter, count: int) -> bytes:
    """A reply of one call with so many fragments, each with the call's name again."""
    opened, grown, closed = CALLS[adapter.dialect]
    parts = ['{"a":"', *["xy" * 20] * count, '"}']
    events = [opened(1), *(grown(1, part) for part in parts), closed(1)]
    for one in events:
        if one is not None and adapter.dialect == "openai_chat":
            one["choices"][0]["delta"]["tool_calls"][0]["function"].setdefault("name", "add")
    table = adapter.dialect
    start, end = (b"".join(map(event, part[table])) for part in (BEGINNINGS, ENDS))
    return start + b"".join(event(one) for one in events if one is not None) + end


def _chat(number: int, **function: str) -> dict[str, Any]:
    call = {"index": number, "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def _item(number: int, arguments: str) -> dict[str, Any]:
    names = {"id": f"fc{number}", "call_id": f"c{number}", "name": "add"}
    return {"type": "function_call", "arguments": arguments, **names}


CALLS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "anthropic": (
        lambda n: {
            "type": "content_block_start",
            "index": n,
            "content_block": {"type": "tool_use", "id": f"c{n}", "name": "add", "input": {}},
        },
        lambda n, part: {
            "type": "content_block_delta",
            "index": n,
            "delta": {"type": "input_json_delta", "partial_json": part},
        },
        lambda n: {"type": "content_block_stop", "index": n},
    ),
    "openai_chat": (
        lambda n: _chat(n, name="add", arguments=""),
        lambda n, part: _chat(n, arguments=part),
        lambda _: None,
    ),
    "openai_responses": (
        lambda n: {
            "type": "response.output_item.added",
            "output_index": n,
            "item": _item(n, ""),
        },
        lambda n, part: {
            "type": "response.function_call_arguments.delta",
            "output_index": n,
            "delta": part,
        },
        lambda n: {"type": "response.output_item.done", "output_index": n, "item": _item(n, "")},
    ),
}
STREAMS: Mapping[str, Callable[[Adapter, int], bytes]] = {
    "words": text_of,
    "calls": calls_of,
    "one call": one_call_of,
}


def reading(adapter: Adapter, kind: str, count: int) -> Callable[[], None]:
    """Reads a stream of so many parts."""
    data = STREAMS[kind](adapter, count)

    def run() -> None:
        events = read(adapter, data)
        assert events is not None
        end = events[-1]
        assert isinstance(end, ReplyEnd)
        made = end.message.tool_calls
        if kind == "calls":
            assert len(made) == count
        elif kind == "one call":
            assert json.loads(made[0].arguments)["a"] == "xy" * 20 * count
        else:
            assert len(end.message.text) >= 4

    return run


def work_of(run: Callable[[], None]) -> int:
    """How many functions were called."""
    count = 0

    def called(frame: object, kind: str, detail: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def time_of(run: Callable[[], None]) -> float:
    """The processor's seconds; the garbage collector's own work is not ours."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        run()
        return time.process_time() - began
    finally:
        gc.enable()


def assert_doubles(smaller: Callable[[], None], larger: Callable[[], None]) -> None:
    """Twice as much costs no more than twice the work, and what is the same for each."""
    smaller()  # what is done once in a process is done now
    assert work_of(larger) <= 2.1 * work_of(smaller)


@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_a_reply_cost_linear_work(kind: str) -> None:
    """From the reply to the next request, with a result for each."""
    assert_doubles(turn_with(kind, 60), turn_with(kind, 120))


@EACH
@pytest.mark.parametrize("kind", STREAMS)
def test_fragments_of_a_stream_cost_linear_work(adapter: Adapter, kind: str) -> None:
    assert_doubles(reading(adapter, kind, 80), reading(adapter, kind, 160))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_calls_cost_linear_time(kind: str) -> None:
    smaller, larger = time_of(turn_with(kind, 1_000)), time_of(turn_with(kind, 10_000))
    print(f"{kind}: 1,000 calls {smaller:.2f} s, 10,000 calls {larger:.2f} s")  # noqa: T201 - a figure to keep
    assert larger < 20 * max(smaller, 0.02)


@pytest.mark.long
@EACH
@pytest.mark.parametrize("kind", STREAMS)
def test_ten_thousand_fragments_cost_linear_time(adapter: Adapter, kind: str) -> None:
    smaller, larger = (time_of(reading(adapter, kind, n)) for n in (1_000, 10_000))
    print(f"{adapter.dialect}, {kind}: 1,000 {smaller:.2f} s, 10,000 {larger:.2f} s")  # noqa: T201 - a figure to keep
    assert larger < 20 * max(smaller, 0.02)
