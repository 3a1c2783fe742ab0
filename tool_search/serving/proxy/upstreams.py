"""Requests to providers: the right one, its address and key, and its replies in bytes."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from tool_search.adapters.sdk.connection import bound
from tool_search.adapters.wire.incoming import EventDecoder, TooLargeError
from tool_search.adapters.wire.incoming import SentEvent as DecodedEvent
from tool_search.config.limits import LimitSettings
from tool_search.core.settings import Dialect
from tool_search.serving.door import TOKEN_HEADER
from tool_search.serving.proxy.addresses import key_header, upstream_url
from tool_search.serving.proxy.dialects.base import SentEvent
from tool_search.serving.proxy.report import CLIENT_LEFT
from tool_search.serving.proxy.requests import KEY_HEADERS, read_object
from tool_search.serving.proxy.settings import UpstreamSettings

__all__ = ["ProxyReply", "Upstreams", "kept_headers", "plain_headers", "sent_events"]

# Of one connection alone (RFC 9110, section 7.6.1), or written anew by each client. The server
# of this proxy has answered `expect` when the body is read, and writes a date and its own name.
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length", "expect", "date", "server"),
)  # fmt: skip
_CONNECT_S = 15.0
_MAX_CONNECTIONS = 1_000
# Bytes of an event around the few of a piece of text; what is counted of it is kept.
_ENVELOPE_BYTES = 300


@dataclass(slots=True)
class ProxyReply:
    """A reply to a client.

    Attributes:
        status: The status.
        headers: The headers, repeated ones too.
        content: The whole body, or its pieces.
    """

    status: int
    headers: httpx2.Headers
    content: bytes | AsyncIterator[bytes]


class Upstreams:
    """The providers of a proxy.

    Args:
        settings: The providers, in order.
        limits: The bounds of what they send.

    Attributes:
        limits: The same.
    """

    def __init__(self, settings: tuple[UpstreamSettings, ...], limits: LimitSettings) -> None:
        self._settings = settings
        self.limits = limits
        self._certificates = _certificates()
        self._client: httpx2.AsyncClient | None = None

    def choose(self, dialect: Dialect | None, model: str) -> UpstreamSettings | None:
        """Return the first provider that speaks a format and has a model.

        Args:
            dialect: The format; None: any.
            model: The model's name; empty: any.
        """
        for each in self._settings:
            if dialect is not None and dialect not in each.spoken:
                continue
            if not model or any(fnmatchcase(model, glob) for glob in each.models):
                return each
        return None

    @asynccontextmanager
    async def send(
        self,
        upstream: UpstreamSettings,
        method: str,
        path: str,
        *,
        headers: httpx2.Headers,
        content: bytes | AsyncIterator[bytes] | None = None,
        query: str = "",
        is_opaque: bool = False,
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request, and give the reply while it comes.

        Args:
            upstream: The provider.
            method: The method.
            path: The path of the client's request, percent-encoded.
            headers: The headers of the client's request.
            content: The body.
            query: The query of the client's request.
            is_opaque: True if the reply goes on in bytes, of any number and packing.

        Raises:
            httpx2.HTTPError: There is no reply.
            ReplyFailedError: It is packed in a way that nobody asked for.
        """
        sent = self._headers(upstream, headers)
        if content is not None and not isinstance(content, bytes) and "content-length" in headers:
            # Without its length a stream is sent in chunks, which not every server reads.
            sent["content-length"] = headers["content-length"]
        timeout = httpx2.Timeout(upstream.timeout_s, connect=_CONNECT_S)
        # Not made by the HTTP client, which has headers of its own.
        request = httpx2.Request(
            method,
            upstream_url(upstream.base_url, path, query),
            headers=sent,
            content=content,
            extensions={"timeout": timeout.as_dict()},
        )
        # A redirect is not followed: the key would go to another host.
        response = await self._http().send(request, stream=True, follow_redirects=False)
        try:
            if not is_opaque:
                bound(response, self.limits)
            yield response
        finally:
            await response.aclose()

    async def forward(
        self,
        upstream: UpstreamSettings,
        method: str,
        path: str,
        *,
        headers: httpx2.Headers,
        content: bytes | AsyncIterator[bytes] | None,
        query: str,
        ended: Callable[[int], None] = lambda _status: None,
    ) -> ProxyReply:
        """Send any request on, and its reply back as it comes, in bytes.

        Raises:
            httpx2.HTTPError: There is no reply.
        """
        stack = AsyncExitStack()
        response = await stack.enter_async_context(
            self.send(upstream, method, path, headers=headers, content=content, query=query)
        )

        async def pieces() -> AsyncIterator[bytes]:
            async with stack:
                status = CLIENT_LEFT
                try:
                    async for piece in response.aiter_raw():
                        yield piece
                    status = response.status_code
                except httpx2.HTTPError:
                    status = 502
                    raise
                finally:
                    ended(status)

        kept = kept_headers(response.headers)
        # The bytes are the provider's own; a reply to HEAD has a length and none of them.
        if "content-length" in response.headers:
            kept["content-length"] = response.headers["content-length"]
        return ProxyReply(response.status_code, kept, pieces())

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            limits = httpx2.Limits(
                max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS // 5
            )
            self._client = httpx2.AsyncClient(
                limits=limits, verify=self._certificates, cookies=_no_cookies()
            )
        return self._client

    @staticmethod
    def _headers(upstream: UpstreamSettings, given: httpx2.Headers) -> httpx2.Headers:
        headers = kept_headers(given)
        headers.setdefault("accept-encoding", "identity")
        if upstream.api_key_env is None:
            return headers
        key = os.environ.get(upstream.api_key_env, "")
        sent = [name for name in KEY_HEADERS if name in headers]
        only = key_header(upstream.base_url)
        if only is not None:
            for name in sent:
                del headers[name]
            sent = [only]
        for name in sent or ["x-api-key" if upstream.spoken == ("anthropic",) else "authorization"]:
            headers[name] = f"Bearer {key}" if name == "authorization" else key
        return headers

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def plain_headers(response: httpx2.Response) -> httpx2.Headers:
    """Return the headers of a reply whose content is read here."""
    headers = kept_headers(response.headers)
    headers.pop("content-encoding", None)
    return headers


