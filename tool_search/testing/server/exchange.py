"""One HTTP exchange of a stand-in server: a request in, an answer or a fault out."""

from __future__ import annotations

import json
import select
import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from tool_search.testing.server.answering import Asked, Counted, outcome, parsed_body
from tool_search.testing.server.captured import CapturedRequest, redacted_headers
from tool_search.testing.server.dialects import dialect_at
from tool_search.testing.server.faults import Fault
from tool_search.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.server.dialect import Answer, Dialect, StreamEvent
    from tool_search.testing.server.state import ServerState

__all__ = ["Exchange"]

_CONVERSATIONS = "/v1/conversations"
_JSON = "application/json"
_SSE = "text/event-stream; charset=utf-8"
_NO_FAULT = Fault()
_PATIENCE_SECONDS = 0.02


class _HoldsState(Protocol):
    state: ServerState


class Exchange(BaseHTTPRequestHandler):
    """A connection whose requests are read and answered one after the other."""

    protocol_version = "HTTP/1.1"
    server_version = "stand-in"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        """Answer one request by the server's state."""
        state = cast("_HoldsState", self.server).state
        path = self.path.partition("?")[0]
        dialect = dialect_at(path)
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if path == _CONVERSATIONS:
            self._begin_conversation(state, raw)
            return
        if dialect is None:
            self._answer_unknown(path)
            return
        fault = state.faults.take(dialect.name, path) or _NO_FAULT
        request = self._capture(state, dialect, path, raw)
        try:
            self._exchange(Asked(state=state, dialect=dialect, request=request, fault=fault))
        except ConnectionError:
            # A client that gave up (a time-out, a cancelled turn) is a normal end, like a fault.
            self.close_connection = True

    def _capture(
        self, state: ServerState, dialect: Dialect, path: str, raw: bytes
    ) -> CapturedRequest:
        try:
            body = parsed_body(raw)
        except ValueError:
            # The rules reject it later; the capture keeps the bytes.
            body = {}
        return state.capture(
            CapturedRequest(
                number=0,
                dialect=dialect.name,
                path=path,
                headers=redacted_headers(dict(self.headers.items())),
                raw_body=raw,
                body=body,
                stream=body.get("stream") is True,
            )
        )

    def _exchange(self, asked: Asked) -> None:
        fault = asked.fault
        self._pause(asked, fault.delay_s)
        if fault.broken and fault.after_events is None:
            self._hang_up()
        if fault.body is not None:
            self._send(asked, fault.status or 200, {})
            return
        result = outcome(asked)
        if isinstance(result, Violation):
            body = asked.dialect.error_body(result, asked.request_id)
            self._send(asked, result.status, body)
        elif isinstance(result, Counted):
            self._send(asked, 200, result.body)
        elif asked.request.stream:
            self._stream(asked, result)
        else:
            self._send(asked, 200, asked.dialect.complete(result))

    def _send(self, asked: Asked, status: int, body: Mapping[str, Any]) -> None:
        fault = asked.fault
        raw = fault.body if fault.body is not None else _encode(body)
        asked.state.record_status(asked.request.number, status)
        self._start(asked, status, _JSON)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if fault.broken:
            self.wfile.write(raw[: len(raw) // 2])
            self._hang_up()
        self.wfile.write(raw)

    def _stream(self, asked: Asked, answer: Answer) -> None:
        fault = asked.fault
        asked.state.record_status(asked.request.number, 200)
        self._start(asked, 200, _SSE)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in _until(asked.dialect.stream(answer), fault):
            self._chunk(event.encoded())
            self._pause(asked, fault.event_delay_s)
        if fault.stalls:
            self._stall(asked)
        if fault.broken:
            self._hang_up()
        if fault.status is not None:
            error = asked.dialect.error_event(asked.faulty(fault.status), asked.request_id)
            self._chunk(error.encoded())
        self.wfile.write(b"0\r\n\r\n")

    def _start(self, asked: Asked, status: int, content_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", asked.fault.content_type or content_type)
        headers = {**asked.dialect.headers(asked.request_id), **asked.fault.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if asked.fault.close_connection:
            self.send_header("connection", "close")

    def _stall(self, asked: Asked) -> NoReturn:
        """Send keep-alives alone, until the server is reset or the client gives up."""
        every = asked.fault.keep_alive_s
        while True:
            self._pause(asked, _PATIENCE_SECONDS if every is None else every)
            if every is not None:
                self._chunk(asked.dialect.keep_alive)

    def _pause(self, asked: Asked, seconds: float) -> None:
        """Waits, unless the server is reset or the client gives up meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if asked.state.over.wait(min(left, _PATIENCE_SECONDS)) or self._client_is_gone():
                self._hang_up()

    def _client_is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _hang_up(self) -> NoReturn:
        self.wfile.flush()
        raise ConnectionAbortedError("a fault, a reset or the client ended the exchange")

    def _begin_conversation(self, state: ServerState, raw: bytes) -> None:
        """Open a conversation of OpenAI's Responses, which later requests name."""
        given = parsed_body(raw or b"{}")
        name = state.memory.begin_conversation(given.get("items") or ())
        metadata = given.get("metadata") or {}
        made = {"id": name, "object": "conversation", "created_at": 0, "metadata": metadata}
        self._answer_plain(200, made)

    def _answer_unknown(self, path: str) -> None:
        error = {"type": "not_found_error", "message": f"Not found: {path}"}
        self._answer_plain(404, {"error": error})

    def _answer_plain(self, status: int, body: Mapping[str, Any]) -> None:
        raw = _encode(body)
        self.send_response(status)
        self.send_header("content-type", _JSON)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Write nothing, because `StandInServer.requests` has every request."""


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _until(events: Iterator[StreamEvent], fault: Fault) -> Iterator[StreamEvent]:
    """Yield the events before the fault occurs."""
    for index, event in enumerate(events):
        if isinstance(fault.after_events, int) and index >= fault.after_events:
            return
        sent = fault.sent(event)
        if sent is not None:
            yield sent
        if fault.after_events == "tool_call" and event.in_tool_call:
            return
