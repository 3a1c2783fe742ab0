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
            transport=_BoundedTransport(settings.url, headers, failures),
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

    def __init__(self, url: str, headers: Mapping[str, str], failures: HttpFailures) -> None:
        self._inner = _http.AsyncHTTPTransport()
        self._origin = _origin(_http.URL(url))
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
            number = _request_id(request) if is_own else None
            if number is None:
                raise
            return self._refusal(request, number, self._failures.last, unsent=unsent)
        return await self._checked(request, response, is_own=is_own)

    async def _checked(self, request: Any, response: Any, *, is_own: bool) -> Any:
        status = response.status_code
        if status >= 400:
            self._failures.last = f"HTTP {status} {response.reason_phrase}".strip()
        if status == 404 and is_own and "mcp-session-id" in request.headers:
            number = _request_id(request)
            if number is not None:
                await response.aclose()
                return self._refusal(request, number, "its session is over", unsent=True)
        response.stream = _BoundedStream(response, self._failures)
        return response

    def _refusal(self, request: Any, number: Any, problem: str, *, unsent: bool) -> Any:
        error = {"code": CONNECTION_CLOSED, "message": problem}
        content = {"jsonrpc": "2.0", "id": number, "error": error}
        if unsent:
            content["error"] = {**error, "data": {"tool_search/unsent": True}}
        return _http.Response(200, json=content, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _request_id(request: Any) -> int | str | None:
    """Return the id of a JSON-RPC request in a POST; None if it is none."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith(
        "application/json"
    ):
        return None
    try:
        content = json.loads(request.content)
    except (ValueError, _http.RequestNotRead):
        return None
    number = content.get("id") if isinstance(content, dict) and "method" in content else None
    return number if isinstance(number, int | str) else None


class _BoundedStream(_http.AsyncByteStream):  # type: ignore[misc]
    """The body of a response, which ends with an error if a message is too large."""

    def __init__(self, response: Any, failures: HttpFailures) -> None:
        self._inner = response.stream
        # Compressed bytes are not text yet.
        self._is_plain = not response.headers.get("content-encoding")
        self._is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._failures = failures

    async def __aiter__(self) -> AsyncIterator[bytes]:
        halves = HalfCharacters()
        async for chunk in self._chunks():
            yield halves.feed(chunk) if self._is_plain else chunk
        yield halves.end()

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
