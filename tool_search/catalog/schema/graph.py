"""The parts of a schema and how they apply each other, references followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["SAME_VALUE_KEYWORDS", "Part", "SchemaGraph"]

SAME_VALUE_KEYWORDS = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$ref",
)  # fmt: skip
"""Keywords by which a part applies others to the same value."""
_SAME_VALUE = frozenset(SAME_VALUE_KEYWORDS)
_ANY_KEY = frozenset(
    ("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
)
_ANY_ITEM = frozenset(("items", "contains", "unevaluatedItems"))
_NAMED = frozenset(("dependentSchemas", "patternProperties", "properties"))
_APPLYING = _SAME_VALUE | _ANY_KEY | _ANY_ITEM | _NAMED | {"prefixItems"}
_NO_KEYS: Mapping[str, Part] = {}


class Part:
    """One part of a schema, and the parts that it applies.

    Args:
        schema: The part.
        path: Where it is; for what several references lead to, its own place.

    Attributes:
        schema: The part.
        path: Where it is.
        same: Parts for the same value.
        keys: For the value of a property, by its key.
        any_key: For the value of any key.
        places: For an item, in the order of the items.
        any_item: For any item.
    """

    __slots__ = ("any_item", "any_key", "keys", "path", "places", "same", "schema")

    def __init__(self, schema: dict[str, Any], path: tuple[str, ...]) -> None:
        self.schema = schema
        self.path = path
        self.same: Sequence[Part] = ()
        self.keys: Mapping[str, Part] = _NO_KEYS
        self.any_key: Sequence[Part] = ()
        self.places: Sequence[Part] = ()
        self.any_item: Sequence[Part] = ()

    def inner(self) -> Iterator[Part]:
        """Iterate over all parts that it applies."""
        yield from self.same
        yield from self.keys.values()
        yield from self.any_key
        yield from self.places
        yield from self.any_item


class SchemaGraph:
    """All parts of a sound schema that its root reaches.

    Args:
        root: Valid JSON Schema, whose references lead to it or to its definitions.

    Attributes:
        root: The part that is the whole.
        parts: Every part, once.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._schema = root
        self._known: dict[int, Part] = {}
        self._waiting: list[Part] = []
        self.root = self._part(root, ())
        while self._waiting:
            part = self._waiting.pop()
            if not _APPLYING.isdisjoint(part.schema):
                self._connect(part)
        self.parts = tuple(self._known.values())

    def of(self, schema: Mapping[str, Any]) -> Part | None:
        """Return the part that is this object, or None if the root does not reach it."""
        return self._known.get(id(schema))

    def _part(self, schema: dict[str, Any], path: tuple[str, ...]) -> Part:
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = Part(schema, path)
            self._waiting.append(known)
        return known

    def _connect(self, part: Part) -> None:
        for keyword, value in part.schema.items():
            if keyword == "properties":
                place = (*part.path, keyword)
                part.keys = {k: self._part(inner, (*place, k)) for k, inner in value.items()}
            elif keyword in _SAME_VALUE:
                part.same = [*part.same, *self._applied(keyword, value, part.path)]
            elif keyword in _ANY_KEY:
                part.any_key = [*part.any_key, *self._applied(keyword, value, part.path)]
            elif keyword in _ANY_ITEM:
                part.any_item = [*part.any_item, *self._applied(keyword, value, part.path)]
            elif keyword == "prefixItems":
                part.places = [*self._applied(keyword, value, part.path)]

    def _applied(self, keyword: str, value: Any, path: tuple[str, ...]) -> Iterator[Part]:
        """The parts that one keyword applies."""
        place = (*path, keyword)
        if keyword == "$ref":
            yield self._target(value)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield self._part(inner, (*place, str(index)))
        elif keyword in _NAMED:
            for key, inner in value.items():
                yield self._part(inner, (*place, key))
        elif isinstance(value, dict):
            yield self._part(value, place)

    def _target(self, reference: str) -> Part:
        steps = tuple(s.replace("~1", "/").replace("~0", "~") for s in reference.split("/")[1:])
        found: Any = self._schema
        for step in steps:
            found = found[step]
        return self._part(found, steps)
