"""The parts of a JSON Schema, and the work that checking a value against them takes.

`SchemaGraph` has each part once, with the parts that it applies. `SchemaWork` counts, without
a value, how often parts may be evaluated: `$ref`, `anyOf` and their like let a schema of one
kilobyte ask for billions of evaluations, and a validator cannot be interrupted. For each level
of nesting it counts the parts that one value may be checked against. Counting takes time in
proportion to the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from urllib.parse import unquote

from tool_search.core.values.json import part_at, pointer_steps

__all__ = [
    "APPLYING_KEYWORDS",
    "DEFINITIONS",
    "SAME_VALUE_KEYWORDS",
    "Excess",
    "Part",
    "References",
    "SchemaGraph",
    "SchemaWork",
    "Target",
    "excesses",
    "inner_first",
    "pointer_of",
]

# References within a schema, in every way of writing, and their targets.
#
# Source: JSON Schema 2020-12, "Core", sections 8.2 (`$id`, `$anchor`, `$ref`,
# `$dynamicRef`); RFC 6901 (JSON Pointer).


DEFINITIONS = ("$defs", "definitions")
_ID_KEYWORDS = ("$id", "id")
_ANCHORS = ("$anchor", "$dynamicAnchor")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a reference.

    Attributes:
        schema: The schema there, an object or a boolean.
        path: Its place in the document.
    """

    schema: Mapping[str, Any] | bool
    path: tuple[str, ...]


def pointer_of(path: Sequence[str]) -> str:
    """Return the JSON Pointer of a path; the empty one for the document.

    >>> pointer_of(("properties", "a/b"))
    '/properties/a~1b'
    """
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)


class References:
    """The references of one schema document.

    Args:
        root: The document.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._named: dict[str, Target] | None = None

    def find(self, reference: object, base: Target) -> Target | None:
        """Return the target of a reference, or None if the document has none.

        Args:
            reference: The value of `$ref`.
            base: The nearest part around it that has an `$id` of its own, or the document.
        """
        if not isinstance(reference, str):
            return None
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if not address:
            return self._within(base, fragment) or self._within(self._document, fragment)
        part = self._names.get(_file(address))
        if part is None:
            return None if fragment else self._definition(address)
        return self._within(part, fragment)

    @property
    def _document(self) -> Target:
        return Target(self._root, ())

    def _within(self, part: Target, fragment: str) -> Target | None:
        if not fragment:
            return part
        if not fragment.startswith("/"):
            return self._names.get(f"#{fragment}")
        steps = pointer_steps(fragment)
        return self._at(part, steps) or self._at(part, _under_other_name(steps))

    def _definition(self, name: str) -> Target | None:
        """Return the definition of this name: some generators write no pointer."""
        found = (self._at(self._document, (key, unquote(name))) for key in DEFINITIONS)
        return next((target for target in found if target is not None), None)

    @staticmethod
    def _at(part: Target, steps: tuple[str, ...]) -> Target | None:
        found = part_at(part.schema, steps)
        if not steps or not isinstance(found, Mapping | bool):
            return None
        return Target(found, (*part.path, *steps))

    @property
    def _names(self) -> Mapping[str, Target]:
        """The parts that have an id or an anchor, by that; anchors with a `#` before them."""
        if self._named is None:
            self._named = {}
            for target in _parts(self._document):
                for name in _names_of(target.schema):
                    self._named.setdefault(name, target)
        return self._named


def _under_other_name(steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the steps into the other keyword for definitions: converters rename only one side."""
    if not steps or steps[0] not in DEFINITIONS:
        return steps
    other = DEFINITIONS[1 - DEFINITIONS.index(steps[0])]
    return (other, *steps[1:])


def _parts(document: Target) -> Iterator[Target]:
    """Yield all objects of a document with their paths, the outer before the inner ones."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(document.schema, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, Mapping):
            yield Target(value, path)
            waiting += [(inner, (*path, key)) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(inner, (*path, str(n))) for n, inner in enumerate(value)]


def _file(address: str) -> str:
    """Return the last part of an address: relative ones have no other, and few schemas have two."""
    return address.rpartition("/")[2] or address


def _names_of(schema: Mapping[str, Any] | bool) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    for keyword in _ANCHORS:
        if isinstance(name := schema.get(keyword), str):
            yield f"#{name}"
    for keyword in _ID_KEYWORDS:
        if isinstance(name := schema.get(keyword), str) and name:
            yield name if name.startswith("#") else _file(name.rstrip("#"))


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
APPLYING_KEYWORDS = _SAME_VALUE | _ANY_KEY | _ANY_ITEM | _NAMED | {"prefixItems"}
"""Keywords by which a part applies others."""
_NO_KEYS: Mapping[str, Part] = {}
_MAX_EXPANSIONS = 2_000
_SATURATED = 1 << 40
# A check of unevaluated values evaluates the neighbouring parts again.
_UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_AGAIN = 3
_VALUES_A_STEP = 16
_CHARS_A_STEP = 64


class Part:
    """One part of a schema, and the parts that it applies.

    Args:
        schema: The part.
        path: Its place; for the target of several references, its own place.

    Attributes:
        schema: The part.
        path: Its place.
        same: Parts for the same value.
        keys: Parts for the value of a property, by its key.
        any_key: Parts for the value of any key.
        places: Parts for an item, in the order of the items.
        any_item: Parts for any item.
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
            if not APPLYING_KEYWORDS.isdisjoint(part.schema):
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
                part.same = [*part.same, *self._apply(keyword, value, part.path)]
            elif keyword in _ANY_KEY:
                part.any_key = [*part.any_key, *self._apply(keyword, value, part.path)]
            elif keyword in _ANY_ITEM:
                part.any_item = [*part.any_item, *self._apply(keyword, value, part.path)]
            elif keyword == "prefixItems":
                part.places = [*self._apply(keyword, value, part.path)]

    def _apply(self, keyword: str, value: Any, path: tuple[str, ...]) -> Iterator[Part]:
        """Yield the parts that one keyword applies."""
        place = (*path, keyword)
        if keyword == "$ref":
            yield self.target(value)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield self._part(inner, (*place, str(index)))
        elif keyword in _NAMED:
            for key, inner in value.items():
                yield self._part(inner, (*place, key))
        elif isinstance(value, dict):
            yield self._part(value, place)

    def target(self, reference: str) -> Part:
        """Return the part that a reference leads to."""
        steps = pointer_steps(reference)
        return self._part(part_at(self._schema, steps), steps)


