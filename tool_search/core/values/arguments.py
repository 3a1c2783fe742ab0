"""The arguments of a call, read from a model's text into a JSON object.

A broken text is repaired only if it can mean one thing: nothing that was cut off is
completed, and no text is passed over.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tool_search.core.values.json import read_json, read_object

__all__ = ["read_arguments"]

# No call needs more, and Python's own parser is slow.
_MAX_LITERAL_CHARS = 100_000
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL | re.IGNORECASE)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?<![\s{\[,],)(?=\s*[}\]])', re.DOTALL)
_CONTROL = {char: f"\\u{char:04x}" for char in range(0x20)}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_arguments(written: str) -> dict[str, Any] | None:
    """Return the arguments, or None if they are not a JSON object; empty text is `{}`.

    Repaired are a code fence around the object, an object inside a JSON string, a
    comma before a closing bracket, line feeds inside strings, and an object as
    Python writes it (`{'a': True}`).

    >>> read_arguments("{'count': 1,}"), read_arguments('{"count": 1')
    ({'count': 1}, None)
    """
    found = read_object(written)
    if found is not None:
        return found
    for readings in (_as_json, _as_python):
        for reading in readings(_strip_fence(written)):
            value = _object(reading)
            if value is not None:
                return value
    return None


def _strip_fence(written: str) -> str:
    """Return the text without spaces, a byte order mark and a code fence around it."""
    stripped = written.strip().lstrip("\ufeff").strip()
    fenced = _FENCE.match(stripped)
    return fenced[1].strip() if fenced else stripped


def _as_json(written: str) -> Iterator[Callable[[], Any]]:
    mended = _STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], written)
    mended = _STRING.sub(lambda m: m[0].translate(_CONTROL), mended)
    yield lambda: read_json(written)
    yield lambda: read_json(mended)


def _as_python(written: str) -> Iterator[Callable[[], Any]]:
    if written.startswith("{") and len(written) <= _MAX_LITERAL_CHARS:
        yield lambda: read_json(json.dumps(ast.literal_eval(written), allow_nan=False))


def _object(reading: Callable[[], Any]) -> dict[str, Any] | None:
    """Return the result of a reading, without one string around it."""
    try:
        value = reading()
        if isinstance(value, str):
            value = read_json(_strip_fence(value))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) else None
