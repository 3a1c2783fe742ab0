"""The values of a call's arguments that a rule is compared with.

A rule names an argument, such as `to` or `where.host`. Its values are at that place of the
call; the tool's schema cannot choose another place. A rule that denies or asks also looks
where a program might take the argument from: nested, under a name that looks the same, in
JSON inside a string, or in the schema's default if the call has no value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from tool_search.core.catalog.tool import Tool, schema_of
from tool_search.core.values.json import compact_json
from tool_search.core.values.readings import Scalar, without_unseen
from tool_search.runner.execution.permissions.schema_parts import SchemaParts

__all__ = [
    "CallArguments",
    "FoundValues",
    "Subjects",
    "declared_names",
    "declares",
    "values_declared",
]

Subjects = Callable[[Mapping[str, Any]], Sequence[str]]
"""Returns the values that a call is about; written by the tool's author."""

_MAX_PLACES = 10_000
_MAX_VALUES = 1_000
_MAX_NAME_CHARS = 256
_MAX_JSON_CHARS = 100_000
_MAX_JSON_DEPTH = 3
# Programs that accept an argument under several names differ in these characters.
_SEPARATORS = str.maketrans("", "", "_- .")
_Parts = tuple[Mapping[str, Any], ...]


class _TooManyError(Exception):
    """A call has more values than rules look at."""


@lru_cache(maxsize=1024)
def _schema_of(tool: Tool) -> SchemaParts:
    return SchemaParts(schema_of(tool))


@lru_cache(maxsize=1024)
def declared_names(tool: Tool) -> tuple[str, ...]:
    """Return the arguments that a tool's schema declares, in order."""
    schema = _schema_of(tool)
    return schema.names(schema.root)


@lru_cache(maxsize=4096)
def declares(tool: Tool, path: str) -> bool:
    """Return True if a tool's schema has an argument of this name or path.

    An object whose schema has no properties may have any.
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
    # A branch without an enum accepts any value of its type.
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
        has_objects: True if there are also JSON objects; their own values are in `values`.
        is_cut: True if there are more values than rules look at.
    """

    values: tuple[Scalar, ...] = ()
    has_objects: bool = False
    is_cut: bool = False


class CallArguments:
    """The arguments of one call, as rules look at them.

    Args:
        tool: The called tool.
        given: The arguments of the call.
        subjects: Returns the values that the call is about.
        read: Returns the arguments as the tool's function receives them: with defaults,
            coerced, stripped. None: as given.
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
        self._found_by_path: dict[str, tuple[FoundValues, FoundValues]] = {}

    @cached_property
    def subjects(self) -> tuple[str, ...] | None:
        """The values that the call is about; None if the author does not say."""
        return None if self._subjects is None else tuple(self._subjects(self.given))

    @cached_property
    def received(self) -> Mapping[str, Any]:
        """The arguments as the tool's function receives them, if that is known."""
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
        """All values of the call, under any name, for rules that deny."""
        return _collect_values(list(self.given.values()), unpacks=True)

    def at(self, path: str) -> FoundValues:
        """Return the values that the tool receives under a name, for rules that allow.

        Values under the same name elsewhere in the call are included. A default counts only
        if the bot's own author chose it, not a server.
        """
        return self._find(path)[0]

    def anywhere(self, path: str) -> FoundValues:
        """Return the values that a program might use as the argument of a name."""
        return self._find(path)[1]

    def _find(self, path: str) -> tuple[FoundValues, FoundValues]:
        if path not in self._found_by_path:
            try:
                self._found_by_path[path] = self._search(tuple(path.split(".")))
            except _TooManyError:
                self._found_by_path[path] = (FoundValues(is_cut=True),) * 2
        return self._found_by_path[path]

    def _search(self, steps: tuple[str, ...]) -> tuple[FoundValues, FoundValues]:
        given, received = self.given, self.received
        exact = list(self._follow(received, steps, with_defaults=not self.tool.is_third_party))
        written = list(self._follow(given, steps, with_defaults=True))
        alike = list(self._objects.values(steps))
        packed = list(self._packed_objects.values(steps))
        sure = _collect_values([*exact, *alike]) if exact else FoundValues()
        found = [*exact, *written, *alike, *packed]
        return sure, _collect_values(found, with_objects=True, unpacks=True)

    @cached_property
    def _objects(self) -> _ByNormalizedName:
        """Every object in the received arguments."""
        return _ByNormalizedName(_mappings(self.received))

    @cached_property
    def _packed_objects(self) -> _ByNormalizedName:
        """Every object in the given arguments, and in JSON strings."""
        return _ByNormalizedName(_mappings(self.given, in_strings=True))

    def _follow(
        self, arguments: Mapping[str, Any], steps: tuple[str, ...], *, with_defaults: bool
    ) -> Iterator[Any]:
        """Yield the values at a place: each item of a list, and defaults of missing values."""
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
                # A program may accept a list although its schema declares one value.
                of_items = (*schema.of_items(parts), *parts)
                waiting.extend((item, of_items, depth) for item in value)
            elif isinstance(value, Mapping):
                inner = schema.of_property(parts, steps[depth])
                given = value.get(steps[depth])
                if given is not None:
                    waiting.append((given, inner, depth + 1))
                elif with_defaults:
                    defaults = [part["default"] for part in inner if "default" in part]
                    # A missing object may be built from the defaults of its properties.
                    defaults += [{}] if depth + 1 < len(steps) else []
                    waiting.extend((default, inner, depth + 1) for default in defaults)
        raise _TooManyError


