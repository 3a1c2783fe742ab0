"""A sound schema under the keys that providers take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

from tool_search.catalog.schema.arguments import ArgumentKeys, TooComplexError
from tool_search.catalog.schema.keys import WireKeys
from tool_search.catalog.schema.repair import Changes
from tool_search.catalog.schema.vocabulary import MANY_SCHEMAS, NAMED_SCHEMAS, ONE_SCHEMA
from tool_search.values.clean_text import clean_line

__all__ = ["renamed"]

_MAX_SHOWN_KEY_CHARS = 100
# Their keys are property keys.
_KEYED = frozenset(("properties", "dependentSchemas"))
_HOLDS_VALUE = frozenset(("const", "default"))
_HOLDS_VALUES = frozenset(("enum", "examples"))

Path = tuple[str, ...]


def renamed(
    schema: dict[str, Any], keys: WireKeys, arguments: ArgumentKeys, changes: Changes
) -> dict[str, Any]:
    """Return a sound schema under wire keys, each renamed one described by its own.

    Rules for keys by their spelling cannot hold for renamed ones: `propertyNames` is left
    out, and a pattern that a wire key happens to match allows anything.

    Args:
        schema: Valid JSON Schema under its own keys.
        keys: Their names on the wire.
        arguments: Translates the values that the schema holds.
        changes: Takes what was renamed or left out.
    """
    return _Renaming(keys, arguments, changes).part(schema, ())


class _Renaming:
    def __init__(self, keys: WireKeys, arguments: ArgumentKeys, changes: Changes) -> None:
        self._keys = keys
        self._arguments = arguments
        self._changes = changes

    def part(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword, value in schema.items():
            place = (*path, keyword)
            if keyword == "propertyNames":
                why = "is left out: it would hold for renamed keys"
                self._changes.add("left_out", place, why)
            elif keyword in NAMED_SCHEMAS:
                found[keyword] = self._named(keyword, value, place)
            elif keyword in MANY_SCHEMAS:
                inner = ((part, (*place, str(index))) for index, part in enumerate(value))
                found[keyword] = [self.part(part, where) for part, where in inner]
            elif keyword in ONE_SCHEMA and isinstance(value, dict):
                found[keyword] = self.part(value, place)
            else:
                found[keyword] = self._other(schema, keyword, value, place)
        return found

    def _named(self, keyword: str, parts: Mapping[str, Any], place: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in parts.items():
            where = (*place, key)
            if keyword == "patternProperties" and self._matches(key):
                self._changes.add("left_out", where, "is left out: it would hold for renamed keys")
                found[key] = {}
                continue
            part = self.part(inner, where)
            name = self._keys[key] if keyword in _KEYED else key
            if name != key and keyword == "properties":
                self._changes.add("renamed", where, f"is {name!r} on the wire")
                part = _described(part, key)
            found[name] = part
        return found

    def _matches(self, pattern: str) -> bool:
        matches = _validator(pattern).is_valid
        return any(matches(name) for name in self._keys.original)

    def _other(self, schema: dict[str, Any], keyword: str, value: Any, place: Path) -> Any:
        if keyword == "required":
            return [self._keys[key] for key in value]
        if keyword == "dependentRequired":
            return {
                self._keys[key]: [self._keys[needed] for needed in names]
                for key, names in value.items()
            }
        try:
            if keyword in _HOLDS_VALUE:
                return self._arguments.wire_value(value, schema)
            if keyword in _HOLDS_VALUES:
                return [self._arguments.wire_value(each, schema) for each in value]
        except TooComplexError as exc:
            self._changes.add("left_out", place, f"keeps its own keys: {exc}")
        return value


@lru_cache(maxsize=1024)
def _validator(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"pattern": pattern}, offline=True)


def _described(part: dict[str, Any], key: str) -> dict[str, Any]:
    """The schema of a property with its own key in its description: often it says the most."""
    shown = clean_line(key, _MAX_SHOWN_KEY_CHARS)
    description = part.get("description", "")
    # Moonshot: `conflicting keywords found after $ref expansion: description`.
    if not shown or shown in description or "$ref" in part:
        return part
    return {**part, "description": f"{shown}: {description}" if description else shown}
