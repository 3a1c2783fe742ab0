"""Values of a reply, whatever an endpoint has put in their place."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tool_search.adapters.wire.arguments import arguments_text
from tool_search.i18n import Language, text

__all__ = [
    "attachment",
    "count_of",
    "fields_of",
    "items_of",
    "known",
    "label_of",
    "list_of",
    "mapping_of",
    "mappings_of",
    "mended",
    "mended_value",
    "position_of",
    "read_value",
    "readable",
    "text_of",
]


# JSON of services and strangers, read so that nothing in it can do harm later.
#
# What comes out can be kept, stored and sent back: finite numbers, no nesting that a writer
# cannot follow. Half surrogate pairs stay, because the other half may come in the next piece
# of a stream: `mended` and `mended_value` join or replace them.


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


# No request has so many tokens; a count that is no count must not become a sum of ours.
_MAX_COUNT = 10**12


def text_of(value: object) -> str:
    """The text; empty where it is none."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """The object; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """The array; empty where it is none."""
    return value if isinstance(value, list) else []


def count_of(value: object) -> int:
    """The number of tokens; 0 where it is none."""
    number = position_of(value)
    return number if number is not None and number <= _MAX_COUNT else 0


def position_of(value: object) -> int | None:
    """The place in a list; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def known(value: object) -> dict[str, Any]:
    """The object without its nulls: in a stream they mean "as before"."""
    return {key: item for key, item in mapping_of(value).items() if item is not None}


# Values of another client's history, of whatever types the client has made them.


JSON = Mapping[str, Any]

_MAX_NAME_CHARS = 200


def label_of(value: object) -> str:
    """Return an id or a name, which some clients write as a number; empty if it is neither."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else text_of(value)


def fields_of(value: object) -> JSON:
    """Return an object's fields; those of an SDK's type too, empty for anything else.

    Clients append the replies of an SDK to their messages as they are.
    """
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    dumped = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else {}


def items_of(value: object) -> list[Any]:
    """Return a list's items; a tuple's too, empty for anything else."""
    return list(value) if isinstance(value, list | tuple) else []


def mappings_of(value: object) -> list[JSON]:
    """Return the objects of a list."""
    return [fields for item in items_of(value) if (fields := fields_of(item))]


def readable(value: object) -> str:
    """Return a result as text; one that a client has left as an object, as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return arguments_text(value)


def attachment(kind: str, language: Language, names: Iterable[object] = ()) -> str:
    """Return a line of text in place of what the neutral history has no form for.

    Args:
        kind: `file`, `audio` or `picture`.
        language: The language of the line.
        names: What it may be called by, best first.
    """
    line = text(f"imported.{kind}", language)
    named = next((name for name in map(label_of, names) if name.strip()), "")[:_MAX_NAME_CHARS]
    return f"[{line}: {named}]" if named else f"[{line}]"
