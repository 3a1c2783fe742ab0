"""Bounded reading of input from a network or a server's process.

Bytes are counted after unpacking too; JSON is bounded in values and levels before anything
else reads it, and a large text is parsed apart from the event loop, in short steps: a parser
in C keeps every other thread waiting until it returns.

Sources: WHATWG HTML, "Server-sent events", interpretation of an event stream; RFC 9110,
"Content Codings".
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from tool_search.config.limits import LimitSettings
from tool_search.errors import ToolSearchError

__all__ = [
    "ACCEPTED_ENCODINGS",
    "DEFAULT_LIMITS",
    "LARGE_BYTES",
    "EventDecoder",
    "Inflater",
    "LineDecoder",
    "SentEvent",
    "TooLargeError",
    "check_json",
    "joined",
    "parse_json",
    "read_json",
]

DEFAULT_LIMITS = LimitSettings()
ACCEPTED_ENCODINGS = "gzip, deflate"
"""What a request says that it takes; anything else is refused, since nobody asked for it."""
LARGE_BYTES = 100_000
"""Bytes of JSON that is read apart from the event loop: more than about 2 ms of work."""

_PACKED = ("gzip", "x-gzip", "deflate")
_STEP_BYTES = 64 * 1024
_HEAD_BYTES, _FEW_PIECES = 1_000, 1_000
# About 1 ms to put together: a new page of memory costs more than the copy.
_MANY_BYTES = 1_000_000
_ENDS = (b"\n", b"\r")
# Some servers break off with the body of an error, without `data:` (llm_wiki 628).
_ERROR = (b'{"error"', b'{ "error"', b'{"type":"error"', b'{"type": "error"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TooLargeError(ToolSearchError, ValueError):
    """An error for input beyond a bound, which the message names."""


class Inflater:
    """The bytes of a packed body, unpacked in steps.

    Args:
        encoding: The `content-encoding`; empty for a body that is not packed.

    Raises:
        ValueError: Nobody asked for this encoding.
    """

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        if encoding not in (*_PACKED, "", "identity"):
            raise ValueError(
                f"the content-encoding {encoding!r} was not asked for, {ACCEPTED_ENCODINGS!r} was"
            )
        # 32: the header of zlib is told from that of gzip by the bytes.
        self.is_packed = encoding in _PACKED
        self._inner = zlib.decompressobj(zlib.MAX_WBITS + 32) if self.is_packed else None
        self._is_first = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what a piece has in it.

        Raises:
            zlib.error: It is not packed as the encoding says.
        """
        if self._inner is None:
            yield data
            return
        if self._is_first and data:
            self._is_first = False
            if data[0] & 0x0F != zlib.DEFLATED and data[:1] != b"\x1f":
                self._inner = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without a header
        while True:
            piece = self._inner.decompress(data, _STEP_BYTES)
            data = self._inner.unconsumed_tail
            if piece:
                yield piece
            if self._inner.eof and self._inner.unused_data[:2] == b"\x1f\x8b":
                # A body of several members, one after another.
                data = self._inner.unused_data
                self._inner = zlib.decompressobj(zlib.MAX_WBITS + 32)
            elif not data and len(piece) < _STEP_BYTES:
                return


async def joined(pieces: Sequence[bytes]) -> bytes:
    """Return the pieces of a body as one; large ones are put together off the event loop."""
    if sum(map(len, pieces)) > _MANY_BYTES:
        return await asyncio.to_thread(b"".join, pieces)
    return b"".join(pieces)


def _head(pieces: list[bytes]) -> bytes:
    return b"".join(piece[:_HEAD_BYTES] for piece in pieces)[:_HEAD_BYTES]


