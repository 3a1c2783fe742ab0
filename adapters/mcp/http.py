"""HTTP for servers on the network: limits on answers, and failures as answers.

An error of one POST would end the SDK's whole transport, and with it the calls that go on
beside it. Here it becomes the JSON-RPC error of that one request.

Source: mcp 1.26 and 2.3, `client/streamable_http.py`, `client/sse.py`; Model Context
Protocol, 2025-11-25, "Transports" (404: the session is over, begin a new one).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import anyio

from tool_search.adapters.mcp.half_characters import HalfCharacters
from tool_search.adapters.mcp.protocol import (
    CONNECTION_CLOSED,
    HAS_SESSIONLESS,
    Transport,
    set_definitions_aside,
    sse_client,
    streamable_http_client,
    with_capabilities,
)
from tool_search.adapters.mcp.stdio import MAX_MESSAGE_BYTES
from tool_search.config.mcp import MCPServerSettings

__all__ = ["HttpFailures", "http_transport"]

# The SDK has the one that it was built with; both have the same names.
_http: Any = import_module("httpx2" if HAS_SESSIONLESS else "httpx")
_CONNECT_S = 30.0
# A call has its own time-out, and a stream of notifications is silent for hours.
_SILENCE_S = 86_400.0
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_INTERNAL_ERROR = -32_603
# By the status of their answers the SDK finds the protocol that the server speaks.
_NEGOTIATION = ("initialize", "server/discover")
_ANSWER_TYPES = ("application/json", "text/event-stream")


class HttpFailures:
    """The last failure of a server's HTTP connection, for messages."""

    def __init__(self) -> None:
        self.last = ""


