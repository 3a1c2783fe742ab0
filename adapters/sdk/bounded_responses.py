"""Answers of an HTTP client that cannot flood us, whatever the SDK reads of them.

The SDKs read an error's body whole and unpack what they get. Bounds are set where the bytes
come in: an error is cut after its beginning, and packed bytes are unpacked in small steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

from tool_search.adapters.sdk.connection import tls_context
from tool_search.adapters.sdk.failures import MALFORMED_REPLY, Failure, ReplyFailedError

__all__ = ["bounded_client"]

_ACCEPTED = "gzip, deflate"
# gzip makes at most 1,032 bytes of one.
_PACKED = ("gzip", "x-gzip", "deflate")
_STEP_BYTES = 4 * 1024
_MAX_ERROR_BYTES = 256 * 1024
_MAX_PACKED_ERROR_BYTES = 4 * 1024


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
    """Puts bounds on a response that nothing was read of yet.

    Raises:
        ReplyFailedError: It is packed in a way that nobody asked for.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    is_packed = encoding in _PACKED
    if not is_packed and encoding not in ("", "identity"):
        raise ReplyFailedError(
            Failure(
                detail=f"the answer is packed as {encoding!r}, and {_ACCEPTED!r} was asked for",
                status=response.status_code,
                code=MALFORMED_REPLY,
            )
        )
    most = None
    if response.status_code >= 400:
        most = _MAX_PACKED_ERROR_BYTES if is_packed else _MAX_ERROR_BYTES
    if is_packed or most is not None:
        kind = _stream_class(_byte_stream(type(response.stream)))
        response.stream = kind(response.stream, most, _STEP_BYTES if is_packed else None)


def _byte_stream(kind: type) -> type:
    """The class that the HTTP library wants its streams to be of."""
    return next(base for base in kind.__mro__ if base.__name__ == "AsyncByteStream")


@cache
def _stream_class(base: type) -> Any:
    return type("BoundedStream", (_BoundedBytes, base), {})


class _BoundedBytes:
    """A response's bytes, in steps and up to a bound.

    Args:
        stream: The bytes as they come.
        most: Where they are cut; None: nowhere.
        step: The longest piece to hand on; None: any.
    """

    def __init__(self, stream: Any, most: int | None, step: int | None) -> None:
        self._stream = stream
        self._most = most
        self._step = step

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
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
