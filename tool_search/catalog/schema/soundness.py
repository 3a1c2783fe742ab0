"""A quick check for schemas that need no repair, as most do.

Catalogs have thousands of definitions, nearly all of them plain; one pass without a copy
decides for those. Anything unknown is left to the full repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tool_search.catalog.schema.keys import is_wire_key
from tool_search.catalog.schema.vocabulary import MAX_VALUES
from tool_search.core.catalog.tool import TYPES

__all__ = ["is_sound"]

# Few enough that no bound of the thorough way is near.
_MAX_PARTS = 500
_MAX_DEPTH = 16


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(each, str) and each in TYPES for each in value)
        and len(set(value)) == len(value)
    )


def _is_required(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(key, str) and is_wire_key(key) for key in value)
        and len(set(value)) == len(value)
    )


_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format"), _is_string),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    "type": _is_type,
    "required": _is_required,
    "enum": lambda value: isinstance(value, list) and 0 < len(value) <= MAX_VALUES,
    "examples": lambda value: isinstance(value, list) and len(value) <= MAX_VALUES,
    "uniqueItems": lambda value: isinstance(value, bool),
    "default": lambda value: True,  # noqa: ARG005 - anything
    "const": lambda value: True,  # noqa: ARG005 - anything
    "nullable": lambda value: False,  # noqa: ARG005 - not of 2020-12
}
_BRANCHES = frozenset(("anyOf", "oneOf", "allOf"))


def is_sound(schema: Mapping[str, Any]) -> bool:
    """True if a schema is surely valid 2020-12, within bounds, under keys of the wire.

    False decides nothing.
    """
    level: list[Any] = [schema]
    parts = 0
    for _ in range(_MAX_DEPTH):
        parts += len(level)
        if parts > _MAX_PARTS:
            return False
        below: list[Any] = []
        for part in level:
            if not isinstance(part, dict) or not _is_sound_part(part, below):
                return False
        if not below:
            return True
        level = below
    return False


def _is_sound_part(part: dict[str, Any], below: list[Any]) -> bool:
    """True if the part is sound, except for the parts that it adds to the list."""
    for keyword, value in part.items():
        check = _VALUES.get(keyword)
        if check is not None:
            if not check(value):
                return False
            continue
        inner = _inner(keyword, value)
        if inner is None:
            return False
        below += inner
    kinds = part.get("type", ())
    if "required" in part and "properties" not in part and "object" in kinds:
        return False
    return "items" in part or not (kinds == "array" or "array" in kinds)


def _inner(keyword: str, value: Any) -> Iterable[Any] | None:
    """Return the parts that a keyword applies; None if it is unknown or not valid."""
    if keyword == "properties":
        is_named = isinstance(value, dict) and all(map(is_wire_key, value))
        return value.values() if is_named else None
    if keyword == "items":
        return (value,)
    if keyword == "additionalProperties":
        return () if isinstance(value, bool) else (value,)
    if keyword in _BRANCHES:
        return value if isinstance(value, list) and value else None
    return None
