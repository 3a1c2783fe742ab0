"""JSON values: written compactly, read strictly, copied within bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = [
    "JSON",
    "compact_json",
    "copy_and_json",
    "encodable",
    "json_bytes",
    "plain_copy",
    "read_json",
    "read_object",
    "shown",
]

JSON = Mapping[str, Any]

# Of the 1,000 calls that the interpreter's stack holds: a request is written deep in it.
_MAX_NESTING_DEPTH = 400
_TOO_DEEP = f"nested deeper than {_MAX_NESTING_DEPTH} levels"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().decode


def compact_json(value: object) -> str:
    """Return the value as JSON without spaces, in key order as given, not ASCII-escaped.

    Raises:
        ValueError: The value refers to itself, or holds NaN or an infinity.
        TypeError: The value is not made of JSON types.
        RecursionError: The value is nested deeper than the interpreter's stack.
    """
    return _encode(value)


def json_bytes(value: object) -> bytes:
    """Return a value as compact JSON in UTF-8."""
    return compact_json(value).encode("utf-8", "replace")


def read_json(text: str) -> Any:
    """Return the value in a JSON text of any author, lone surrogates replaced.

    Raises:
        ValueError: It is not JSON; NaN, infinities and numbers beyond a double are not.
        RecursionError: It is nested deeper than the interpreter's stack.
    """
    value = _decoded(text.strip(_JSON_SPACES))
    return json.loads(encodable(compact_json(value))) if "\\ud" in text.lower() else value


def read_object(text: str) -> dict[str, Any] | None:
    """Return the object in a JSON text, or None if it is not one; empty text is `{}`."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None if text.strip() else {}
    return value if isinstance(value, dict) else None


def _no_number(written: str) -> float:
    raise ValueError(f"{written} is no JSON number")


def _finite(written: str) -> float:
    value = float(written)
    return value if math.isfinite(value) else _no_number(written)


_read_one = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite).raw_decode
_JSON_SPACES = " \t\n\r"


def _decoded(text: str) -> Any:
    """Return the only value of a text without spaces around it; calls do not wait for a regex."""
    value, end = _read_one(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def encodable(text: str) -> str:
    """Return the text with lone surrogates replaced: a UTF-8 request cannot carry them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain_copy(value: object) -> Any:
    """Return a private copy of a JSON value, lone surrogates replaced.

    Raises:
        ValueError: It is nested deeper than 400 levels, refers to itself, or holds NaN
            or an infinity.
        TypeError: It is not made of JSON types.
    """
    return copy_and_json(value)[0]


def copy_and_json(value: object) -> tuple[Any, str]:
    """Return `plain_copy` of a value, and its compact JSON."""
    try:
        text = encodable(compact_json(value))
        copy = _decode(text)
    except RecursionError as exc:
        raise ValueError(_TOO_DEEP) from exc
    if text.count("{") + text.count("[") > _MAX_NESTING_DEPTH and _is_too_deep(copy):
        raise ValueError(_TOO_DEEP)
    # Keys that are not strings, or that are equal once repaired, may be one key now.
    return copy, text if copy == value else compact_json(copy)


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_MAX_NESTING_DEPTH):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)


def shown(value: object) -> str:
    """Return the value for an error message, at most 80 characters of it."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"{type(value).__name__} {_TOO_DEEP}"
    return text if len(text) <= 80 else f"{text[:77]}..."
