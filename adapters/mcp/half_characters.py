r"""JSON in which a server has cut an emoji in half.

JavaScript's `slice` cuts between the two halves of a character, and `JSON.stringify` writes the
half that is left as `\ud83d`. The SDK's parser refuses the whole message for it: a list of
tools, or a result that was asked for.
"""

from __future__ import annotations

import re

__all__ = ["HalfCharacters"]

_HIGH, _LOW = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
# Every escape, so that `\\ud83d`, an escaped backslash before text, is not taken for one.
_ESCAPES = re.compile(rb"\\(?:(%b)(\\%b)?|(%b)|.)" % (_HIGH, _LOW, _LOW), re.DOTALL)
_UNFINISHED = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\(?:%b(?:\\(?:u[0-9a-fA-F]{0,3})?)?|u[0-9a-fA-F]{0,3})?)\Z" % _HIGH
)
_MAX_TAIL = 64


class HalfCharacters:
    r"""Replaces halves of characters in JSON that comes in pieces.

    >>> halves = HalfCharacters()
    >>> halves.feed(b'"a\\ud8') + halves.feed(b'3d", "\\ud83d\\ude00"') + halves.end()
    b'"a\\ufffd", "\\ud83d\\ude00"'
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> bytes:
        """Return a piece without halves; an escape that is not complete yet is kept back."""
        data = self._rest + piece
        self._rest = b""
        if b"\\" not in data:
            return data
        if found := _UNFINISHED.search(data, max(0, len(data) - _MAX_TAIL)):
            data, self._rest = data[: found.start(1)], data[found.start(1) :]
        return _replace(data)

    def end(self) -> bytes:
        """Return what was kept back."""
        rest, self._rest = self._rest, b""
        return _replace(rest)


def _replace(data: bytes) -> bytes:
    # Most JSON has escapes, and nearly none has these.
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _ESCAPES.sub(_whole, data)


def _whole(escape: re.Match[bytes]) -> bytes:
    high, low, alone = escape.groups()
    is_half = alone is not None or (high is not None and low is None)
    return rb"\ufffd" if is_half else escape[0]
