"""The parameters of a definition: what a tool may ask for, and how its types may be written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from tool_search.core.values.json import JSON, copy_and_json, shown
from tool_search.errors import InvalidToolError

__all__ = ["COMBINATORS", "MAX_SCHEMA_BYTES", "TYPES", "normalized_parameters", "read_type"]

MAX_SCHEMA_BYTES = 1 << 20
"""The most UTF-8 bytes of a schema as JSON."""

COMBINATORS = ("allOf", "anyOf", "oneOf")
"""Keywords of which a value fits one schema or several."""
TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
# Words of programming languages and of OpenAPI for a type, and the format they imply.
_WORDS: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "uint", "bigint"),
                    ("integer", None)),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "float32", "float64"),
                    ("number", None)),
    **dict.fromkeys(("str", "text", "char", "varchar"), ("string", None)),
    **dict.fromkeys(("bool",), ("boolean", None)),
    **dict.fromkeys(("dict", "map", "hash", "struct", "record", "json"), ("object", None)),
    **dict.fromkeys(("list", "tuple", "set", "sequence"), ("array", None)),
    **dict.fromkeys(("none", "nil", "nonetype", "undefined", "void"), ("null", None)),
    **{word: ("string", word) for word in ("date", "time", "uuid", "uri", "email")},
    **dict.fromkeys(("datetime", "date-time", "timestamp"), ("string", "date-time")),
    "url": ("string", "uri"),
}  # fmt: skip
_ANYTHING = frozenset(("any", "mixed", "unknown", "*", ""))
_LIST_OF = "[]"
_SIMILARITY = 0.8
_BETWEEN_TYPES = re.compile(r"\s*(?:\||,|\bor\b)\s*")


def normalized_parameters(name: str, parameters: object) -> tuple[dict[str, Any], str]:
    """Return a private copy of a tool's schema, and the same as compact JSON.

    Args:
        name: The tool's name, for the error.
        parameters: `{}` or None for "no arguments", else an object schema.

    Raises:
        InvalidToolError: It is neither, it is not JSON, or it is too large.
    """
    if parameters is None:
        return {}, "{}"
    if not isinstance(parameters, Mapping):
        raise InvalidToolError(
            f"tool {name!r}: parameters must be an object schema, {{}} or null, "
            f"not {type(parameters).__name__} {shown(parameters)}"
        )
    try:
        copy, text = copy_and_json(dict(parameters))
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(
            f"tool {name!r}: parameters cannot be written as JSON ({exc}); "
            "use plain dictionaries, lists, strings, numbers and booleans"
        ) from exc
    if len(text) > MAX_SCHEMA_BYTES // 4 and (size := len(text.encode())) > MAX_SCHEMA_BYTES:
        raise InvalidToolError(
            f"tool {name!r}: parameters take {size:,} bytes as JSON, and a schema may take "
            f"{MAX_SCHEMA_BYTES:,}; shorten it, or split the tool"
        )
    if copy and not _is_object_schema(copy):
        raise InvalidToolError(
            f'tool {name!r}: parameters must be an object schema ("type": "object") '
            f"or {{}}, not {shown(copy)}"
        )
    return copy, text


def _is_object_schema(schema: JSON) -> bool:
    kind = schema.get("type")
    if kind is None:
        return any(key in schema for key in ("properties", "$ref", *COMBINATORS))
    properties = schema.get("properties")
    # `dict` and `Object` clearly mean it; the declared schema has `object`.
    typed = read_type(kind)
    allowed = typed is not None and "object" in typed.get("type", "object")
    return allowed and (properties is None or isinstance(properties, Mapping))


def read_type(written: object) -> dict[str, Any] | None:
    """Return the meaning of a `type` as keywords of 2020-12, or None if it is not clear.

    No keywords mean that anything is allowed.

    >>> read_type("int"), read_type("string | null"), read_type("any"), read_type("gadget")
    ({'type': 'integer'}, {'type': ['string', 'null']}, {}, None)
    >>> read_type(["string", "string[]"])
    {'type': ['string', 'array'], 'items': {'type': 'string'}}
    """
    if written is None:
        return {}
    if isinstance(written, str):
        parts: list[object] = list(_BETWEEN_TYPES.split(written.strip()))
    elif isinstance(written, list):
        parts = written
    else:
        return None
    types: list[str] = []
    items: list[str | None] = []
    formats: list[str | None] = []
    for part in parts:
        word = "null" if part is None else part.strip().lower() if isinstance(part, str) else "?"
        if word in _ANYTHING:
            return {}
        found = _read_word(word.removesuffix(_LIST_OF))
        if found is None:
            return None
        types.append("array" if word.endswith(_LIST_OF) else found[0])
        (items if word.endswith(_LIST_OF) else formats).append(found[not word.endswith(_LIST_OF)])
    return _read_type(types, items, [each for each in formats if each])


def _read_type(types: list[Any], items: list[Any], formats: list[Any]) -> dict[str, Any]:
    def one_or_all(found: list[Any]) -> Any:
        several = list(dict.fromkeys(found))
        return several[0] if len(several) == 1 else several

    typed = {"type": one_or_all(types)} if types else {}
    typed |= {"items": {"type": one_or_all(items)}} if items else {}
    return typed | ({"format": formats[0]} if formats else {})


@lru_cache(maxsize=1024)
def _read_word(word: str) -> tuple[str, str | None] | None:
    if word in TYPES:
        return word, None
    if word in _WORDS:
        return _WORDS[word]
    near = get_close_matches(word[:16], sorted(TYPES), n=1, cutoff=_SIMILARITY)
    return (near[0], None) if near else None
