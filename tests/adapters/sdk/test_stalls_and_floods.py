"""Services that stall, drip or flood, over real HTTP with the real SDKs."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.contract import ADAPTERS, Adapter, events_of, plan_of, reply_of
from tests.adapters.sdk.raw_server import (
    Script,
    Send,
    begun,
    ended,
    event,
    head_of,
    keep_alive,
    sends,
    sends_for_ever,
    serving,
    word,
)
from tool_search.adapters.sdk.reply_stream import ReplyLimits
from tool_search.config.limits import LimitSettings
from tool_search.errors import ProviderError
from tool_search.providers.base import ReplyDelta, ReplyEnd

SHORT_S = 0.05
# What all dialects share is held once.
ONCE = pytest.mark.parametrize("adapter", ADAPTERS[1:2], ids=["shared"], indirect=True)
NARROW = ReplyLimits(incoming=LimitSettings(max_bytes=50_000), max_idle_bytes=30_000, max_calls=20)


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.dialect)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Every adapter in turn, by a filtered list: an endpoint that is not the vendor's."""
    assert isinstance(request.param, Adapter)
    return replace(request.param, strategy="auto")


async def failure_of(
    adapter: Adapter, script: Script, *, head: bytes | None = None, **options: Any
) -> ProviderError:
    """Return the error that a reply ends in; what it had to say by then is void."""
    async with asyncio.timeout(20.0), serving(script, head=head) as server:
        with pytest.raises(ProviderError) as caught:
            await reply_of(server.provider(adapter, **options), plan_of())
    return caught.value


async def forever(send: Send) -> None:
    """Stay silent for good."""
    await asyncio.Event().wait()


def then_nothing(*pieces: bytes) -> Script:
    """Return a script that sends some pieces, and falls silent."""

    async def script(send: Send) -> None:
        await sends(*pieces)(send)
        await forever(send)

    return script


async def test_no_answer_at_all_is_given_up(adapter: Adapter) -> None:
    error = await failure_of(adapter, forever, head=b"", first_byte_timeout_s=SHORT_S)
    assert error.code == "timeout"
    assert "first_byte_timeout_s" in error.detail


async def test_headers_alone_are_no_first_byte(adapter: Adapter) -> None:
    error = await failure_of(adapter, forever, first_byte_timeout_s=SHORT_S)
    assert (error.code, error.status) == ("timeout", None)


async def test_keep_alives_are_no_first_byte(adapter: Adapter) -> None:
    """Nor is what comes before the first words: a message's start, a role, an id."""
    start = begun(adapter).split(b"\n\n")[0] + b"\n\n"
    script = sends_for_ever([start], keep_alive(adapter))
    error = await failure_of(adapter, script, first_byte_timeout_s=SHORT_S)
    assert (error.code, "first_byte_timeout_s" in error.detail) == ("timeout", True)


async def test_slow_beginning_is_waited_for(adapter: Adapter) -> None:
    """A reasoning model thinks for longer than it may be silent later."""

    async def script(send: Send) -> None:
        start, _, rest = begun(adapter).partition(b"\n\n")
        await send(start + b"\n\n")
        await asyncio.sleep(0.3)
        await send(rest + ended(adapter))

    async with serving(script) as server:
        end = await reply_of(server.provider(adapter, timeout_s=SHORT_S), plan_of())
    assert end.message.text == "Well"


@pytest.mark.parametrize("said", ["nothing", "keep-alives", "empty pieces", "unknown events"])
async def test_silence_in_a_reply_is_given_up(adapter: Adapter, said: str) -> None:
    """Whatever keeps the connection open: none of it is life."""
    pieces = {
        "nothing": b"",
        "keep-alives": keep_alive(adapter),
        "empty pieces": word(adapter, ""),
        "unknown events": event({"type": "thinking_hard", "choices": [{"delta": {}}]}),
    }
    script = sends_for_ever([begun(adapter)], pieces[said])
    error = await failure_of(adapter, script, timeout_s=SHORT_S)
    assert error.code == "timeout"
    assert "(timeout_s)" in error.detail


async def test_reply_that_drips_is_given_up_as_a_whole(adapter: Adapter) -> None:
    """Each word comes in time, the end never."""
    script = sends_for_ever([begun(adapter)], word(adapter))
    error = await failure_of(adapter, script, timeout_s=5.0, reply_timeout_s=SHORT_S)
    assert error.code == "timeout"
    assert "reply_timeout_s" in error.detail


@ONCE
async def test_slow_consumer_is_no_slow_provider(adapter: Adapter) -> None:
    script = sends(begun(adapter), *[word(adapter)] * 4, ended(adapter))
    async with serving(script) as server:
        limits = {"timeout_s": 0.4, "reply_timeout_s": 0.4}
        async with server.provider(adapter, **limits) as provider:
            events = provider.stream(plan_of())
            async with aclosing(events):
                assert await anext(events) == ReplyDelta("Well")
                await asyncio.sleep(0.5)
                *_, last = [made async for made in events]
    assert isinstance(last, ReplyEnd)


@ONCE
async def test_whole_reply_may_take_long_to_begin_and_no_longer(adapter: Adapter) -> None:
    """Empty lines before it are keep-alives; it is not cut by the silence of a stream."""

    async def script(send: Send) -> None:
        for _ in range(40):
            await send(b"\n")
            await asyncio.sleep(0.01)
        await send(b'{"error": {"type": "rate_limit_error", "message": "Slow down"}}')

    head = head_of("application/json")
    slow = await failure_of(adapter, script, head=head, timeout_s=0.3, streaming=False)
    assert slow.detail == "Slow down"
    early = await failure_of(
        adapter, script, head=head, first_byte_timeout_s=SHORT_S, streaming=False
    )
    assert early.code == "timeout"


