"""The values of a call's arguments that a rule is held against.

A rule names an argument, `to` or `where.host`. Its values are at that place of the call, and
nowhere that the tool's schema could choose instead. A rule that denies or asks also looks
where a program might take the argument from: nested, under a name that only looks the same,
in JSON inside of a string, or in the schema's default where the call has no value.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from tool_search.catalog.tool import Tool
from tool_search.execution.permissions.schema_parts import SchemaParts
from tool_search.values.json import compact_json
from tool_search.values.readings import Scalar

__all__ = [
    "CallArguments",
    "FoundValues",
    "Subjects",
    "declared_names",
    "declares",
    "values_declared",
]

Subjects = Callable[[Mapping[str, Any]], Sequence[str]]
"""Says what a call is about: the tool's author wrote it."""

_MAX_PLACES = 10_000
_MAX_VALUES = 1_000
_MAX_NAME_CHARS = 256
_MAX_JSON_CHARS = 100_000
_MAX_JSON_DEPTH = 3
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp"))
# What programs leave out or exchange where they take an argument under several names.
_SEPARATORS = str.maketrans("", "", "_- .")
_Parts = tuple[Mapping[str, Any], ...]


class _TooManyError(Exception):
    """A call has more values than are looked at."""


@lru_cache(maxsize=1024)
def _schema_of(tool: Tool) -> SchemaParts:
    return SchemaParts(tool.parameters)


@lru_cache(maxsize=1024)
def declared_names(tool: Tool) -> tuple[str, ...]:
    """Return the arguments that a tool's schema declares, in order."""
    schema = _schema_of(tool)
    return schema.names(schema.root)


@lru_cache(maxsize=4096)
def declares(tool: Tool, path: str) -> bool:
    """Return True if a tool's schema has an argument of this name or path.

    An object whose schema names nothing may hold anything.
    """
    schema = _schema_of(tool)
    if schema.of_property(schema.root, path):
        return True
    parts: _Parts = schema.root
    for depth, name in enumerate(path.split(".")):
        parts = (*parts, *schema.of_items(parts))
        known = schema.names(parts)
        if name not in known:
            return depth > 0 and not known
        parts = schema.of_property(parts, name)
    return True


def values_declared(tool: Tool, path: str) -> tuple[Scalar, ...]:
    """Return the values that an argument may have; empty if there are more than are listed."""
    schema = _schema_of(tool)
    parts = schema.root
    for name in path.split("."):
        parts = schema.of_property((*parts, *schema.of_items(parts)), name)
    found = [value for part in (*parts, *schema.of_items(parts)) for value in _listed_values(part)]
    # A branch that lists nothing takes anything of its type.
    open_parts = [part for part in parts if "type" in part and not {"enum", "const"} & part.keys()]
    is_open = any(part["type"] not in ("array", "null") for part in open_parts)
    return () if is_open else tuple(value for value in found if not isinstance(value, dict | list))


def _listed_values(part: Mapping[str, Any]) -> list[Any]:
    values = part.get("enum")
    return [
        *(values if isinstance(values, list) else ()),
        *([part["const"]] if "const" in part else ()),
    ]


@dataclass(frozen=True, slots=True)
class FoundValues:
    """The values under one name.

    Attributes:
        values: In no particular order.
        has_objects: True if there are JSON objects too, whose own values are in `values`.
        is_cut: True if there are more than are looked at.
    """

    values: tuple[Scalar, ...] = ()
    has_objects: bool = False
    is_cut: bool = False


class CallArguments:
    """The arguments of one call, as rules look at them.

    Args:
        tool: What is called.
        given: As the call has them.
        subjects: What the tool's author says the call is about.
        read: Gives the arguments as the tool's function receives them: with defaults,
            coerced, stripped. None: as they are given.
    """

    def __init__(
        self,
        tool: Tool,
        given: Mapping[str, Any],
        *,
        subjects: Subjects | None = None,
        read: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] | None = None,
    ) -> None:
        self.tool = tool
        self.given = given
        self._subjects = subjects
        self._read = read
        self._named: dict[str, tuple[FoundValues, FoundValues]] = {}

    @cached_property
    def subjects(self) -> tuple[str, ...] | None:
        """What the call is about, as the tool's author says; None if nothing is said."""
        return None if self._subjects is None else tuple(self._subjects(self.given))

    @cached_property
    def received(self) -> Mapping[str, Any]:
        """The arguments as the tool's function receives them, as far as that is known."""
        read = self._read(self.given) if self._read is not None else None
        return self.given if read is None else read

    @cached_property
    def first_argument(self) -> str | None:
        """The argument that a pattern without a name is about; None for a server's tool.

        The first required one, or the first of all.
        """
        if self.tool.is_third_party:
            return None
        root = _schema_of(self.tool).root
        required = (name for part in root for name in _strings(part.get("required")))
        return next(required, None) or next(iter(declared_names(self.tool)), None)

    @cached_property
    def every_value(self) -> FoundValues:
        """All values that the call gives, whatever their names: what a rule that denies sees."""
        return _collected(list(self.given.values()), unpacks=True)

    def at(self, path: str) -> FoundValues:
        """Return what the tool receives under a name: what a rule that allows must cover.

        Where the same name is elsewhere in the call too, those values belong to it. A
        default counts only if the tool's own author chose it.
        """
        return self._found(path)[0]

    def anywhere(self, path: str) -> FoundValues:
        """Return what a program might take for the argument of a name."""
        return self._found(path)[1]

    def _found(self, path: str) -> tuple[FoundValues, FoundValues]:
        if path not in self._named:
            try:
                self._named[path] = self._searched(tuple(path.split(".")))
            except _TooManyError:
                self._named[path] = (FoundValues(is_cut=True),) * 2
        return self._named[path]

    def _searched(self, steps: tuple[str, ...]) -> tuple[FoundValues, FoundValues]:
        given, received = self.given, self.received
        exact = list(self._followed(received, steps, with_defaults=not self.tool.is_third_party))
        written = list(self._followed(given, steps, with_defaults=True))
        alike = list(self._objects.values(steps))
        packed = list(self._packed_objects.values(steps))
        sure = _collected([*exact, *alike]) if exact else FoundValues()
        found = [*exact, *written, *alike, *packed]
        return sure, _collected(found, with_objects=True, unpacks=True)

    @cached_property
    def _objects(self) -> _ByLook:
        """Every object in what the tool receives."""
        return _ByLook(_mappings(self.received))

    @cached_property
    def _packed_objects(self) -> _ByLook:
        """Every object that the call gives, those in JSON strings too."""
        return _ByLook(_mappings(self.given, in_strings=True))

    def _followed(
        self, arguments: Mapping[str, Any], steps: tuple[str, ...], *, with_defaults: bool
    ) -> Iterator[Any]:
        """Yield what is at a place; each item of a list, and defaults for what is missing."""
        if len(steps) > 1 and (joined := ".".join(steps)) in arguments:
            yield arguments[joined]
        schema = _schema_of(self.tool)
        waiting: list[tuple[Any, _Parts, int]] = [(arguments, schema.root, 0)]
        for _ in range(_MAX_PLACES):
            if not waiting:
                return
            value, parts, depth = waiting.pop()
            if depth == len(steps):
                yield value
            elif isinstance(value, list):
                # A program may take a list where its schema speaks of one.
                of_items = (*schema.of_items(parts), *parts)
                waiting.extend((item, of_items, depth) for item in value)
            elif isinstance(value, Mapping):
                inner = schema.of_property(parts, steps[depth])
                given = value.get(steps[depth])
                if given is not None:
                    waiting.append((given, inner, depth + 1))
                elif with_defaults:
                    defaults = [part["default"] for part in inner if "default" in part]
                    # What is missing as a whole may be made of the defaults inside of it.
                    defaults += [{}] if depth + 1 < len(steps) else []
                    waiting.extend((default, inner, depth + 1) for default in defaults)
        raise _TooManyError