@asynccontextmanager
async def http_transport(
    settings: MCPServerSettings, *, auth: Any, failures: HttpFailures, on_end: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open a transport to a url; give the streams of messages.

    Args:
        settings: The server's entry, without variables.
        auth: The OAuth client; None: there is none.
        failures: Gets the reason if a request fails.
        on_end: Called when the server's stream of messages ends.
    """
    headers = dict(settings.headers)
    if token := settings.token.get_secret_value():
        headers["Authorization"] = f"Bearer {token}"

    def client(*_: object, **given: Any) -> Any:
        # The SSE transport makes its client with this, and gives it `auth` alone.
        return _http.AsyncClient(
            auth=given.get("auth"),
            timeout=_http.Timeout(_CONNECT_S, read=_SILENCE_S),
            transport=_BoundedTransport(
                settings, headers, failures, has_auth=given.get("auth") is not None
            ),
            follow_redirects=not HAS_SESSIONLESS,
        )

    if settings.transport == "sse":
        inner: Transport = sse_client(
            settings.url, sse_read_timeout=_SILENCE_S, httpx_client_factory=client, auth=auth
        )
        async with inner as streams, _watched(streams, on_end) as watched:
            yield watched
        return
    limit = {"max_sse_event_size": MAX_MESSAGE_BYTES} if HAS_SESSIONLESS else {}
    async with (
        client(auth=auth) as opened,
        streamable_http_client(settings.url, http_client=opened, **limit) as streams,
        _watched(streams, on_end) as watched,
    ):
        yield watched


@asynccontextmanager
async def _watched(
    streams: Any, on_end: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Give streams whose messages have passed `set_definitions_aside`."""
    read, write, *_ = streams
    send, given = anyio.create_memory_object_stream[Any](0)

    async def pump() -> None:
        try:
            async with send:
                async for message in read:
                    await send.send(set_definitions_aside(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the session is over
        finally:
            on_end()

    async with anyio.create_task_group() as group:
        group.start_soon(pump)
        try:
            yield given, _Writer(write)
        finally:
            group.cancel_scope.cancel()
            given.close()
            # SDK 1.x leaves its own end open.
            await read.aclose()


class _Writer:
    """A stream for messages to a server, each of which passes `with_capabilities`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, message: Any) -> None:
        await self._inner.send(with_capabilities(message))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _BoundedTransport(_http.AsyncBaseTransport):  # type: ignore[misc]
    """Sends the headers of an entry to its own origin alone, and bounds what comes back."""

    def __init__(
        self,
        settings: MCPServerSettings,
        headers: Mapping[str, str],
        failures: HttpFailures,
        *,
        has_auth: bool,
    ) -> None:
        self._has_auth = has_auth
        # Of the deprecated transport the answers come on its stream, not to the POST.
        self._has_answers = settings.transport != "sse"
        self._inner = _http.AsyncHTTPTransport()
        self._origin = _origin(_http.URL(settings.url))
        self._headers = dict(headers)
        self._failures = failures

    async def handle_async_request(self, request: Any) -> Any:
        is_own = _origin(request.url) == self._origin
        if is_own:
            for name, value in self._headers.items():
                request.headers.setdefault(name, value)
        try:
            response = await self._inner.handle_async_request(request)
        except _http.TransportError as exc:
            unsent = isinstance(exc, _http.ConnectError | _http.ConnectTimeout)
            self._failures.last = f"{type(exc).__name__}: {exc}".rstrip(": ")
            asked = _asked(request) if is_own else None
            if asked is None:
                raise
            return _refusal(request, asked, self._failures.last, unsent=unsent)
        return await self._checked(request, response, is_own=is_own)

    async def _checked(self, request: Any, response: Any, *, is_own: bool) -> Any:
        status = response.status_code
        if status >= 400:
            self._failures.last = f"HTTP {status} {response.reason_phrase}".strip()
        asked = _asked(request) if is_own and self._has_answers else None
        if asked is not None:
            if status == 404 and "mcp-session-id" in request.headers:
                await response.aclose()
                return _refusal(request, asked, "its session is over", unsent=True)
            problem = self._problem(asked, response)
            if problem:
                await response.aclose()
                return _refusal(request, asked, problem, code=_INTERNAL_ERROR)
        response.stream = _BoundedStream(response, self._failures, asked)
        return response

    def _problem(self, asked: _Asked, response: Any) -> str:
        """Return why an answer cannot be one; empty if the SDK reads it."""
        status = response.status_code
        kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        if status == 200 and kind not in _ANSWER_TYPES:
            return f"its answer has the content type {kind[:60]!r}, not JSON or an event stream"
        # A person may have to permit it; and SDK 2.x reads errors in JSON.
        is_read = self._has_auth if status in (401, 403) else HAS_SESSIONLESS and "json" in kind
        if status < 400 or is_read or asked.method in _NEGOTIATION:
            return ""
        return self._failures.last

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@dataclass(frozen=True, slots=True)
class _Asked:
    """A JSON-RPC request that was sent."""

    number: int | str
    method: str

    def refused(self, problem: str, *, code: int, unsent: bool = False) -> dict[str, Any]:
        """Return an error that answers it."""
        error: dict[str, Any] = {"code": code, "message": problem}
        if unsent:
            error["data"] = {"tool_search/unsent": True}
        return {"jsonrpc": "2.0", "id": self.number, "error": error}


def _refusal(
    request: Any,
    asked: _Asked,
    problem: str,
    *,
    code: int = CONNECTION_CLOSED,
    unsent: bool = False,
) -> Any:
    content = asked.refused(problem, code=code, unsent=unsent)
    return _http.Response(200, json=content, request=request)


def _asked(request: Any) -> _Asked | None:
    """Return the JSON-RPC request in a POST; None if it is none."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith(
        "application/json"
    ):
        return None
    try:
        content = json.loads(request.content)
    except (ValueError, _http.RequestNotRead):
        return None
    number = content.get("id") if isinstance(content, dict) and "method" in content else None
    return _Asked(number, str(content["method"])) if isinstance(number, int | str) else None


class _BoundedStream(_http.AsyncByteStream):  # type: ignore[misc]
    """The body of a response, which ends with an error if a message is too large."""

    def __init__(self, response: Any, failures: HttpFailures, asked: _Asked | None) -> None:
        self._asked = asked
        self._inner = response.stream
        # Compressed bytes are not text yet.
        self._is_plain = not response.headers.get("content-encoding")
        self._is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._failures = failures

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._asked is not None and self._is_plain and not self._is_events:
            yield await self._whole(self._asked)
            return
        halves = HalfCharacters()
        async for chunk in self._chunks():
            yield halves.feed(chunk) if self._is_plain else chunk
        yield halves.end()

    async def _whole(self, asked: _Asked) -> bytes:
        """Return the JSON of an answer, of which the SDK reads nothing before its end.

        For one that is cut off the SDK has no error: the request would wait for its time-out.
        """
        halves = HalfCharacters()
        pieces: list[bytes] = []
        problem = "its answer is cut off, or not JSON"
        try:
            async for chunk in self._chunks():
                pieces += (halves.feed(chunk),)
        except _http.TransportError as exc:
            pieces.clear()
            problem = f"{type(exc).__name__}: {exc}".rstrip(": ")
        last = next((piece.rstrip() for piece in reversed(pieces) if piece.strip()), b"")
        if last.endswith(b"}"):
            return b"".join(pieces) + halves.end()
        self._failures.last = problem
        return json.dumps(asked.refused(problem, code=CONNECTION_CLOSED)).encode()

    async def _chunks(self) -> AsyncIterator[bytes]:
        count, end = 0, b""
        async for chunk in self._inner:
            count += len(chunk)
            if self._is_events:
                end = (end + chunk)[-4:] if len(chunk) < 4 else chunk
                if any(mark in end for mark in _EVENT_ENDS):
                    count = 0
            if count > MAX_MESSAGE_BYTES:
                problem = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
                self._failures.last = problem
                raise _http.ReadError(problem)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