class LineDecoder:
    """A decoder of a process's output into lines; of one that is too long, the head is given.

    Args:
        max_bytes: The longest line.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the lines that a piece completes, and True for the head of one too long."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield from self._add(piece)
            if self._size <= self._max_bytes:
                yield b"".join(self._pieces), False
            self._pieces.clear()
            self._size = 0
        yield from self._add(rest)

    def _add(self, piece: bytes) -> Iterator[tuple[bytes, bool]]:
        was_within = self._size <= self._max_bytes
        self._size += len(piece)
        if self._size <= self._max_bytes:
            self._pieces.append(piece)
        elif was_within:
            yield _head([*self._pieces[:_FEW_PIECES], piece]), True
            self._pieces.clear()


class SentEvent(NamedTuple):
    """One event: the name after `event:`, its data, and the lines of its other fields.

    `is_cut` is True for the head of an event that was too long.
    """

    name: bytes
    data: bytes
    others: bytes = b""
    is_cut: bool = False


class EventDecoder:
    """A decoder of a stream's bytes into events; comments are skipped.

    A line that is an error's JSON counts as data. The SDKs' own readers keep the pieces of an
    event in one growing text, without a limit.

    Args:
        max_bytes: The longest event.
        is_whole: True to give events without data too, and the head of one that is too long.
    """

    def __init__(self, *, max_bytes: int, is_whole: bool = False) -> None:
        self._max_bytes = max_bytes
        self._is_whole = is_whole
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._others: dict[bytes, bytes] = {}
        self._name = b""
        self._size = 0
        self._is_first = True
        self._after_return = self._skips = False

    async def decode(self, chunk: bytes | None) -> Iterable[SentEvent]:
        """Return the events of a piece, or of the end: a large one is completed off the loop.

        Raises:
            TooLargeError: An event is too long; those before it are given first.
        """
        events = self.finish() if chunk is None else self.feed(chunk)
        if self._size <= _MANY_BYTES:
            return events
        first = await asyncio.to_thread(next, events, None)
        return () if first is None else chain((first,), events)

    def feed(self, chunk: bytes) -> Iterator[SentEvent]:
        """Return the events that a piece of the stream completes.

        Raises:
            TooLargeError: An event is too long.
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
            if self._size > self._max_bytes and not self._skips:
                yield self._cut(piece)
            # Of an event that is passed over, only its end counts.
            self._line.append(piece[-2:] if self._skips and self._line else piece)
            if piece.endswith(_ENDS):
                yield from self._end_line()
            elif self._skips:
                self._line[:] = [b"x"]
        self._after_return = chunk.endswith(b"\r")

    def finish(self) -> Iterator[SentEvent]:
        """Return the event that the stream ended in, without the empty line after it."""
        if self._line:
            yield from self._end_line()
        yield from self._end_event()

    def _cut(self, piece: bytes) -> SentEvent:
        problem = f"an event of the stream has more than {self._max_bytes:,} bytes"
        if not self._is_whole:
            raise TooLargeError(problem)
        self._skips = True
        said = self._data[:_FEW_PIECES] or [*self._line[:_FEW_PIECES], piece]
        self._data.clear()
        self._line.clear()
        return SentEvent(self._name, _head(said), is_cut=True)

    def _end_line(self) -> Iterator[SentEvent]:
        pieces = self._line[:]
        self._line.clear()
        pieces[-1] = pieces[-1].rstrip(b"\r\n")
        if len(pieces) > 1 and pieces[0].startswith(b"data: "):
            # One copy of a line of megabytes, not five.
            pieces[0] = pieces[0].removeprefix(b"data: ")
            field, value = b"data", b"".join(pieces)
        else:
            line = b"".join(pieces)
            if not line:
                yield from self._end_event()
                return
            if line.startswith(_ERROR) and not self._skips:
                yield from self._end_event()
                yield SentEvent(b"", line)
                return
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
        if self._skips:
            return
        if field == b"data":
            self._data.append(value)
        elif field in (b"event", b"id", b"retry"):
            self._others[field] = b"%b: %b\n" % (field, value)
            if field == b"event":
                self._name = value

    def _end_event(self) -> Iterator[SentEvent]:
        event = SentEvent(self._name, b"\n".join(self._data), b"".join(self._others.values()))
        skipped, self._skips = self._skips, False
        self._data.clear()
        self._others.clear()
        self._name, self._size = b"", 0
        if not skipped and (event.data or (self._is_whole and event.others)):
            yield event


# -- JSON ------------------------------------------------------------------------------------------


async def read_json(data: bytes, limits: LimitSettings = DEFAULT_LIMITS) -> Any:
    """Return the value in a JSON text; a large one is parsed off the event loop.

    Raises:
        TooLargeError: It has too many values or levels.
        ValueError: It is not JSON in UTF-8, or has a number of thousands of digits.
    """
    if len(data) > LARGE_BYTES:
        return await asyncio.to_thread(parse_json, data, limits)
    return parse_json(data, limits)


