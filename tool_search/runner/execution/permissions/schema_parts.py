"""The parts of a JSON Schema that describe one argument.

Local references, combinations and conditions are followed. Every branch counts, because the
branch that the tool's own validation takes is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from tool_search.core.values.json import part_at, pointer_steps

__all__ = ["MAX_PARTS", "SchemaParts"]

MAX_PARTS = 500
"""The number of parts that are read for one place; more are ignored."""

_LISTED = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef")


class SchemaParts:
    """One tool's schema.

    Args:
        schema: The root schema, the target of references.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._anchors: dict[str, Mapping[str, Any]] | None = None

    @property
    def root(self) -> tuple[Mapping[str, Any], ...]:
        """The parts that describe all arguments."""
        return self._expand([self._schema])

    def of_property(
        self, parts: Iterable[Mapping[str, Any]], name: str
    ) -> tuple[Mapping[str, Any], ...]:
        """Return the parts that describe a property, given the parts of its object."""
        found = (_mapping_of(part.get("properties")).get(name) for part in parts)
        return self._expand(part for part in found if isinstance(part, Mapping))

    def of_items(self, parts: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Return the parts that describe a list's items, given the parts of the list."""
        found: list[Mapping[str, Any]] = []
        for part in parts:
            for key in ("items", "prefixItems", "additionalItems", "contains"):
                inner = part.get(key)
                listed = inner if isinstance(inner, list) else [inner]
                found.extend(one for one in listed if isinstance(one, Mapping))
        return self._expand(found)

    def names(self, parts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """Return the properties that these parts declare, in order."""
        declared = (name for part in parts for name in _mapping_of(part.get("properties")))
        return tuple(dict.fromkeys(declared))

    def _expand(self, parts: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Return these parts and the parts they refer to or combine, each once."""
        waiting, seen = list(parts), dict[int, Mapping[str, Any]]()
        while waiting and len(seen) < MAX_PARTS:
            part = waiting.pop(0)
            if id(part) not in seen:
                seen[id(part)] = part
                waiting.extend(self._inner(part))
        return tuple(seen.values())

    def _inner(self, part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        candidates: list[Any] = []
        for key in _LISTED:
            branches = part.get(key)
            candidates.extend(branches if isinstance(branches, list) else ())
        candidates.extend(_mapping_of(part.get("dependentSchemas")).values())
        for key in _SINGLE:
            value = part.get(key)
            candidates.append(self._follow_reference(value) if isinstance(value, str) else value)
        yield from (one for one in candidates if isinstance(one, Mapping))

    def _follow_reference(self, reference: str) -> Any:
        """Return the target of a reference into this schema, or None."""
        if not reference.startswith("#"):
            return None
        if reference == "#":
            return self._schema
        if not reference.startswith("#/"):
            return self._find_anchor(reference[1:])
        return part_at(self._schema, pointer_steps(unquote(reference)))

    def _find_anchor(self, name: str) -> Mapping[str, Any] | None:
        if self._anchors is None:
            self._anchors = {}
            for key in ("$defs", "definitions"):
                for part in _mapping_of(self._schema.get(key)).values():
                    inner = _mapping_of(part)
                    for anchor in (inner.get("$anchor"), inner.get("$dynamicAnchor")):
                        if isinstance(anchor, str):
                            self._anchors[anchor] = inner
        return self._anchors.get(name)


def _mapping_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
