"""Schemas as strangers write them, the same in each run: drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tool_search import InvalidToolError, Tool

_SEED = 12
_MAX_DEPTH = 3
_KEYS = ("a", "b", "city", "$filter", "名字", "user id", "", "a" * 70, "filter[x]", "type", "$ref")
_TYPES: Sequence[Any] = (
    "string", "object", "array", "integer", "number", "boolean", "null", "int", "Object",
    "string | null", ["string", "null"], ["object", "int"], [], None, 5, {"type": "string"}, "date",
)  # fmt: skip
_REFERENCES = (
    "#", "#/$defs/A", "#/definitions/A", "#/$defs/B", "#/$defs/none", "#/properties/a",
    "#/properties/$filter", "https://example.com/x.json", "", 5,
)  # fmt: skip
_SCALARS: Sequence[Any] = (None, True, 0, 3, -1, 2.5, "x", "", [1], {"a": 1})
_PLAIN: Mapping[str, Sequence[Any]] = {
    "type": _TYPES,
    "$ref": _REFERENCES,
    "$schema": (
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema#",
    ),
    "$id": ("x.json", "#a", 5),
    "description": ("words", "", 5, None, ["a", "b"]),
    "enum": ([1, "a", None], [], "x", [["a"], {"b": 1}]),
    "const": _SCALARS,
    "default": _SCALARS,
    "examples": _SCALARS,
    "required": (["a"], ["a", "none"], True, "a", [5]),
    "nullable": (True, "x"),
    "pattern": ("^x", "(", "(?=x)", 5),
    "format": ("date", "uuid", 5),
    "exclusiveMinimum": (True, 1, "3"),
    "minimum": (0, 1.5, "x"),
    "maxItems": (3, -1),
    "minLength": (1, None),
    "x-unknown": _SCALARS,
}


def _schema(random: Random, depth: int) -> Any:
    """Return a schema, or now and then something that is none."""
    if depth > _MAX_DEPTH or random.random() < 0.05:
        return random.choice((*_SCALARS, {"type": "string"}, {}))

    def inner() -> Any:
        return _schema(random, depth + 1)

    def named() -> Any:
        return {random.choice(_KEYS): inner() for _ in range(random.randint(0, 3))}

    def listed() -> Any:
        return [inner() for _ in range(random.randint(0, 3))]

    nested: Mapping[str, Callable[[], Any]] = {
        "properties": named,
        "$defs": lambda: {"A": inner(), "B": inner()},
        "definitions": lambda: {"A": inner()},
        "dependencies": named,
        "patternProperties": lambda: {"^x": inner()},
        "anyOf": listed,
        "oneOf": listed,
        "allOf": listed,
        "items": random.choice((inner, listed)),
        "not": inner,
        "additionalProperties": inner,
        "propertyNames": inner,
    }
    keywords = (*_PLAIN, *nested)
    made = {}
    for keyword in random.sample(keywords, random.randint(1, 5)):
        values = _PLAIN.get(keyword)
        made[keyword] = nested[keyword]() if values is None else random.choice(values)
    return made


def odd_schemas(count: int) -> list[Tool]:
    """Return tools with drawn schemas; those that no tool may have are left out."""
    random = Random(_SEED)
    tools = []
    for number in range(count):
        properties = {key: _schema(random, 1) for key in random.sample(_KEYS, 3)}
        around = _schema(random, 1)
        base = around if isinstance(around, dict) else {}
        schema = {**base, "type": "object", "properties": properties}
        try:
            tools.append(Tool(name=f"drawn_{number}", description="A tool.", parameters=schema))
        except InvalidToolError:
            continue
    return tools
