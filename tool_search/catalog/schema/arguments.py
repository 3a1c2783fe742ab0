"""Arguments of a call under a schema's own keys, and under those on the wire.

Which keys of a value are the schema's to name follows from the parts that apply to it:
a map with keys of the caller's own keeps them, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tool_search.catalog.schema.graph import Part, SchemaGraph
from tool_search.catalog.schema.keys import WireKeys
from tool_search.errors import ToolSearchError

__all__ = ["ArgumentKeys", "TooComplexError", "Twice", "named_keys"]

Twice = tuple[tuple[str, str], ...]
"""Keys on the wire and the schema's own, of which arguments have both."""

_MAX_STEPS = 20_000
_MAX_DEPTH = 100


class TooComplexError(ToolSearchError):
    """Arguments whose keys cannot be told within the work that a call may cause."""


def named_keys(schema: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the keys that one part of a sound schema names."""
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
        """Return the arguments under the schema's keys, and which were given twice.

        What is given under both names is left as it is, under both.

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
        """The state of these parts and all that they apply to the same value."""
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
        """The state of the value under a key, by its own name, or at a place."""
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
        """Return the value, its keys renamed as its state says."""
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
        return dict(self._renamed(value, state, depth))

    def _renamed(
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
    """The parts that name a renamed key, or reach one that does."""
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
