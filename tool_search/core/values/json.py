"""JSON values: written compactly, read strictly, frozen, and read from a model's text."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from tool_search.errors import CatalogError

__all__ = [
    "EMPTY",
    "JSON",
    "FrozenDict",
    "FrozenList",
    "compact_json",
    "copy_and_json",
    "encodable",
    "frozen",
    "frozen_items",
    "json_bytes",
    "part_at",
    "plain_copy",
    "pointer_steps",
    "read_arguments",
    "read_json",
    "read_object",
    "shown",
    "unique_keys",
]

# JSON values: written compactly, read strictly, copied within bounds.


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
    value = _decode_text(text.strip(_JSON_SPACES))
    return json.loads(encodable(compact_json(value))) if "\\ud" in text.lower() else value


def read_object(text: str) -> dict[str, Any] | None:
    """Return the object in a JSON text, or None if it is not one; empty text is `{}`."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None if text.strip() else {}
    return value if isinstance(value, dict) else None


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """Return the steps of a JSON Pointer, with or without a `#` before it (RFC 6901)."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def part_at(value: Any, steps: Iterable[str]) -> Any:
    """Return the part of a JSON value at some steps; None if there is none."""
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and len(step) < 8:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise ValueError for a key that is there twice: readers take either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(written: str) -> float:
    raise ValueError(f"{written} is no JSON number")


def _finite(written: str) -> float:
    value = float(written)
    return value if math.isfinite(value) else _no_number(written)


_read_one = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite).raw_decode
_JSON_SPACES = " \t\n\r"


def _decode_text(text: str) -> Any:
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


# JSON values that cannot be changed, not even in their depth.
#
# They are subclasses of `dict` and `list`, so that they can be encoded as JSON, validated and
# compared like any others. Copies (`copy.deepcopy`, `dict(...)`) can be changed.


class _ReadOnlyError(CatalogError, TypeError):
    """A change of a value that belongs to a tool; a `TypeError`, as for other immutable types."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise _ReadOnlyError(
        f"a tool's {'object' if isinstance(self, dict) else 'list'} cannot be changed: its "
        "fingerprint is known to indexes and providers; change a copy.deepcopy() of it, and make "
        "a new tool with dataclasses.replace(tool, parameters=...)"
    )


def _plain(value: dict[str, Any] | list[Any]) -> Any:
    return json.loads(json.dumps(value))


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()
    __setitem__: Callable[..., NoReturn] = _refuse
    __delitem__: Callable[..., NoReturn] = _refuse
    __ior__: Callable[..., NoReturn] = _refuse
    clear: Callable[..., NoReturn] = _refuse
    pop: Callable[..., NoReturn] = _refuse
    popitem: Callable[..., NoReturn] = _refuse
    setdefault: Callable[..., NoReturn] = _refuse
    update: Callable[..., NoReturn] = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, _memo: object) -> dict[str, Any]:
        copied: dict[str, Any] = _plain(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        # The default protocol sets items one by one.
        return type(self), (dict(self),)


class FrozenList(list[Any]):
    """A JSON list that cannot be changed."""

    __slots__ = ()
    __setitem__: Callable[..., NoReturn] = _refuse
    __delitem__: Callable[..., NoReturn] = _refuse
    __iadd__: Callable[..., NoReturn] = _refuse
    __imul__: Callable[..., NoReturn] = _refuse
    append: Callable[..., NoReturn] = _refuse
    clear: Callable[..., NoReturn] = _refuse
    extend: Callable[..., NoReturn] = _refuse
    insert: Callable[..., NoReturn] = _refuse
    pop: Callable[..., NoReturn] = _refuse
    remove: Callable[..., NoReturn] = _refuse
    reverse: Callable[..., NoReturn] = _refuse
    sort: Callable[..., NoReturn] = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, _memo: object) -> list[Any]:
        copied: list[Any] = _plain(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


EMPTY = FrozenDict()
"""The object without keys."""


def frozen(value: Any) -> Any:
    """Return a JSON value that cannot be changed; what is inside is copied."""
    is_container = type(value) is dict or type(value) is list
    return _frozen_copies(value)[id(value)] if is_container else value


def frozen_items(value: dict[str, Any]) -> dict[str, Any]:
    """Return a new object whose values cannot be changed."""
    made = _frozen_copies(value)
    return {key: made.get(id(one), one) for key, one in value.items()}


def _frozen_copies(value: Any) -> dict[int, Any]:
    """Return frozen copies of a container and of those in it, by identity.

    Without recursion: a schema may have more levels than the interpreter has frames.
    """
    outer_first = [value]
    for part in outer_first:
        inner = part.values() if type(part) is dict else part
        outer_first += [one for one in inner if type(one) is dict or type(one) is list]
    made: dict[int, Any] = {}
    for part in reversed(outer_first):
        if type(part) is dict:
            items = {key: made.get(id(one), one) for key, one in part.items()}
            made[id(part)] = FrozenDict(items) if items else EMPTY
        else:
            made[id(part)] = FrozenList([made.get(id(one), one) for one in part])
    return made


# The arguments of a call, read from a model's text into a JSON object.
#
# A broken text is repaired only if it can mean one thing: nothing that was cut off is
# completed, and no text is passed over.


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
