"""HTTP for servers on the network: limits on answers, and failures as answers.

An error of one POST would end the SDK's whole transport, and with it the calls that go on
beside it. Here it becomes the JSON-RPC error of that one request.

Source: mcp 1.26 and 2.3, `client/streamable_http.py`, `client/sse.py`; Model Context
Protocol, 2025-11-25, "Transports" (404: the session is over, begin a new one).
"""

from __future__ import annotations

import asyncio
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
    parse_message,
    refusal_of,
    set_definitions_aside,
    sse_client,
    streamable_http_client,
    with_capabilities,
)
from tool_search.adapters.sdk.connection import bound
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.wire.incoming import (
    ACCEPTED_ENCODINGS,
    LARGE_BYTES,
    EventDecoder,
    SentEvent,
    TooLargeError,
    joined,
)
from tool_search.config.limits import LimitSettings
from tool_search.config.mcp import MCPServerSettings

__all__ = ["HttpFailures", "http_transport"]

# The SDK has the one that it was built with; both have the same names.
_http: Any = import_module("httpx2" if HAS_SESSIONLESS else "httpx")
_CONNECT_S = 30.0
# In a message that stands for a large one, which was read apart from the event loop.
_ASIDE = "tool_search/aside"
_HEAD_BYTES = 200
_INTERNAL_ERROR = -32_603
# By the status of their answers the SDK finds the protocol that the server speaks.
_NEGOTIATION = ("initialize", "server/discover")
_ANSWER_TYPES = ("application/json", "text/event-stream")


class HttpFailures:
    """The state of a server's HTTP connection that the SDK does not keep.

    Attributes:
        last: The last failure, for messages.
        aside: The large messages that were read and not taken yet.
    """

    def __init__(self) -> None:
        self.last = ""
        self.aside: dict[int, Any] = {}

    def put_aside(self, message: Any) -> bytes:
        """Return a small message in place of a large one, for the SDK to parse."""
        inner = getattr(message.message, "root", message.message)
        number = id(message)
        self.aside[number] = message
        stand_in = {"jsonrpc": "2.0"} | {
            key: getattr(inner, key) for key in ("id", "method") if hasattr(inner, key)
        }
        stand_in["params" if hasattr(inner, "method") else "result"] = {_ASIDE: number}
        return json.dumps(stand_in).encode()

    def taken(self, message: Any) -> Any:
        """Return the large message that another stands for, under the id that the SDK gave it."""
        inner: Any = getattr(message, "message", None)
        inner = getattr(inner, "root", inner)
        content = getattr(inner, "result", None) or getattr(inner, "params", None)
        number = content.get(_ASIDE) if isinstance(content, dict) else None
        large = self.aside.pop(number, None) if isinstance(number, int) else None
        if large is None:
            return set_definitions_aside(message)
        if hasattr(inner, "id"):
            getattr(large.message, "root", large.message).id = inner.id
        return large


@asynccontextmanager
async def http_transport(
    settings: MCPServerSettings,
    *,
    auth: Any,
    failures: HttpFailures,
    limits: LimitSettings,
    on_end: Callable[[], None],
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open a transport to a url; give the streams of messages.

    Args:
        settings: The server's entry, without variables.
        limits: The bounds of what comes in.
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
            # A call has its own time-out, and a stream of notifications is silent for hours.
            timeout=_http.Timeout(_CONNECT_S, read=limits.silence_s),
            headers={"accept-encoding": ACCEPTED_ENCODINGS},
            transport=_BoundedTransport(
                settings, headers, failures, limits, has_auth=given.get("auth") is not None
            ),
            follow_redirects=not HAS_SESSIONLESS,
        )

    if settings.transport == "sse":
        inner: Transport = sse_client(
            settings.url, sse_read_timeout=limits.silence_s, httpx_client_factory=client, auth=auth
        )
        async with inner as streams, _watch(streams, failures, on_end) as watched:
            yield watched
        return
    limit = {"max_sse_event_size": limits.max_bytes} if HAS_SESSIONLESS else {}
    async with (
        client(auth=auth) as opened,
        streamable_http_client(settings.url, http_client=opened, **limit) as streams,
        _watch(streams, failures, on_end) as watched,
    ):
        yield watched


