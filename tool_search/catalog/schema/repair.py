"""Schemas of any author, made valid JSON Schema 2020-12.

One definition that a service refuses ends every request that declares it. So a part that is
not 2020-12 is repaired if its meaning is clear, and left out otherwise: a schema that demands
less is better than none, and the tool itself still judges its arguments. Size, nesting and
references are bounded here, before any of them is followed.

A schema that demands less accepts more. If a keyword decides by what a part refuses (`not`,
`if`, `oneOf`, `maxContains`, `unevaluatedProperties`), a part that demands less would refuse
valid values, so that keyword is left out with it.

Sources: JSON Schema 2020-12; error texts of Anthropic (`It must match JSON Schema draft
2020-12`), OpenAI (`array schema missing items`), Moonshot (`references must start with
#/$defs/`) and Groq (`'required' present but 'properties' is missing`); OpenAI,
"Structured outputs", "Supported schemas" (at most 5,000 properties, 10 levels).
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from tool_search.catalog.schema.graph import (
    DEFINITIONS,
    Excess,
    Part,
    References,
    SchemaGraph,
    Target,
    excesses,
    pointer_of,
)
from tool_search.catalog.schema.vocabulary import (
    LEFT_OUT,
    MANY_SCHEMAS,
    NAMED_SCHEMAS,
    ONE_SCHEMA,
    SIMPLE_KEYWORDS,
    is_pattern,
    mended_value,
    modern,
    wire_key,
)
from tool_search.core.catalog.tool import TYPES, read_type

__all__ = ["Changes", "SchemaChange", "loosen", "repaired"]

_MAX_DEPTH = 32
# Of an object, property or branch each. Measured: the worst of them take 10 to 20 ms.
_MAX_PARTS = 1_000
_MAX_LISTED = 5_000
# Of each kind.
_MAX_CHANGES = 50
# Distinct ones: each may take a millisecond and more to compile.
_MAX_REPEATING_PATTERNS = 16
_MAX_SHOWN_CHARS = 60
_REPEATS = re.compile(r"\{\d|\\[pP]")
_DEFINITIONS_PLACES = frozenset((keyword,) for keyword in DEFINITIONS)
# Read if a reference needs them, and left out.
_SET_APART = frozenset(
    ("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", *DEFINITIONS)
)
# Here a boolean has a meaning of its own.
_BOOLEAN_TOO = frozenset(
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items")
)
# They apply to values that other keywords do not name.
_REST = frozenset(("additionalProperties", "items"))
_NOTHING: Mapping[str, Any] = {"not": {}}

ChangeKind = Literal["renamed", "repaired", "left_out"]
Path = tuple[str, ...]
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between a schema as it was given and as it is declared.

    Attributes:
        kind: `renamed`: another key on the wire; `repaired`: the same in valid form;
            `left_out`: not declared.
        place: The place, as a JSON Pointer into the given schema.
        detail: The new form, or the reason for leaving it out.
    """

    kind: ChangeKind
    place: str
    detail: str

    def __str__(self) -> str:
        return f"{self.place or '/'} {self.detail}"


@dataclass(slots=True)
class Changes:
    """The changes of one schema, in the order in which they were made.

    Attributes:
        listed: The first of each kind.
        more: How many more there are.
    """

    listed: list[SchemaChange] = field(default_factory=list)
    more: int = 0
    _counts: Counter[ChangeKind] = field(default_factory=Counter)

    def add(self, kind: ChangeKind, path: Path, detail: str) -> None:
        """Note one change."""
        self._counts[kind] += 1
        if self._counts[kind] <= _MAX_CHANGES:
            self.listed.append(SchemaChange(kind, pointer_of(path), detail))
        else:
            self.more += 1


def repaired(schema: Mapping[str, Any], changes: Changes) -> SchemaGraph:
    """Return the parts of the schema as valid 2020-12, in its order, within bounds.

    References lead to the root or to a definition at the root. A schema that is valid already
    is returned as an equal schema, except that identifiers (`$schema`, `$id`, anchors) are
    left out and an array always has `items`.

    Args:
        schema: Any JSON object.
        changes: Collects what was repaired or left out.
    """
    return _Repair(schema, changes).run()