class _ByLook:
    """The values of objects under names without what tells them from those that look the same.

    Args:
        objects: The objects, those inside of others too.
    """

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._objects = list(objects)
        self._inner: dict[int, dict[str, list[Any]]] = {}
        for one in self._objects:
            values = self._inner[id(one)] = {}
            for key, value in one.items():
                values.setdefault(_folded_name(str(key)), []).append(value)

    def values(self, steps: tuple[str, ...]) -> Iterator[Any]:
        """Yield what is anywhere under a name that looks like this one."""
        names = [_folded_name(step) for step in steps]
        whole = "".join(names)
        for start in self._objects:
            places: list[Any] = [start]
            for name in names:
                objects = (one for place in places for one in _items(place))
                places = [value for one in objects for value in self._of(one).get(name, ())]
            yield from places
            if len(names) > 1:
                yield from self._of(start).get(whole, ())

    def _of(self, value: Any) -> Mapping[str, list[Any]]:
        return self._inner.get(id(value), {}) if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mappings(value: Any, *, in_strings: bool = False) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a value, those in JSON strings too if wanted."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_MAX_PLACES):
        if not waiting:
            return
        part, depth = waiting.pop()
        if isinstance(part, str):
            waiting.extend((inner, depth + 1) for inner in _unpacked(part))
            continue
        inside: Iterable[Any] = part
        if isinstance(part, Mapping):
            yield part
            inside = part.values()
        holds = (dict, list, str) if in_strings and depth < _MAX_JSON_DEPTH else (dict, list)
        waiting.extend((inner, depth) for inner in inside if isinstance(inner, holds))
    raise _TooManyError


def _unpacked(text: str) -> list[Any]:
    """Return the JSON object or list in a string, as servers unpack it; nothing for others."""
    if text.lstrip()[:1] in ("{", "[") and len(text) <= _MAX_JSON_CHARS:
        with suppress(ValueError, RecursionError):
            return [json.loads(text)]
    return []


def _collected(
    places: Sequence[Any], *, with_objects: bool = False, unpacks: bool = False
) -> FoundValues:
    """Return the values at these places and inside of them; null is as good as nothing.

    Args:
        places: What was found.
        with_objects: Takes the whole JSON of an object at a place for one more value.
        unpacks: Looks into JSON in strings.
    """
    objects = [place for place in places if isinstance(place, Mapping)] if with_objects else []
    values: list[Scalar] = [_as_json(one) for one in objects[:_MAX_VALUES]]
    waiting, has_objects = list(places), False
    for _ in range(_MAX_PLACES):
        if not waiting:
            return FoundValues(tuple(values), has_objects)
        part = waiting.pop()
        if isinstance(part, Mapping):
            has_objects = True
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
        elif part is not None:
            values.append(part)
            if unpacks and isinstance(part, str):
                waiting.extend(_unpacked(part))
        if len(values) > _MAX_VALUES:
            break
    return FoundValues(is_cut=True)


def _as_json(value: Any) -> str:
    with suppress(ValueError, TypeError, RecursionError):
        return compact_json(value)
    return ""


def _folded_name(name: str) -> str:
    """Return a name without what tells it from one that looks the same or is read the same."""
    return _folded(name[:_MAX_NAME_CHARS])


@lru_cache(maxsize=16_384)
def _folded(name: str) -> str:
    seen = "".join(char for char in name if unicodedata.category(char) not in _UNSEEN)
    return unicodedata.normalize("NFKC", seen).casefold().translate(_SEPARATORS)


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
