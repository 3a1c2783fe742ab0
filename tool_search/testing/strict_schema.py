"""OpenAI's rules for a function's schema, in any mode and in strict mode.

Source: OpenAI, Structured outputs ("Supported schemas"); GitHub issues that quote
the service (streamnative-mcp-server 26, OpenManus 1162; xsai 202, docker-agent 2168).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tool_search.testing.services.schemas import schema_faults

__all__ = ["function_schema_problem"]

_MAX_DEPTH = 12
_COMBINATORS = ("oneOf", "anyOf", "allOf", "enum", "not")


def function_schema_problem(schema: Any, *, strict: bool = False) -> str | None:
    """Return the first rule that a function's `parameters` break, or None.

    Args:
        schema: The parameters; None is allowed.
        strict: Apply the rules of strict mode too.
    """
    if schema is None:
        return None
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if any(key in schema for key in _COMBINATORS):
        return (
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at "
            "the top level."
        )
    return _schema_problem(schema) or (_strict_problem(schema) if strict else None)


def _schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the first rule of any mode that a schema breaks, in the service's words."""
    faults = schema_faults(schema)
    if faults.invalid is not None:
        return f"{faults.invalid}."
    if faults.array is not None:
        return f"In context={faults.array!r}, array schema missing items."
    return None


def _strict_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the first rule of strict mode that a schema breaks, in the service's words."""
    for path, inner in _objects(schema, (), 0):
        at = f"In context={path!r}, "
        if inner.get("additionalProperties") is not False:
            return f"{at}'additionalProperties' is required to be supplied and to be false."
        properties = inner.get("properties")
        required = inner.get("required")
        listed = required if isinstance(required, list) else []
        for name in properties if isinstance(properties, Mapping) else ():
            if name not in listed:
                return (
                    f"{at}'required' is required to be supplied and to be an array including every "
                    f"key in properties. Missing '{name}'."
                )
    return None


def _objects(
    schema: Any, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield each object schema in a schema, with its path as the service writes it."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        yield path, schema
    for key in ("properties", "$defs", "definitions"):
        inner = schema.get(key)
        for name, item in inner.items() if isinstance(inner, Mapping) else ():
            yield from _objects(item, (*path, key, str(name)), depth + 1)
    yield from _objects(schema.get("items"), (*path, "items"), depth + 1)
    options = schema.get("anyOf")
    for index, item in enumerate(options if isinstance(options, list) else ()):
        yield from _objects(item, (*path, "anyOf", str(index)), depth + 1)