class _Repair:
    def __init__(self, root: Mapping[str, Any], changes: Changes) -> None:
        self._root = root
        self._changes = changes
        self._references = References(root)
        self._document = Target(root, ())
        self._base = self._document
        # The name in `$defs` of each part that references lead to.
        self._names: dict[Path, str] = {}
        self._taken: set[str] = set()
        self._waiting: deque[Target] = deque()
        self._parts = 0
        self._listed = 0
        # By `id`; held, so that no other part gets the same one.
        self._looser: dict[int, dict[str, Any]] = {}
        self._unlisted: set[int] = set()
        self._limits: set[str] = set()
        self._repeating: set[str] = set()
        self._special: Mapping[str, Callable[[dict[str, Any], Any, Path], None]] = {
            "type": self._type,
            "$ref": self._reference,
            "required": self._require,
            "dependentRequired": self._dependent,
        }

    def run(self) -> SchemaGraph:
        sound = self._node(self._root, (), 0)
        self._define(sound)
        graph = SchemaGraph(sound)
        is_cut = False
        for excess in excesses(graph):
            self._cut(excess)
            is_cut = True
        graph = SchemaGraph(sound) if is_cut else graph
        removed = loosen(graph, self._looser)
        for part, keyword in removed:
            self._changes.add("left_out", (*part.path, keyword), "is left out: it rests on that")
        graph = SchemaGraph(sound) if removed else graph
        _drop_unused(graph)
        return graph

    def _define(self, sound: dict[str, Any]) -> None:
        """Put the targets of references into `$defs`: in the order given, then new ones."""
        made: dict[Path, dict[str, Any]] = {}
        while self._waiting:
            target = self._waiting.popleft()
            made[target.path] = self._schema(target.schema, target.path, 1)
        given = [
            (keyword, name)
            for keyword in DEFINITIONS
            if isinstance(found := self._root.get(keyword), Mapping)
            for name in found
        ]
        ordered = dict.fromkeys([*(path for path in given if path in made), *made])
        sound["$defs"] = {self._names[path]: made[path] for path in ordered}

    def _cut(self, excess: Excess) -> None:
        self._left_out(excess.part.path, excess.reason, excess.part.schema)
        for keyword in excess.keywords:
            excess.part.schema.pop(keyword, None)

    def _left_out(self, path: Path, why: str, part: dict[str, Any]) -> None:
        """Note that the part has lost something."""
        self._changes.add("left_out", path, f"is left out: {why}")
        self._looser[id(part)] = part

    def _repair(self, path: Path, what: str) -> None:
        self._changes.add("repaired", path, what)

    def _schema(self, value: object, path: Path, depth: int) -> dict[str, Any]:
        """Return a schema for any place; a value that is not one allows anything."""
        if isinstance(value, Mapping):
            self._parts += 1
            if depth <= _MAX_DEPTH and self._parts <= _MAX_PARTS:
                return self._node(value, path, depth)
            limit = f"{_MAX_DEPTH} levels" if depth > _MAX_DEPTH else f"{_MAX_PARTS:,} parts"
            return self._beyond(path, limit)
        if isinstance(value, bool):
            self._repair(path, "becomes a schema")
            return {} if value else dict(_NOTHING)
        typed = read_type(value) if isinstance(value, str) else None
        if typed:
            self._repair(path, "becomes a schema of that type")
            return typed
        return self._anything(path, f"{_preview(value)} is not a schema")

    def _beyond(self, path: Path, limit: str) -> dict[str, Any]:
        """Return a schema in place of one beyond a limit; the limit is noted once."""
        if limit not in self._limits:
            self._limits.add(limit)
            return self._anything(path, f"the schema has more than {limit}")
        part: dict[str, Any] = {}
        self._looser[id(part)] = part
        self._changes.more += 1
        return part

    def _anything(self, path: Path, why: str) -> dict[str, Any]:
        """Return a schema in place of one that is left out."""
        part: dict[str, Any] = {}
        self._left_out(path, why, part)
        return part

    def _node(self, raw: Mapping[str, Any], path: Path, depth: int) -> dict[str, Any]:
        outer = self._base
        if path and isinstance(own := raw.get("$id"), str) and not own.startswith("#"):
            self._base = Target(raw, path)
        schema, names = modern(raw, lambda key, what: self._repair((*path, key), what))
        sound: dict[str, Any] = {}
        for keyword, value in schema.items():
            place = (*path, names.get(keyword, keyword))
            self._keyword(sound, keyword, value, place, depth)
        self._base = outer
        if id(sound) in self._unlisted:
            for keyword in _REST.intersection(sound):
                del sound[keyword]
                self._left_out((*path, keyword), "what it is the rest of is not known", sound)
        kinds = sound.get("type", ())
        if (kinds == "array" or "array" in kinds) and "items" not in sound:
            self._repair(path, "has items of any kind")
            sound["items"] = {}
        if "required" in sound and "properties" not in sound and "object" in kinds:
            self._repair(path, "has no properties of its own")
            sound["properties"] = {}
        return sound

    def _keyword(
        self, sound: dict[str, Any], keyword: str, value: Any, place: Path, depth: int
    ) -> None:
        """Put one keyword into the schema that it belongs to, if it can be made valid."""
        if keyword in _SET_APART:
            if place in _DEFINITIONS_PLACES:
                # The targets of references are added here at the end.
                sound.setdefault("$defs", {})
            return
        if keyword in SIMPLE_KEYWORDS:
            self._simple(sound, keyword, value, place)
        elif keyword in self._special:
            self._special[keyword](sound, value, place)
        elif keyword in NAMED_SCHEMAS:
            self._mend_parts(sound, keyword, value, place, depth)
        elif keyword in MANY_SCHEMAS:
            self._many(sound, keyword, value, place, depth)
        elif keyword in ONE_SCHEMA:
            self._one(sound, keyword, value, place, depth)
        else:
            sound[keyword] = value

    def _simple(self, sound: dict[str, Any], keyword: str, value: Any, place: Path) -> None:
        if value is None:
            return
        if keyword == "pattern" and not self._is_affordable(value):
            why = f"more than {_MAX_REPEATING_PATTERNS} patterns repeat something"
            self._left_out(place, why, sound)
            return
        mended = mended_value(keyword, value)
        if mended is LEFT_OUT:
            self._left_out(place, f"{_preview(value)} is not valid there", sound)
            return
        if mended is not value:
            self._repair(place, f"becomes {_preview(mended)}")
        sound[keyword] = mended

    def _is_readable(self, pattern: str) -> bool:
        return self._is_affordable(pattern) and is_pattern(pattern)

    def _is_affordable(self, pattern: object) -> bool:
        """True unless the pattern takes long to compile and others have done so."""
        if not isinstance(pattern, str) or not _REPEATS.search(pattern):
            return True
        if len(self._repeating) < _MAX_REPEATING_PATTERNS:
            self._repeating.add(pattern)
        return pattern in self._repeating

    def _type(self, sound: dict[str, Any], value: Any, place: Path) -> None:
        if isinstance(value, str) and value in TYPES:
            sound["type"] = value
            return
        typed = read_type(value)
        if typed is None:
            self._left_out(place, f"{_preview(value)} is not a type", sound)
            return
        if value == [typed.get("type")]:
            typed["type"] = value
        if typed.get("type") != value and value is not None:
            self._repair(place, f"{_preview(value)} becomes {_preview(typed.get('type', 'any'))}")
        for keyword, each in typed.items():
            sound.setdefault(keyword, each)

    def _reference(self, sound: dict[str, Any], value: Any, place: Path) -> None:
        target = self._references.find(value, self._base)
        if target is None:
            self._left_out(place, f"{_preview(value)} leads to nothing in the schema", sound)
            return
        sound["$ref"] = written = self._write_reference(target)
        if written != value:
            self._repair(place, f"becomes {_preview(written)}")

    def _write_reference(self, target: Target) -> str:
        """Return a reference to a target: to the root, or to a definition at the root."""
        path = target.path
        if not path:
            return "#"
        if path not in self._names:
            self._name(path)
            self._waiting.append(target)
        return f"#{pointer_of(('$defs', self._names[path]))}"

    def _name(self, path: Path) -> None:
        """Name a definition: some services take references to `$defs` alone (Moonshot)."""
        names = (wire_key(path[-1], attempt) for attempt in count())
        self._names[path] = name = next(name for name in names if name not in self._taken)
        self._taken.add(name)

    def _require(self, sound: dict[str, Any], value: Any, place: Path) -> None:
        if value is None:
            return
        if isinstance(value, bool):
            # Draft 3 has it in the property itself; `_mend_parts` has moved it to the object.
            self._repair(place, "is said by the object around it")
            return
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list):
            self._left_out(place, f"{_preview(value)} is not a list of names", sound)
            return
        listed = self._strings(names, place, sound)
        if listed != value:
            self._repair(place, f"becomes {_preview(listed)}")
        sound["required"] = [*listed, *_others(sound.get("required", ()), listed)]

    def _strings(self, values: Iterable[Any], place: Path, sound: dict[str, Any]) -> list[str]:
        """Return the strings of a list, each once, as long as there are not too many."""
        found = dict.fromkeys(value for value in values if isinstance(value, str))
        self._listed += len(found)
        if self._listed > _MAX_LISTED:
            self._left_out(place, f"the schema lists more than {_MAX_LISTED:,} names", sound)
            return []
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self._left_out((*place, str(index)), f"{_preview(value)} is not a name", sound)
        return list(found)

    def _dependent(self, sound: dict[str, Any], value: Any, place: Path) -> None:
        if not isinstance(value, Mapping):
            self._left_out(place, f"{_preview(value)} is not an object", sound)
            return
        sound["dependentRequired"] = kept = {}
        for key, names in value.items():
            self._listed += 1
            if isinstance(names, list):
                kept[key] = self._strings(names, (*place, key), sound)
            else:
                why = f"{_preview(names)} is not a list of names"
                self._left_out((*place, key), why, sound)

    def _mend_parts(
        self, sound: dict[str, Any], keyword: str, value: Any, place: Path, depth: int
    ) -> None:
        if value is None:
            return
        if keyword == "properties" and isinstance(value, list):
            value = self._listed_properties(value, place)
        if not isinstance(value, Mapping):
            self._left_out(place, f"{_preview(value)} is not an object of schemas", sound)
            self._unlisted.add(id(sound))
            return
        sound[keyword] = kept = {}
        for key, part in value.items():
            inner = (*place, key)
            if self._parts >= _MAX_PARTS:
                self._looser[id(sound)] = sound
                self._beyond(inner, f"{_MAX_PARTS:,} parts")
                self._unlisted.add(id(sound))
                break
            if keyword == "patternProperties" and not self._is_readable(key):
                self._left_out(inner, "its pattern cannot be read", sound)
                self._unlisted.add(id(sound))
                continue
            kept[key] = self._schema(part, inner, depth + 1)
        if keyword == "properties":
            demanded = [
                key for key, part in value.items()
                if isinstance(part, Mapping) and part.get("required") is True
            ]  # fmt: skip
            if demanded:
                before = sound.get("required", [])
                sound["required"] = [*before, *_others(demanded, before)]

    def _listed_properties(self, value: list[Any], place: Path) -> object:
        """Return properties that are listed with their names, as some APIs describe them."""
        named = [p for p in value if isinstance(p, Mapping) and isinstance(p.get("name"), str)]
        if len(named) < len(value):
            return value
        self._repair(place, "becomes an object of schemas")
        return {p["name"]: {k: v for k, v in p.items() if k != "name"} for p in named}

    def _many(
        self, sound: dict[str, Any], keyword: str, value: Any, place: Path, depth: int
    ) -> None:
        if isinstance(value, Mapping):
            self._repair(place, "becomes a list of schemas")
            value = [value]
        if not isinstance(value, list):
            if value is not None:
                self._left_out(place, f"{_preview(value)} is not a list of schemas", sound)
                self._unlisted.add(id(sound))
            return
        parts: list[dict[str, Any]] = []
        for index, part in enumerate(value):
            is_full = self._parts > _MAX_PARTS
            parts.append(self._schema(part, (*place, str(index)), depth + 1))
            if is_full:  # anything is allowed, and more branches add nothing
                break
        if parts:
            sound[keyword] = parts
        elif value or keyword != "prefixItems":
            self._left_out(place, "it is empty", sound)

    def _one(
        self, sound: dict[str, Any], keyword: str, value: Any, place: Path, depth: int
    ) -> None:
        if value is None:
            return
        if keyword in _BOOLEAN_TOO:
            said = mended_value("uniqueItems", value)
            if said is not LEFT_OUT and not (keyword == "items" and said):
                if said is not value:
                    self._repair(place, f"becomes {_preview(said)}")
                sound[keyword] = said
                return
        sound[keyword] = self._schema(value, place, depth + 1)