@asynccontextmanager
async def _watch(
    streams: Any, failures: HttpFailures, on_end: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Give streams whose messages are whole, and have passed `set_definitions_aside`."""
    read, write, *_ = streams
    send, given = anyio.create_memory_object_stream[Any](0)

    async def pump() -> None:
        try:
            async with send:
                async for message in read:
                    await send.send(failures.taken(message))
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
        limits: LimitSettings,
        *,
        has_auth: bool,
    ) -> None:
        self._limits = limits
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
        return await self._check(request, response, is_own=is_own)

    async def _check(self, request: Any, response: Any, *, is_own: bool) -> Any:
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
        try:
            bound(response, self._limits)
        except ReplyFailedError as exc:
            self._failures.last = str(exc)
            await response.aclose()
            if asked is None:
                raise _http.ReadError(str(exc)) from exc
            return _refusal(request, asked, str(exc), code=_INTERNAL_ERROR)
        if is_own and status < 400:
            response.stream = _Messages(response, self._failures, self._limits, asked)
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


class _Messages(_http.AsyncByteStream):  # type: ignore[misc]
    """The messages in a response: large ones are read here, and stood for by small ones."""

    def __init__(
        self, response: Any, failures: HttpFailures, limits: LimitSettings, asked: _Asked | None
    ) -> None:
        self._asked = asked
        self._inner = response.stream
        self._is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._failures = failures
        self._limits = limits

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_events:
            async for event in self._events():
                data = event.data
                if event.is_cut:
                    data = self._write_refusal(
                        f"it has more than {self._limits.max_bytes:,} bytes", data
                    )
                if data or event.others:
                    lines = b"".join(b"data: %b\n" % line for line in data.split(b"\n"))
                    yield event.others + lines + b"\n"
        elif self._asked is not None:
            yield await self._whole(self._asked)
        else:
            async for chunk in self._inner:
                yield chunk

    async def _events(self) -> AsyncIterator[SentEvent]:
        decoder = EventDecoder(max_bytes=self._limits.max_bytes, is_whole=True)
        async for chunk in self._inner:
            for event in await decoder.decode(chunk):
                yield event if event.is_cut else event._replace(data=await self._small(event.data))
        for event in await decoder.decode(None):
            yield event._replace(data=await self._small(event.data))

    async def _whole(self, asked: _Asked) -> bytes:
        """Return the JSON of an answer, of which the SDK reads nothing before its end.

        For one that is cut off the SDK has no error: the request would wait for its time-out.
        """
        pieces: list[bytes] = []
        problem = "its answer is cut off, or not JSON"
        try:
            async for chunk in self._inner:
                pieces += (chunk,)
        except TooLargeError as exc:
            return self._write_refusal(str(exc), b"")
        except _http.TransportError as exc:
            pieces.clear()
            problem = f"{type(exc).__name__}: {exc}".rstrip(": ")
        last = next((piece.rstrip() for piece in reversed(pieces) if piece.strip()), b"")
        if last.endswith(b"}"):
            return await self._small(await joined(pieces))
        self._failures.last = problem
        return json.dumps(asked.refused(problem, code=CONNECTION_CLOSED)).encode()

    async def _small(self, data: bytes) -> bytes:
        """Return a message without halves of characters; in place of a large one, a small one."""
        if len(data) <= LARGE_BYTES:
            halves = HalfCharacters()
            return halves.feed(data) + halves.end()
        try:
            message = await asyncio.to_thread(self._parse, data)
        except ValueError as exc:
            return self._write_refusal(str(exc), data)
        return self._failures.put_aside(message)

    def _parse(self, data: bytes) -> Any:
        return set_definitions_aside(parse_message(data, self._limits))

    def _write_refusal(self, problem: str, head: bytes) -> bytes:
        """Return an error in place of a message; nothing if it answers nothing."""
        self._failures.last = problem
        if self._asked is not None and b'"method"' not in head[:_HEAD_BYTES]:
            return json.dumps(self._asked.refused(problem, code=_INTERNAL_ERROR)).encode()
        refused = refusal_of(head, problem)
        return b"" if refused is None else json.dumps(refused).encode()

    async def aclose(self) -> None:
        await self._inner.aclose()
