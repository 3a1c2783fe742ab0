"""HTTP connections to services: TLS, keys, and bounds on what a server sends.

The SDKs read an error's body whole and unpack what they get. Bounds are set where the bytes
come in, for every client of ours: packed bytes are unpacked here, in small steps.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from pydantic import SecretStr

from tool_search.adapters.sdk.failures import (
    HTTP_LIBRARIES,
    MALFORMED_REPLY,
    Failure,
    ReplyFailedError,
)
from tool_search.adapters.wire.incoming import (
    ACCEPTED_ENCODINGS,
    DEFAULT_LIMITS,
    Inflater,
    TooLargeError,
    joined,
)
from tool_search.config.limits import LimitSettings
from tool_search.core.values.redaction import redact_logs
from tool_search.errors import ConfigurationError

redact_logs("httpx", "httpx2")

__all__ = [
    "CONNECT_TIMEOUT_S",
    "bound",
    "bounded_client",
    "check_extra_body",
    "check_key",
    "read_body",
    "tls_context",
]

CONNECT_TIMEOUT_S = 10.0
"""Seconds within which an endpoint must accept a connection, unless less is set."""

_MAX_ERROR_BYTES = 256 * 1024
# Bytes after which other tasks have their turn.
_TURN_BYTES = 512 * 1024


@cache
def tls_context(client: type) -> ssl.SSLContext:
    """Return the one TLS context for all HTTP clients of a class.

    Making one reads every trusted certificate.

    Args:
        client: The HTTP client class of an SDK, `DefaultAsyncHttpxClient`.

    Raises:
        ConfigurationError: The class belongs to an unknown HTTP library.
    """
    for kind in client.__mro__:
        library = kind.__module__.partition(".")[0]
        if library in HTTP_LIBRARIES:
            context: ssl.SSLContext = sys.modules[library].create_ssl_context()
            return context
    raise ConfigurationError(
        f"{client.__module__}.{client.__qualname__!r} is not an HTTP client of "
        f"{' or '.join(HTTP_LIBRARIES)}; install a version of the SDK that the extras name, "
        "or pass a client of your own"
    )


def check_extra_body(extra_body: Mapping[str, Any] | None, *, provider: str) -> dict[str, Any]:
    """Return the fields to merge into every request's body.

    Raises:
        ConfigurationError: The plan decides one of the fields.
    """
    extra = dict(extra_body or {})
    for key in ("input", "messages", "tools"):
        if key in extra:
            raise ConfigurationError(
                f"provider {provider!r}: extra_body.{key} is not allowed: the conversation "
                "decides it; give tools to the catalog and text to system_prompt"
            )
    return extra


def check_key(api_key: str | SecretStr, *, provider: str) -> SecretStr:
    """Return the key, which prints as asterisks, if a header can carry it.

    Raises:
        ConfigurationError: No key has such characters; the message does not show them.
    """
    key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(
            f"provider {provider!r}: the API key is empty or has characters that no header can "
            "carry; look for a line end, quotation marks or a placeholder in it"
        )
    return SecretStr(key)


def bounded_client(kind: Any, limits: LimitSettings = DEFAULT_LIMITS, **options: Any) -> Any:
    """Return an HTTP client of an SDK's class, the answers of which are bounded.

    Args:
        kind: `DefaultAsyncHttpxClient` of an SDK, or `DefaultHttpxClient`, on httpx or httpx2.
        limits: The bounds of an answer.
        options: Further options of the client.
    """

    async def hook(response: Any) -> None:
        bound(response, limits)

    is_async = hasattr(kind, "aclose")
    return kind(
        verify=tls_context(kind),
        headers={"accept-encoding": ACCEPTED_ENCODINGS},
        event_hooks={"response": [hook if is_async else partial(bound, limits=limits)]},
        **options,
    )


def bound(response: Any, limits: LimitSettings) -> None:
    """Bound a response of which nothing was read yet, and unpack its bytes.

    An error is cut after its beginning. A stream of events has no total: who reads it bounds
    each event.

    Raises:
        ReplyFailedError: Its encoding was not asked for.
    """
    try:
        inflater = Inflater(response.headers.pop("content-encoding", ""))
    except ValueError as exc:
        failure = Failure(detail=str(exc), status=response.status_code, code=MALFORMED_REPLY)
        raise ReplyFailedError(failure) from exc
    library = sys.modules[type(response).__mro__[-2].__module__.partition(".")[0]]
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    bounded = _stream_class(library)(response.stream, library, inflater, limits)
    bounded.cut_at = _MAX_ERROR_BYTES if response.status_code >= 400 else None
    bounded.is_body = not is_stream and bounded.cut_at is None
    response.stream = bounded


async def read_body(response: Any) -> bytes:
    """Return a response's whole body, though it says that it is a stream of events.

    Raises:
        TooLargeError: It is too large.
    """
    response.stream.is_body = True
    return await joined([piece async for piece in response.aiter_bytes()])


@cache
def _stream_class(library: Any) -> Any:
    bases = (_BoundedBytes, library.AsyncByteStream, library.SyncByteStream)
    return type("BoundedStream", bases, {})


class _BoundedBytes:
    """A response's bytes, unpacked, up to a bound.

    Args:
        stream: The bytes as they arrive.
        library: The HTTP library.
        inflater: Unpacks them.
        limits: The bounds.
    """

    cut_at: int | None = None
    is_body = True

    def __init__(
        self, stream: Any, library: Any, inflater: Inflater, limits: LimitSettings
    ) -> None:
        self._stream = stream
        self._library = library
        self._inflater = inflater
        self._limits = limits
        self._count = 0
        self._deadline: float | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        chunks = aiter(self._stream)
        turn = 0
        while not self._is_over:
            try:
                async with asyncio.timeout_at(self._deadline) as patience:
                    chunk = await anext(chunks, None)
            except TimeoutError as exc:
                raise self._too_late() if patience.expired() else exc from None
            if chunk is None:
                return
            for piece in self._pieces(chunk, loop.time):
                yield piece
                if self._count // _TURN_BYTES > turn:
                    # A few packed bytes may have megabytes in them.
                    turn = self._count // _TURN_BYTES
                    await asyncio.sleep(0)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            yield from self._pieces(chunk, time.monotonic)
            if self._is_over:
                return
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise self._too_late()

    @property
    def _is_over(self) -> bool:
        return self.cut_at is not None and self._count >= self.cut_at

    def _pieces(self, chunk: bytes, clock: Callable[[], float]) -> Iterator[bytes]:
        try:
            inflater = self._inflater
            for whole in inflater.feed(chunk) if inflater.is_packed else (chunk,):
                piece = whole if self.cut_at is None else whole[: self.cut_at - self._count]
                self._count += len(piece)
                if self.is_body and self._count > self._limits.max_bytes:
                    raise TooLargeError(f"it has more than {self._limits.max_bytes:,} bytes")
                if self.is_body and self._deadline is None and piece.strip():
                    # DeepSeek sends empty lines until its reply begins.
                    self._deadline = clock() + self._limits.body_timeout_s
                yield piece
                if self._is_over:
                    return
        except zlib.error as exc:
            raise self._library.DecodingError(f"it is not packed as it says: {exc}") from exc

    def _too_late(self) -> Exception:
        late: Exception = self._library.ReadTimeout(
            f"it was not complete within {self._limits.body_timeout_s:g} seconds (body_timeout_s)"
        )
        return late

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()