def _drop_unused(graph: SchemaGraph) -> None:
    """Remove definitions without a reference to them."""
    sound = graph.root.schema
    definitions = sound.get("$defs", {})
    for name in [name for name, part in definitions.items() if graph.of(part) is None]:
        del definitions[name]
    if not definitions:
        sound.pop("$defs", None)


def _others(names: Iterable[str], known: Iterable[str]) -> list[str]:
    found = set(known)
    return [name for name in names if name not in found]


def _preview(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[: _MAX_SHOWN_CHARS - 3]}..."


def loosen(graph: SchemaGraph, left_out: Collection[int]) -> list[tuple[Part, str]]:
    """Take out of a sound schema what could refuse more than before; return what and where.

    Args:
        graph: The schema, which is changed; the graph is not kept up to date.
        left_out: The parts in which something was left out, by `id`.
    """
    if not left_out:
        return []
    parts = graph.parts
    direct = [part for part in parts if id(part.schema) in left_out]
    looser = {id(part.schema) for part in _users(parts, direct, lambda part: part.inner())}
    here = _users(parts, direct, lambda part: part.same)
    removed = [
        (part, keyword)
        for part in parts
        if id(part.schema) in looser
        for keyword in _unsafe(part.schema, looser, with_rest=part in here)
    ]
    for part, keyword in removed:
        value = part.schema.pop(keyword)
        if keyword == "oneOf" and "anyOf" not in part.schema:
            part.schema["anyOf"] = value
    return removed


