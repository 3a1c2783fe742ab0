"""Which schemas OpenAI's strict mode takes as they are.

Source: OpenAI, "Structured outputs", "Supported schemas". Only what every release of
that page allows counts: a schema that strict mode refuses is a refused request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["is_strict"]

_KEYS = frozenset(
    ("additionalProperties", "anyOf", "description", "enum", "items", "properties", "required",
     "title", "type"),
)  # fmt: skip
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_MAX_DEPTH = 5
_MAX_PROPERTIES = 100
_MAX_VALUES = 500


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether strict mode takes a schema unchanged, and so keeps a model's arguments to it."""
    parts = list(_parts(schema, 1))
    return (
        None not in parts
        and sum(len(part.get("properties", ())) for part in parts if part) <= _MAX_PROPERTIES
        and sum(len(part.get("enum", ())) for part in parts if part) <= _MAX_VALUES
    )


def _parts(schema: object, depth: int) -> Iterator[Mapping[str, Any] | None]:
    """The schema and all within it; None in place of what strict mode does not know."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or not _is_known(schema):
        yield None
        return
    yield schema
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        yield from _parts(inner, depth + 1)
    if "items" in schema:
        yield from _parts(schema["items"], depth + 1)


def _is_known(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if not (
        _KEYS.issuperset(schema) and ("anyOf" in schema or _TYPES.issuperset(map(str, listed)))
    ):
        return False
    shapes = (("anyOf", list), ("enum", list), ("properties", dict), ("required", list))
    if any(not isinstance(schema.get(key, kind()), kind) for key, kind in shapes):
        return False
    if "array" in listed and "items" not in schema:
        return False
    if "object" not in listed:
        return "properties" not in schema
    # Recorded: an object without properties that leaves `required` out is not sent as strict.
    return (
        schema.get("additionalProperties") is False
        and "required" in schema
        and set(map(str, schema["required"])) == set(schema.get("properties", ()))
    )