def parse_json(data: bytes, limits: LimitSettings = DEFAULT_LIMITS) -> Any:
    """Return the same at once, in short steps if it is large.

    NaN and the infinities, which Python's own servers write, are read as null. Halves of
    surrogate pairs stay: the other half may come in the next piece of a stream.
    """
    check_json(data, limits)
    text = data.decode("utf-8")
    try:
        value = _read_in_steps(text) if len(data) > LARGE_BYTES else _decode(text)
    except RecursionError as exc:
        raise _too_deep(limits) from exc
    if data.count(b"{") + data.count(b"[") > limits.max_depth and _is_deeper(value, limits):
        raise _too_deep(limits)
    return value


_ESCAPES = re.compile(rb"\\.", re.DOTALL)


def check_json(data: bytes, limits: LimitSettings = DEFAULT_LIMITS) -> None:
    """Compare the number of values in a JSON text with the bound; nothing is parsed yet.

    Raises:
        TooLargeError: There are too many.
    """
    if sum(map(data.count, (b",", b"{", b"["))) <= limits.max_items:
        return
    found = sum(sum(map(part.count, (b",", b"{", b"["))) for part in _between_strings(data))
    if found > limits.max_items:
        raise TooLargeError(f"its JSON has more than {limits.max_items:,} values (max_items)")


def _between_strings(data: bytes) -> Iterator[bytes]:
    """Yield what is outside the strings of a JSON text, in steps of linear time."""
    at, is_inside = 0, False
    while at < len(data):
        piece = data[at : at + _STEP_BYTES]
        at += len(piece)
        plain = _ESCAPES.sub(b"", piece) if b"\\" in piece else piece
        if plain.endswith(b"\\") and at < len(data):
            plain = plain[:-1]  # an escape that is cut in two
            at -= 1
        parts = plain.split(b'"')
        yield b"".join(parts[1 if is_inside else 0 :: 2])
        is_inside ^= len(parts) % 2 == 0


def _too_deep(limits: LimitSettings) -> TooLargeError:
    return TooLargeError(f"its JSON is nested deeper than {limits.max_depth} levels (max_depth)")


def _is_deeper(value: Any, limits: LimitSettings) -> bool:
    level: list[Any] = [value]
    for _ in range(limits.max_depth):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)


def _finite(written: str) -> float | None:
    number = float(written)
    return number if math.isfinite(number) else None


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None)
_decode, _scan = _decoder.decode, _decoder.raw_decode
# Of {"result": {"structuredContent": {"rows": [...]}}}: each row is a step.
_LEVELS = 4
_blank = re.compile(r"[ \t\n\r]*").match


def _read_in_steps(text: str) -> Any:
    """Return the value of a text: only what is inside its outer levels is parsed in C."""
    try:
        value, end = _read_value(text, _skip(text, 0), _LEVELS)
    except IndexError as exc:
        raise ValueError("the text is not JSON") from exc
    if _skip(text, end) != len(text):
        raise ValueError("there is more than one JSON value")
    return value


def _read_value(text: str, at: int, levels: int) -> tuple[Any, int]:
    if levels and text[at] == "{":
        return _object(text, at + 1, levels - 1)
    if levels and text[at] == "[":
        return _array(text, at + 1, levels - 1)
    return _scan(text, at)


def _object(text: str, at: int, levels: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _skip(text, at)
    if text[at] == "}":
        return found, at + 1
    while True:
        if text[at] != '"':
            raise ValueError("the text is not JSON")
        key, at = _scan(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("the text is not JSON")
        found[key], at = _read_value(text, _skip(text, at + 1), levels)
        at = _skip(text, at)
        if text[at] == "}":
            return found, at + 1
        if text[at] != ",":
            raise ValueError("the text is not JSON")
        at = _skip(text, at + 1)


def _array(text: str, at: int, levels: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _skip(text, at)
    if text[at] == "]":
        return found, at + 1
    while True:
        value, at = _read_value(text, at, levels)
        found.append(value)
        at = _skip(text, at)
        if text[at] == "]":
            return found, at + 1
        if text[at] != ",":
            raise ValueError("the text is not JSON")
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _blank(text, at)
    return at if found is None else found.end()