def _unsafe(schema: dict[str, Any], looser: Collection[int], *, with_rest: bool) -> list[str]:
    """Return the keywords of a part that depend on a part that demands less than before.

    Args:
        schema: The part.
        looser: The parts that accept more than before, by `id`.
        with_rest: True if the values that the part's keywords leave over have changed.
    """

    def is_looser(keyword: str) -> bool:
        return id(schema.get(keyword)) in looser

    found = []
    if is_looser("not"):
        found.append("not")
    if is_looser("if"):
        found += [keyword for keyword in ("if", "then", "else") if keyword in schema]
    if any(id(branch) in looser for branch in schema.get("oneOf", ())):
        found.append("oneOf")
    if is_looser("contains") and "maxContains" in schema:
        found.append("maxContains")
    if with_rest:
        found += [keyword for keyword in _UNEVALUATED if keyword in schema]
    return found


def _users(
    parts: Iterable[Part], start: Iterable[Part], inner: Callable[[Part], Iterable[Part]]
) -> set[Part]:
    """Return the parts to start with, and all that apply one of them, directly or not."""
    users: dict[Part, list[Part]] = {}
    for part in parts:
        for each in inner(part):
            users.setdefault(each, []).append(part)
    found = set(start)
    waiting = list(found)
    while waiting:
        new = [user for user in users.get(waiting.pop(), ()) if user not in found]
        found.update(new)
        waiting += new
    return found