@dataclass(frozen=True, slots=True)
class Excess:
    """A part that would cause more work than is allowed.

    Attributes:
        part: The part, which is to lose the keywords.
        keywords: The keywords that cause the work.
        reason: The reason why they are too much.
    """

    part: Part
    keywords: tuple[str, ...]
    reason: str


def excesses(graph: SchemaGraph) -> Iterator[Excess]:
    """Find the parts of a sound schema that must lose keywords to be bounded.

    Each is found as if all before it had lost theirs, which the caller sees to.

    Args:
        graph: The schema; it is not kept up to date.
    """
    ordered, circles = inner_first(graph.parts)
    for part in circles:
        yield Excess(part, ("$ref",), "it refers to itself without end")
    if circles:
        ordered, _ = inner_first(SchemaGraph(graph.root.schema).parts)
    work: dict[Part, int] = {}
    for part in ordered:
        total = _with_same(part, _own_work(part), work)
        if total > _MAX_EXPANSIONS and part.same:
            reason = f"it has more than {_MAX_EXPANSIONS:,} alternatives"
            yield Excess(part, SAME_VALUE_KEYWORDS, reason)
            total = _own_work(part)
        work[part] = total


class SchemaWork:
    """The most evaluations that a value may take, by how it is nested.

    Args:
        graph: A schema that is free of excesses.

    Attributes:
        has_alternatives: True if a value may fit one of several parts.
    """

    def __init__(self, graph: SchemaGraph) -> None:
        self._root = graph.root
        self._ordered, _ = inner_first(graph.parts)
        self._level: dict[Part, int] = {}
        self._levels: list[int] = []
        self.has_alternatives = any(
            keyword in part.schema for part in graph.parts for keyword in ("anyOf", "oneOf")
        )

    def of(self, value: object, *, limit: int) -> int:
        """Return the most evaluations for a value, or a number above the limit.

        Args:
            value: A JSON value.
            limit: The number from which the exact one does not matter.
        """
        total, depth = 0, 0
        level: list[Any] = [value]
        while level and total <= limit:
            chars = sum(len(each) for each in level if isinstance(each, str))
            total += len(level) * self._at(depth) + chars // _CHARS_A_STEP
            nested = (each for each in level if isinstance(each, dict | list))
            inner = (each.values() if isinstance(each, dict) else each for each in nested)
            level = [each for values in inner for each in values]
            depth += 1
        return total

    def _at(self, depth: int) -> int:
        """Return the largest number of evaluations of one value at this depth."""
        while len(self._levels) <= depth:
            self._level = self._next_level()
            self._levels.append(self._level[self._root])
        return self._levels[depth]

    def _next_level(self) -> dict[Part, int]:
        """Return the evaluations of each part one level deeper than the last ones counted."""
        before, is_first = self._level, not self._levels
        found: dict[Part, int] = {}
        for part in self._ordered:
            own = _own_work(part) if is_first else _below(part, before)
            found[part] = min(_with_same(part, own, found), _SATURATED)
        return found


def inner_first(
    parts: Iterable[Part], inner: Callable[[Part], Iterable[Part]] = attrgetter("same")
) -> tuple[list[Part], list[Part]]:
    """Return the parts, each after those that it applies, and those that close a circle.

    Args:
        parts: The parts.
        inner: Returns those that a part applies; by default, to the same value.
    """
    ordered: list[Part] = []
    circles: list[Part] = []
    begun: set[Part] = set()
    done: set[Part] = set()
    for start in parts:
        if start in begun:
            continue
        begun.add(start)
        stack = [(start, iter(inner(start)))]
        while stack:
            part, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                done.add(part)
                ordered.append(part)
            elif following not in begun:
                begun.add(following)
                stack.append((following, iter(inner(following))))
            elif following not in done:
                circles.append(part)
    return ordered, circles


def _own_work(part: Part) -> int:
    schema = part.schema
    values = len(schema.get("enum", ())) + len(schema.get("required", ()))
    return 1 + values // _VALUES_A_STEP


def _with_same(part: Part, own: int, work: Mapping[Part, int]) -> int:
    total = own + sum([work[inner] for inner in part.same]) if part.same else own
    return total if _UNEVALUATED.isdisjoint(part.schema) else total * _AGAIN


def _below(part: Part, work: Mapping[Part, int]) -> int:
    """Return the work for one value within the part's value."""
    key = max((work[inner] for inner in part.keys.values()), default=0)
    place = max((work[inner] for inner in part.places), default=0)
    return max(
        key + sum(work[inner] for inner in part.any_key),
        place + sum(work[inner] for inner in part.any_item),
    )
