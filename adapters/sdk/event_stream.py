"""Server-sent events, read in linear time and within bounds.

The SDKs' own readers keep the pieces of an event in one growing text,
without a limit. Source: WHATWG HTML, "Server-sent events", interpretation of an event stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tool_search.adapters.sdk.failures import REPLY_TOO_LARGE, Failure, ReplyFailedError

__all__ = ["EventDecoder", "SentEvent"]

_ENDS = (b"\n", b"\r")
# Some servers break off with the body of an error, without `data:` (llm_wiki 628).
_ERROR = (b'{"error"', b'{ "error"', b'{"type":"error"', b'{"type": "error"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SentEvent(NamedTuple):
    """One event: the name after `event:`, and its data."""

    name: bytes
    data: bytes


class EventDecoder:
    """A decoder of a stream's bytes into events; comments and unused fields are skipped.

    A line that is an error's JSON counts as data.

    Args:
        max_event_bytes: The longest event.
    """

    def __init__(self, *, max_event_bytes: int) -> None:
        self._max_bytes = max_event_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[SentEvent]:
        """Return the events that a piece of the stream completes.

        Raises:
            ReplyFailedError: An event is too long.
        """
        if not chunk:
            return
        if self._is_first:
            chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        if self._after_return:
            # The second half of a line's end that was cut in two.
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        for piece in chunk.splitlines(keepends=True):
            if not self._line and piece.startswith(b":") and piece.endswith(_ENDS):
                continue
            self._size += len(piece)
            if self._size > self._max_bytes:
                raise ReplyFailedError(
                    Failure(
                        detail=f"an event of the stream has more than {self._max_bytes:,} bytes",
                        code=REPLY_TOO_LARGE,
                    )
                )
            self._line.append(piece)
            if piece.endswith(_ENDS):
                yield from self._end_line()
        self._after_return = chunk.endswith(b"\r")

    def finish(self) -> Iterator[SentEvent]:
        """Return the event that the stream ended in, without the empty line after it."""
        if self._line:
            yield from self._end_line()
        yield from self._end_event()

    def _end_line(self) -> Iterator[SentEvent]:
        line = b"".join(self._line).rstrip(b"\r\n")
        self._line.clear()
        if not line:
            yield from self._end_event()
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
        elif line.startswith(_ERROR):
            yield from self._end_event()
            yield SentEvent(b"", line)

    def _end_event(self) -> Iterator[SentEvent]:
        event = SentEvent(self._name, b"\n".join(self._data))
        self._data.clear()
        self._name, self._size = b"", 0
        if event.data:
            yield event