def endless(piece: bytes, *first: bytes) -> Script:
    """Return a script that sends as fast as it is read."""
    return sends_for_ever(first, piece * (1 + 8_192 // len(piece)), every_s=0)


def floods(adapter: Adapter) -> Iterable[tuple[str, Script]]:
    """Yield each kind of flood."""
    yield "text", endless(word(adapter, "x" * 1_000), begun(adapter))
    yield "one event", endless(b"x" * 1_000, begun(adapter), b'data: "')
    yield "one line of fields", endless(b"data: x\n", begun(adapter))
    yield "comments", endless(b": x\n\n", begun(adapter))
    yield "empty events", endless(b"data: {}\n\n")


@pytest.mark.parametrize("index", range(5), ids=["text", "event", "lines", "comments", "empty"])
async def test_flood_is_given_up(adapter: Adapter, index: int) -> None:
    _, script = list(floods(adapter))[index]
    error = await failure_of(adapter, script, limits=NARROW)
    assert error.code == "reply_too_large"


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "whole"])
async def test_flood_in_one_piece_is_given_up(adapter: Adapter, *, streaming: bool) -> None:
    script = endless(b" " * 1_000 + b"1,", b"[")
    head = head_of("application/json")
    error = await failure_of(adapter, script, head=head, limits=NARROW, streaming=streaming)
    assert error.code == "reply_too_large"


async def test_flood_of_calls_is_given_up(adapter: Adapter) -> None:
    calls: dict[str, Callable[[int], object]] = {
        "anthropic": lambda n: {
            "type": "content_block_start",
            "index": n,
            "content_block": {"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}},
        },
        "openai_chat": lambda n: {
            "choices": [
                {"delta": {"tool_calls": [{"index": n, "id": f"t{n}", "function": {"name": "f"}}]}}
            ]
        },
        "openai_responses": lambda n: {
            "type": "response.output_item.done",
            "output_index": n,
            "item": {"type": "function_call", "call_id": f"t{n}", "name": "f", "arguments": "{}"},
        },
    }
    call = calls[adapter.dialect]
    script = then_nothing(*(event(call(n)) for n in range(30)))
    error = await failure_of(adapter, script, limits=NARROW)
    assert (error.code, "20 calls" in error.detail) == ("reply_too_large", True)


@ONCE
@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error"])
async def test_flood_in_an_error_is_cut(adapter: Adapter, status: str) -> None:
    script = endless(b"no " * 1_000)
    head = head_of("text/plain", status=status)
    error = await failure_of(adapter, script, head=head)
    assert error.status == int(status[:3])
    assert len(error.detail) <= 1_000


@ONCE
@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
async def test_packed_flood_is_given_up(adapter: Adapter, status: str) -> None:
    packed = gzip.compress(b": " + b"x" * 10_000_000 + b"\n\n")
    head = head_of(status=status, more="content-encoding: gzip")
    error = await failure_of(adapter, sends(packed), head=head, limits=NARROW)
    assert error.code == "reply_too_large" if status == "200 OK" else error.status == 400


@ONCE
async def test_encoding_that_nobody_asked_for_is_refused(adapter: Adapter) -> None:
    head = head_of(more="content-encoding: br")
    error = await failure_of(adapter, sends(begun(adapter), ended(adapter)), head=head)
    assert "'br'" in error.detail


async def test_reply_ends_with_its_last_event_not_with_its_connection(adapter: Adapter) -> None:
    script = then_nothing(begun(adapter), ended(adapter))
    async with asyncio.timeout(10.0), serving(script) as server:
        assert (await reply_of(server.provider(adapter), plan_of())).message.text == "Well"


@pytest.mark.parametrize("mark", [b"", b"data: [DONE]\n\n"], ids=["no mark", "mark"])
async def test_reply_that_is_over_loses_nothing_with_its_connection(
    adapter: Adapter, mark: bytes
) -> None:
    wire = begun(adapter) + ended(adapter).removesuffix(b"data: [DONE]\n\n") + mark
    # The last of the chunks, which is empty, never comes.
    script = sends(b"%x\r\n%b\r\n" % (len(wire), wire))
    head = head_of(more="transfer-encoding: chunked")
    async with serving(script, head=head) as server:
        events = await events_of(server.provider(adapter), plan_of())
    assert [e.message.text for e in events if isinstance(e, ReplyEnd)] == ["Well"]


@ONCE
async def test_events_before_one_that_is_too_long_are_delivered(adapter: Adapter) -> None:
    """Before a small one and before a large one, in the same piece of the stream."""
    large, said = "x" * 40_000, ""
    wire = begun(adapter) + word(adapter, large) + word(adapter, "!") + event("y" * 60_000)
    limits = ReplyLimits(incoming=NARROW.incoming)
    async with serving(sends(wire)) as server:
        reply = server.provider(adapter, limits=limits).stream(plan_of())
        try:
            async for each in reply:
                said += each.text if isinstance(each, ReplyDelta) else ""
        except ProviderError as exc:
            said += str(exc.code)
    assert said == f"Well{large}!reply_too_large"


async def test_events_come_whole_however_they_are_cut(adapter: Adapter) -> None:
    wire = begun(adapter) + word(adapter, " — да 🌤") + ended(adapter)
    for ends in (b"\n", b"\r\n", b"\r"):
        pieces = [bytes([byte]) for byte in wire.replace(b"\n", ends)]
        async with serving(sends(*pieces)) as server:
            events = await events_of(server.provider(adapter), plan_of())
        text = "".join(made.text for made in events if isinstance(made, ReplyDelta))
        assert text == "Well — да 🌤"
