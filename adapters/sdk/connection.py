"""HTTP connections of all providers: TLS, keys, and bounds on what a server sends.

The SDKs read an error's body whole and unpack what they get. Bounds are set where the bytes
come in: an error is cut after its beginning, and packed bytes are unpacked in small steps.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any

from pydantic import SecretStr

from tool_search.adapters.sdk.failures import (
    HTTP_LIBRARIES,
    MALFORMED_REPLY,
    Failure,
    ReplyFailedError,
)
from tool_search.errors import ConfigurationError

__all__ = [
    "CONNECT_TIMEOUT_S",
    "bounded_client",
    "check_extra_body",
    "check_key",
    "tls_context",
]

CONNECT_TIMEOUT_S = 10.0
"""Seconds within which an endpoint must accept a connection, unless less is set."""

_ACCEPTED = "gzip, deflate"
# gzip expands one byte to at most 1,032.
_PACKED = ("gzip", "x-gzip", "deflate")
_STEP_BYTES = 4 * 1024
_MAX_ERROR_BYTES = 256 * 1024
_MAX_PACKED_ERROR_BYTES = 4 * 1024


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


def bounded_client(kind: Any) -> Any:
    """Return an HTTP client of an SDK's class, the answers of which are bounded.

    Args:
        kind: `DefaultAsyncHttpxClient` of an SDK, on httpx or httpx2.
    """
    return kind(
        verify=tls_context(kind),
        headers={"accept-encoding": _ACCEPTED},
        event_hooks={"response": [_bound]},
    )


async def _bound(response: Any) -> None:
    """Bound a response of which nothing was read yet.

    Raises:
        ReplyFailedError: Its encoding was not asked for.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    is_packed = encoding in _PACKED
    if not is_packed and encoding not in ("", "identity"):
        raise ReplyFailedError(
            Failure(
                detail=f"the content-encoding {encoding!r} was not asked for, {_ACCEPTED!r} was",
                status=response.status_code,
                code=MALFORMED_REPLY,
            )
        )
    max_bytes = None
    if response.status_code >= 400:
        max_bytes = _MAX_PACKED_ERROR_BYTES if is_packed else _MAX_ERROR_BYTES
    if is_packed or max_bytes is not None:
        kind = _stream_class(_byte_stream(type(response.stream)))
        response.stream = kind(response.stream, max_bytes, _STEP_BYTES if is_packed else None)


def _byte_stream(kind: type) -> type:
    """Return the base class of the HTTP library's streams."""
    return next(base for base in kind.__mro__ if base.__name__ == "AsyncByteStream")


@cache
def _stream_class(base: type) -> Any:
    return type("BoundedStream", (_BoundedBytes, base), {})


class _BoundedBytes:
    """A response's bytes, in steps and up to a bound.

    Args:
        stream: The bytes as they arrive.
        max_bytes: The number of bytes after which they are cut; None for no bound.
        step: The longest piece to hand on; None for any.
    """

    def __init__(self, stream: Any, max_bytes: int | None, step: int | None) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._step = step

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for chunk in self._stream:
            taken = chunk if left is None else chunk[:left]
            step = self._step or max(1, len(taken))
            for start in range(0, len(taken), step):
                yield taken[start : start + step]
            left = None if left is None else left - len(taken)
            if left == 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()
