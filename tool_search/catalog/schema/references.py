"""References within a schema, in every way of writing, and their targets.

Source: JSON Schema 2020-12, "Core", sections 8.2 (`$id`, `$anchor`, `$ref`,
`$dynamicRef`); RFC 6901 (JSON Pointer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

__all__ = ["DEFINITIONS", "References", "Target", "pointer_of"]

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
        steps = tuple(s.replace("~1", "/").replace("~0", "~") for s in fragment[1:].split("/"))
        return self._at(part, steps) or self._at(part, _under_other_name(steps))

    def _definition(self, name: str) -> Target | None:
        """Return the definition of this name: some generators write no pointer."""
        found = (self._at(self._document, (key, unquote(name))) for key in DEFINITIONS)
        return next((target for target in found if target is not None), None)

    @staticmethod
    def _at(part: Target, steps: tuple[str, ...]) -> Target | None:
        found: Any = part.schema
        for step in steps:
            if isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(found, list) and step.isdecimal() and len(step) < 8:
                found = found[int(step)] if int(step) < len(found) else None
            else:
                return None
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