class _ByNormalizedName:
    """The values of objects by normalized name: names that look the same are one.

    Args:
        objects: All objects, nested ones included.
    """

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._objects = list(objects)
        self._inner: dict[int, dict[str, list[Any]]] = {}
        for one in self._objects:
            values = self._inner[id(one)] = {}
            for key, value in one.items():
                values.setdefault(_normalized_name(str(key)), []).append(value)

    def values(self, steps: tuple[str, ...]) -> Iterator[Any]:
        """Yield the values under any name that looks like this one."""
        names = [_normalized_name(step) for step in steps]
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
    """Yield every object in a value, and in JSON strings if `in_strings`."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_MAX_PLACES):
        if not waiting:
            return
        part, depth = waiting.pop()
        if isinstance(part, str):
            waiting.extend((inner, depth + 1) for inner in _parse_json(part))
            continue
        inside: Iterable[Any] = part
        if isinstance(part, Mapping):
            yield part
            inside = part.values()
        holds = (dict, list, str) if in_strings and depth < _MAX_JSON_DEPTH else (dict, list)
        waiting.extend((inner, depth) for inner in inside if isinstance(inner, holds))
    raise _TooManyError


def _parse_json(text: str) -> list[Any]:
    """Return the JSON object or list in a string, as servers parse it; [] for other text."""
    if text.lstrip()[:1] in ("{", "[") and len(text) <= _MAX_JSON_CHARS:
        with suppress(ValueError, RecursionError):
            return [json.loads(text)]
    return []


def _collect_values(
    places: Sequence[Any], *, with_objects: bool = False, unpacks: bool = False
) -> FoundValues:
    """Return the values at these places and nested in them, without null.

    Args:
        places: The values to collect from.
        with_objects: True adds the JSON text of an object as one more value.
        unpacks: True also looks into JSON in strings.
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
                waiting.extend(_parse_json(part))
        if len(values) > _MAX_VALUES:
            break
    return FoundValues(is_cut=True)


def _as_json(value: Any) -> str:
    with suppress(ValueError, TypeError, RecursionError):
        return compact_json(value)
    return ""


def _normalized_name(name: str) -> str:
    """Return a name in a form that names that look or read the same share."""
    return _normalize(name[:_MAX_NAME_CHARS])


@lru_cache(maxsize=16_384)
def _normalize(name: str) -> str:
    return without_unseen(name).casefold().translate(_SEPARATORS)


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
