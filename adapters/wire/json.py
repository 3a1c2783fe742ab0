"""JSON of services and strangers, read so that nothing in it can do harm later.

What comes out can be kept, stored and sent back: finite numbers, no nesting that a writer
cannot follow. Half surrogate pairs stay, because the other half may come in the next piece
of a stream: `mended` and `mended_value` join or replace them.
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

__all__ = ["mended", "mended_value", "read_value"]

# Of 1,000 calls that the interpreter's stack holds: who writes a request is deep in it.
_MAX_DEPTH = 400
# About 3 ms of parsing; what is longer is parsed in a thread, so that the event loop goes on.
_MAX_BYTES_AT_ONCE = 256 * 1024


async def read_value(data: bytes) -> Any:
    """Return the value in a JSON text; large texts are parsed off the event loop.

    Raises:
        ValueError: It is not JSON in UTF-8, has a number of thousands of digits, or is nested
            too deeply.
    """
    if len(data) > _MAX_BYTES_AT_ONCE:
        return await asyncio.to_thread(_parsed, data)
    return _parsed(data)


def _parsed(data: bytes) -> Any:
    try:
        value = _decode(data.decode("utf-8"))
    except RecursionError as exc:
        raise ValueError(f"nested deeper than {_MAX_DEPTH} levels") from exc
    if data.count(b"{") + data.count(b"[") > _MAX_DEPTH and _is_too_deep(value):
        raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
    return value


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)


def _finite(written: str) -> float | None:
    number = float(written)
    return number if math.isfinite(number) else None


# NaN and the infinities, which Python's own servers write, are not JSON: no request takes them.
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None).decode


def mended(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, and lone ones replaced."""
    # A surrogate pair in UTF-16 is what its two halves are, one after the other.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended_value(value: Any) -> Any:
    """Return a JSON value with all its texts mended."""
    return json.loads(mended(json.dumps(value, ensure_ascii=False)))
