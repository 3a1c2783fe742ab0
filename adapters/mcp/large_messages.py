"""JSON of megabytes, read in short steps.

A parser in C keeps every other thread waiting until it returns: 14 MB of small values take it
half a second. Here only the values inside the outer levels are given to it, one by one, so
that a thread that reads a large message leaves the event loop its turns.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["read_large_json"]

# Of {"result": {"structuredContent": {"rows": [...]}}}: each row is a step.
_LEVELS = 4
_blank = re.compile(r"[ \t\n\r]*").match


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_scan = json.JSONDecoder(parse_constant=_refuse).raw_decode


def read_large_json(text: str) -> Any:
    """Return the value of a JSON text; as `json.loads`, and in short steps.

    Raises:
        ValueError: It is not JSON, or nested too deep.

    >>> read_large_json('{"a": [1, {"b": "c"}], "d": {}}')
    {'a': [1, {'b': 'c'}], 'd': {}}
    """
    try:
        value, end = _read(text, _skip(text, 0), _LEVELS)
    except (IndexError, RecursionError) as exc:
        raise ValueError("the text is not JSON") from exc
    if _skip(text, end) != len(text):
        raise ValueError("there is more than one JSON value")
    return value


def _read(text: str, at: int, levels: int) -> tuple[Any, int]:
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
        found[key], at = _read(text, _skip(text, at + 1), levels)
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
        value, at = _read(text, at, levels)
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
