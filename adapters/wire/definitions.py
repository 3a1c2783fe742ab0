"""Tool definitions on the wire: those in messages, and those that strict mode accepts.

Source: OpenAI, "Structured outputs", "Supported schemas". A schema counts as strict only if
every release of that page allows it: one that strict mode refuses is a refused request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, ReferencePart

__all__ = ["definitions_in", "is_strict"]

_KEYS = frozenset(
    ("additionalProperties", "anyOf", "description", "enum", "items", "properties", "required",
     "title", "type"),
)  # fmt: skip
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_MAX_DEPTH = 5
_MAX_PROPERTIES = 100
_MAX_VALUES = 500


def definitions_in(message: Message) -> list[Tool]:
    """Return the definitions that a message sends, in order."""
    parts = () if isinstance(message.content, str) else message.content
    return [tool for part in parts if isinstance(part, ReferencePart) for tool in part.tools]


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Return True if strict mode accepts a schema unchanged and so enforces its arguments."""
    parts = list(_parts(schema, 1))
    return (
        None not in parts
        and sum(len(part.get("properties", ())) for part in parts if part) <= _MAX_PROPERTIES
        and sum(len(part.get("enum", ())) for part in parts if part) <= _MAX_VALUES
    )


def _parts(schema: object, depth: int) -> Iterator[Mapping[str, Any] | None]:
    """Yield the schema and all within it; None in place of what strict mode does not know."""
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
