"""Streams that end early: by the client, by the provider, or with odd events."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest

from tests.proxy.conftest import serve
from tests.proxy.test_app import CHAT, TOOLS
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def chunk(delta: dict[str, Any], end: str | None = None) -> bytes:
    """Return a chunk of a completion as a stream has it."""
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode()


def read_request(connection: socket.socket) -> None:
    """Read a whole request: closing a socket with unread bytes takes back what was sent."""
    with connection.makefile("rb") as file:
        length = 0
        while line := file.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        file.read(length)


class Streaming:
    """A provider that sends pieces, one each 20 ms, and notes that its client is gone."""

    head = HEAD

    def __init__(self, pieces: list[bytes], *, repeats: bool = False) -> None:
        self.pieces = pieces
        self.repeats = repeats
        self.gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            read_request(connection)
            try:
                connection.sendall(self.head)
                for piece in self.pieces:
                    connection.sendall(piece)
                while self.repeats:
                    time.sleep(0.02)
                    connection.sendall(chunk({"content": "more "}))
            except OSError:
                self.gone.set()

    def close(self) -> None:
        """Stop to listen."""
        self._listener.close()


class Silent(Streaming):
    """A provider that sends pieces, if any, then nothing until its client is gone."""

    def __init__(self, pieces: list[bytes] | None = None) -> None:
        super().__init__(pieces or [])

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            read_request(connection)
            for piece in (HEAD, *self.pieces) if self.pieces else ():
                connection.sendall(piece)
            with suppress(OSError):
                while connection.recv(1_000_000):
                    pass
            self.gone.set()


@contextmanager
def before(provider: Streaming, **settings: Any) -> Iterator[str]:
    """Give the address of a proxy before a provider."""
    upstream = UpstreamSettings(
        base_url=f"{provider.address}/v1", dialects=("openai_chat",), **settings
    )
    try:
        with serve(ToolSearchProxy(ProxyConfig(upstreams=(upstream,)))) as address:
            yield address
    finally:
        provider.close()


def events(address: str, tools: list[Any] = TOOLS) -> Iterator[str]:
    """Yield the lines of a stream."""
    body = {**CHAT, "stream": True, "tools": tools}
    with httpx2.stream("POST", f"{address}/v1/chat/completions", json=body) as reply:
        yield from (line for line in reply.iter_lines() if line)


@pytest.mark.parametrize("tools", [TOOLS, TOOLS[:3]], ids=["searching", "passed on"])
def test_a_client_that_goes_away_ends_the_providers_stream(tools: list[Any]) -> None:
    provider = Streaming([chunk({"role": "assistant", "content": "I"})], repeats=True)
    with before(provider) as address:
        lines = events(address, tools)
        assert "assistant" in next(lines)
        lines.close()  # type: ignore[attr-defined]  # a generator

        assert provider.gone.wait(10)


@pytest.mark.parametrize("tools", [TOOLS, TOOLS[:3]], ids=["searching", "passed on"])
def test_a_client_that_goes_away_ends_a_request_that_waits(tools: list[Any]) -> None:
    provider = Silent()
    with before(provider) as address:
        body = {**CHAT, "tools": tools}
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{address}/v1/chat/completions", json=body, timeout=0.3)

        assert provider.gone.wait(10)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_provider_that_does_not_answer_is_a_typed_error(*, stream: bool) -> None:
    with before(Silent(), timeout_s=0.1) as address:
        body = {**CHAT, "tools": TOOLS, "stream": stream}
        reply = httpx2.post(f"{address}/v1/chat/completions", json=body)

    assert reply.status_code == 504
    assert "did not answer in time" in reply.json()["error"]["message"]


def test_a_provider_that_falls_silent_ends_a_stream_with_an_error() -> None:
    with before(Silent([chunk({"content": "half"})]), timeout_s=0.1) as address:
        lines = list(events(address))

    error = json.loads(lines[-1].removeprefix("data: "))["error"]
    assert "did not answer in time" in error["message"]


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk({"content": "half"})],
        [chunk({"content": "half"}), b'data: {"id": "c", "choi'],
        [],
        [b"data: {}\n\n"],
    ],
    ids=["no end", "half an event", "nothing", "an empty event"],
)
def test_a_stream_that_breaks_off_ends_with_an_error(pieces: list[bytes]) -> None:
    with before(Streaming(pieces)) as address:
        lines = list(events(address))

    assert json.loads(lines[-1].removeprefix("data: "))["error"]["type"] == "server_error"


def test_the_last_event_of_a_stream_needs_no_empty_line_after_it() -> None:
    with before(Streaming([chunk({"content": "all"}), chunk({}, "stop").rstrip()])) as address:
        lines = list(events(address))

    assert ["all" in lines[0], lines[-1]] == [True, "data: [DONE]"]


class Chunked(Streaming):
    """A provider whose reply breaks off: the last of its chunks, which is empty, is missing."""

    head = HEAD.replace(b"connection: close", b"transfer-encoding: chunked")

    def __init__(self, *events: bytes) -> None:
        super().__init__([b"%x\r\n%b\r\n" % (len(event), event) for event in events])


def test_a_reply_that_is_over_loses_nothing_with_its_connection() -> None:
    with before(Chunked(chunk({"content": "all"}), chunk({}, "stop").rstrip())) as address:
        lines = list(events(address))

    assert ["all" in lines[0], lines[-1]] == [True, "data: [DONE]"]


def call_chunk(**call: Any) -> bytes:
    """Return a chunk with a piece of a call."""
    return chunk({"tool_calls": [call]})


@pytest.mark.parametrize("index", [0, None], ids=["one index for all", "no index"])
@pytest.mark.parametrize("with_ids", [True, False], ids=["ids", "no ids"])
def test_calls_of_one_index_are_told_apart(index: int | None, *, with_ids: bool) -> None:
    def piece(name: str, call_id: str) -> bytes:
        function = {"name": name, "arguments": '{"id": "1"}'}
        more = {"id": call_id} if with_ids else {}
        place = {} if index is None else {"index": index}
        return call_chunk(type="function", function=function, **place, **more)

    pieces = [piece("bash", "a"), piece("edit", "b"), chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
    plain = [{"type": "custom", "name": "bash"}, {"type": "custom", "name": "edit"}]
    with before(Streaming(pieces)) as address:
        lines = list(events(address, [*TOOLS, *plain]))

    seen = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    calls = [c for e in seen for c in e["choices"][0]["delta"].get("tool_calls", ())]
    assert [(c["index"], c["function"]["name"]) for c in calls] == [(0, "bash"), (1, "edit")]


def test_marks_and_events_of_other_kinds_do_no_harm() -> None:
    pieces = [
        b": keep-alive\n\n",
        b"event: ping\ndata: 1\n\n",
        b"data: [1, 2]\n\n",
        chunk({"role": "assistant", "content": "ok"}),
        chunk({}, "stop"),
        b"data: [DONE]\n\n",
        b"data: [DONE]\n\n",
    ]
    with before(Streaming(pieces)) as address:
        lines = list(events(address))

    assert lines[-1] == "data: [DONE]"
    assert [line.count("[DONE]") for line in lines].count(1) == 1
    assert "ok" in "".join(lines)


@pytest.mark.parametrize("apart", [True, False], ids=["a chunk of its own", "with the last choice"])
def test_the_usage_of_a_stream_is_where_the_provider_has_it(*, apart: bool) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    ends: list[dict[str, Any]] = [{"choices": [choice]}, {"choices": [], "usage": usage}]
    if not apart:
        ends = [{"choices": [choice], "usage": usage}]
    pieces = [chunk({"role": "assistant", "content": "ok"})]
    pieces += [f"data: {json.dumps({'id': 'x', **each})}\n\n".encode() for each in ends]
    with before(Streaming([*pieces, b"data: [DONE]\n\n"])) as address:
        lines = list(events(address))

    seen = [json.loads(line.removeprefix("data: ")) for line in lines[1:-1]]
    assert [(each["choices"], each.get("usage")) for each in seen] == [
        (each["choices"], each.get("usage")) for each in ends
    ]
