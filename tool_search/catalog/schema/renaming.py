"""Keys that providers refuse: schemas under the wire's keys, arguments under the tool's own.

The parts of a schema that apply to a value decide which of its keys the schema names: a map
with keys of the caller's own keeps them, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from tool_search.catalog.schema.graph import Part, SchemaGraph
from tool_search.catalog.schema.repair import Changes
from tool_search.catalog.schema.vocabulary import MANY_SCHEMAS, NAMED_SCHEMAS, ONE_SCHEMA, WireKeys
from tool_search.core.catalog.schemas import TooComplexError
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.packages import has_package

_HAS_VALIDATOR = has_package("jsonschema_rs")
if _HAS_VALIDATOR:  # not every platform has a wheel
    import jsonschema_rs

__all__ = ["ArgumentKeys", "Twice", "named_keys", "renamed"]

_MAX_SHOWN_KEY_CHARS = 100
# Their keys are property keys.
_KEYED = frozenset(("properties", "dependentSchemas"))
_HOLDS_VALUE = frozenset(("const", "default"))
_HOLDS_VALUES = frozenset(("enum", "examples"))

Path = tuple[str, ...]
Twice = tuple[tuple[str, str], ...]
"""Keys on the wire and the schema's own, of which arguments have both."""

_MAX_STEPS = 20_000
_MAX_DEPTH = 100


def renamed(
    schema: dict[str, Any], keys: WireKeys, arguments: ArgumentKeys, changes: Changes
) -> dict[str, Any]:
    """Return a sound schema under wire keys; each renamed key is in its description.

    Rules about the spelling of keys cannot hold for renamed ones: `propertyNames` is left
    out, and a pattern that a wire key happens to match allows anything.

    Args:
        schema: Valid JSON Schema under its own keys.
        keys: Their names on the wire.
        arguments: Translates the values that the schema holds.
        changes: Collects what was renamed or left out.
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
                found[keyword] = self._rename_parts(keyword, value, place)
            elif keyword in MANY_SCHEMAS:
                inner = ((part, (*place, str(index))) for index, part in enumerate(value))
                found[keyword] = [self.part(part, where) for part, where in inner]
            elif keyword in ONE_SCHEMA and isinstance(value, dict):
                found[keyword] = self.part(value, place)
            else:
                found[keyword] = self._other(schema, keyword, value, place)
        return found

    def _rename_parts(self, keyword: str, parts: Mapping[str, Any], place: Path) -> dict[str, Any]:
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
                part = _describe(part, key)
            found[name] = part
        return found

    def _matches(self, pattern: str) -> bool:
        if not _HAS_VALIDATOR:
            return True  # it may match: without a validator nobody knows
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


def _describe(part: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the schema of a property with its own key in its description."""
    shown = clean_line(key, _MAX_SHOWN_KEY_CHARS)
    description = part.get("description", "")
    # Moonshot: `conflicting keywords found after $ref expansion: description`.
    if not shown or shown in description or "$ref" in part:
        return part
    return {**part, "description": f"{shown}: {description}" if description else shown}


