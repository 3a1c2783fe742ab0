"""JSON Schema of tool arguments in plain forms.

Providers agree on an object schema at the top and on nothing else there:
Anthropic refuses `oneOf`, `anyOf` and `allOf` at the top level of an
`input_schema`, OpenAI those and `enum` and `not`. Validation always uses the
schema as it was given; only the schema for a model passes `object_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.core.catalog.tool import COMBINATORS
from tool_search.core.values.json import JSON

__all__ = [
    "REFUSED_AT_TOP",
    "is_plain_object",
    "object_schema",
]

REFUSED_AT_TOP = (*COMBINATORS, "enum", "not", "if", "then", "else", "$ref")
_NOT_PLAIN = frozenset(REFUSED_AT_TOP)
# References may go round in a circle.
_MAX_DEPTH = 8


def object_schema(schema: JSON) -> dict[str, Any]:
    """Return the schema as every provider takes it: `type: object`, no combinator at the top.

    Branches of a top-level combinator, and the target of a top-level `$ref`, are merged into
    one list of properties. A key is required if every way of filling the schema requires it.
    A schema that is already plain is returned with its keys in their order.
    """
    if is_plain_object(schema):
        return {**schema, "properties": dict(schema["properties"])}
    merged = _Merger(schema).merged(schema, _MAX_DEPTH)
    plain = {key: value for key, value in schema.items() if key not in REFUSED_AT_TOP}
    if plain.get("type") != "object":
        plain = {"type": "object", **{k: v for k, v in plain.items() if k != "type"}}
    if merged.properties or not isinstance(plain.get("properties"), Mapping):
        plain["properties"] = merged.properties
    if merged.required or not isinstance(plain.get("required", []), list):
        plain["required"] = merged.required
    return plain


def is_plain_object(schema: JSON) -> bool:
    """True if `object_schema` would return an equal schema; a quick check."""
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties"), Mapping)
        and _strings(required := schema.get("required", [])) == required
        and schema.keys().isdisjoint(_NOT_PLAIN)
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The arguments an object schema asks for, branches and references looked through."""

    properties: dict[str, Any]
    required: list[str]


class _Merger:
    """Merges parts of one schema, each once for each depth: many may refer to one.

    Args:
        root: The schema that references refer into.
    """

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._done: dict[tuple[int, int], _Fields] = {}

    def merged(self, part: JSON, depth: int) -> _Fields:
        """Return the fields of a part; a part that is not a valid schema adds nothing."""
        key = id(part), depth
        if key not in self._done:
            self._done[key] = self._fields(part, depth)
        return self._done[key]

    def _fields(self, part: JSON, depth: int) -> _Fields:
        own = part.get("properties")
        fields = _Fields(
            dict(own) if isinstance(own, Mapping) else {}, _strings(part.get("required"))
        )
        target = _target(part.get("$ref"), self._root)
        for key, branches in (("$ref", [target]), *((k, part.get(k)) for k in COMBINATORS)):
            listed = branches if isinstance(branches, list) and depth else []
            merged = [self.merged(b, depth - 1) for b in listed if isinstance(b, Mapping)]
            for name, definition in (pair for one in merged for pair in one.properties.items()):
                fields.properties.setdefault(name, definition)
            needs = [set(one.required) for one in merged] or [set()]
            of_all = set.intersection if key in ("anyOf", "oneOf") else set.union
            fields.required.extend(sorted(of_all(*needs).difference(fields.required)))
        return fields


def _target(reference: object, root: JSON) -> object:
    """Return the target of a reference into the same schema, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - few schemas refer to parts of themselves

    target: Any = root
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, Mapping) else None
    return target


def _strings(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