async def sent_events(response: httpx2.Response, limits: LimitSettings) -> AsyncIterator[SentEvent]:
    """Yield the events of a stream; a mark of the end is none of them.

    Raises:
        TooLargeError: An event is beyond a bound, or all that is kept of them.
    """
    decoder, problem, kept = EventDecoder(max_bytes=limits.max_bytes), None, 0
    try:
        async for piece in response.aiter_bytes():
            for event in await decoder.decode(piece):
                kept += max(len(event.data) - _ENVELOPE_BYTES, len(event.data) // 4)
                if kept > limits.max_bytes:
                    raise TooLargeError(f"the reply has more than {limits.max_bytes:,} bytes")
                if read := await _read_event(event, limits):
                    yield read
    except httpx2.TransportError as exc:
        problem = exc
    # What a stream has given before it breaks is delivered, its last event too.
    for event in await decoder.decode(None):
        if read := await _read_event(event, limits):
            yield read
    if problem is not None:
        raise problem


async def _read_event(event: DecodedEvent, limits: LimitSettings) -> SentEvent | None:
    data = await read_object(event.data, limits)
    return None if data is None else SentEvent(event.name.decode("utf-8", "replace") or None, data)


@cache
def _certificates() -> ssl.SSLContext:
    """Return the authorities that are trusted: read once, since it takes 30 ms."""
    return httpx2.create_ssl_context()


def _no_cookies() -> CookieJar:
    """Return a jar that keeps nothing: a cookie is of the client whose reply has it."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def kept_headers(headers: httpx2.Headers) -> httpx2.Headers:
    """Return headers that go on, in order, repeated ones too."""
    named = (name.strip().casefold() for name in headers.get("connection", "").split(","))
    dropped = {*_HOP_BY_HOP, *named, TOKEN_HEADER}
    return httpx2.Headers(
        [(n, v) for n, v in headers.raw if n.decode("latin-1").casefold() not in dropped]
    )