def named_keys(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys that one part of a sound schema names."""
    yield from schema.get("properties", ())
    yield from schema.get("required", ())
    yield from schema.get("dependentSchemas", ())
    for key, needed in schema.get("dependentRequired", {}).items():
        yield key
        yield from needed


class _State:
    """The parts that apply to one value, and the keys that they name otherwise."""

    def __init__(self, parts: Iterable[Part], keys: WireKeys) -> None:
        self.parts = tuple(parts)
        named = (key for part in self.parts for key in named_keys(part.schema))
        self.wire = {key: keys.wire[key] for key in named if key in keys.wire}
        self.original = {wire: key for key, wire in self.wire.items()}
        self.by_key: dict[str, _State | None] = {}
        self.by_place: dict[int, _State | None] = {}


class ArgumentKeys:
    """Translates the keys of arguments for one schema that has keys to rename.

    Args:
        graph: Valid JSON Schema under its own keys.
        keys: Their names on the wire.
    """

    def __init__(self, graph: SchemaGraph, keys: WireKeys) -> None:
        self._keys = keys
        self._graph = graph
        self._relevant = _relevant(self._graph.parts, keys)
        self._states: dict[frozenset[Part], _State | None] = {}

    def canonical(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Twice]:
        """Return the arguments under the schema's keys, and the keys that were given twice.

        Values under both names stay under both.

        Raises:
            TooComplexError: They take too much work.
        """
        walk = _Walk(self._child, _to_canonical)
        return walk.over(arguments, self._start(), 0), tuple(walk.twice)

    def wire(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments under the keys on the wire.

        Raises:
            TooComplexError: They take too much work.
        """
        found: dict[str, Any] = _Walk(self._child, _to_wire).over(arguments, self._start(), 0)
        return found

    def wire_value(self, value: Any, schema: Mapping[str, Any]) -> Any:
        """Return a value that a part of the schema holds, under the keys on the wire."""
        part = self._graph.of(schema)
        if part not in self._relevant or not isinstance(value, dict | list):
            return value
        return _Walk(self._child, _to_wire).over(value, self._state([part]), 0)

    def _start(self) -> _State | None:
        return self._state([self._graph.root])

    def _state(self, parts: Iterable[Part]) -> _State | None:
        """Return the state of these parts, and of all that they apply to the same value."""
        found: dict[Part, None] = {}
        waiting = [part for part in parts if part in self._relevant]
        while waiting:
            part = waiting.pop()
            if part not in found:
                found[part] = None
                waiting += [inner for inner in part.same if inner in self._relevant]
        key = frozenset(found)
        if key not in self._states:
            self._states[key] = _State(found, self._keys) if found else None
        return self._states[key]

    def _child(self, state: _State, step: str | int) -> _State | None:
        """Return the state of the value under a key, by its own name, or at a place."""
        if isinstance(step, str):
            if step not in state.by_key:
                named = [part.keys[step] for part in state.parts if step in part.keys]
                others = [inner for part in state.parts for inner in part.any_key]
                state.by_key[step] = self._state([*named, *others])
            return state.by_key[step]
        place = min(step, max((len(part.places) for part in state.parts), default=0))
        if place not in state.by_place:
            placed = [part.places[place] for part in state.parts if place < len(part.places)]
            others = [inner for part in state.parts for inner in part.any_item]
            state.by_place[place] = self._state([*placed, *others])
        return state.by_place[place]


Rename = Callable[[_State, Mapping[str, Any], str], tuple[str, str, bool]]
"""Gives for a key of a value: its new name, its own name, whether it is given twice."""


class _Walk:
    """One walk over a value that renames keys."""

    def __init__(self, child: Callable[[_State, str | int], _State | None], name: Rename) -> None:
        self._child = child
        self._name = name
        self._steps = 0
        self.twice: list[tuple[str, str]] = []

    def over(self, value: Any, state: _State | None, depth: int) -> Any:
        """Return the value, its keys renamed by its state."""
        if state is None or not isinstance(value, Mapping | list):
            return dict(value) if isinstance(value, Mapping) and not depth else value
        self._steps += len(value) + len(state.parts)
        if self._steps > _MAX_STEPS or depth > _MAX_DEPTH:
            raise TooComplexError(
                f"arguments of more than {_MAX_STEPS:,} parts or {_MAX_DEPTH} levels cannot be "
                "translated; send less at once"
            )
        if isinstance(value, list):
            return [
                self.over(inner, self._child(state, place), depth + 1)
                for place, inner in enumerate(value)
            ]
        return dict(self._rename(value, state, depth))

    def _rename(
        self, value: Mapping[str, Any], state: _State, depth: int
    ) -> Iterator[tuple[str, Any]]:
        for key, inner in value.items():
            name, own, is_twice = self._name(state, value, key)
            if is_twice:
                self.twice.append((key, own))
            yield name, self.over(inner, self._child(state, own), depth + 1)


def _to_canonical(state: _State, value: Mapping[str, Any], key: str) -> tuple[str, str, bool]:
    own = state.original.get(key, key)
    if own is not key and own in value:
        return key, own, True
    return own, own, False


def _to_wire(state: _State, value: Mapping[str, Any], key: str) -> tuple[str, str, bool]:
    name = state.wire.get(key, key)
    if name is not key and name in value:
        return key, key, True
    return name, key, False


def _relevant(parts: Iterable[Part], keys: WireKeys) -> frozenset[Part]:
    """Return the parts that name a renamed key, or reach one that does."""
    users: dict[Part, list[Part]] = {}
    for part in parts:
        for inner in part.inner():
            users.setdefault(inner, []).append(part)
    waiting = [p for p in parts if any(key in keys.wire for key in named_keys(p.schema))]
    found = set(waiting)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return frozenset(found)
