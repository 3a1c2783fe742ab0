"""The work that a schema may cause: how often its parts are evaluated.

`$ref`, `anyOf` and their like let a schema of one kilobyte ask for billions of
evaluations, and a validator cannot be interrupted. So the work is counted before it is
done: for each level of nesting, how many parts one value there may be held against.
Counting takes time in proportion to the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.schema.graph import SAME_VALUE_KEYWORDS, Part, SchemaGraph

__all__ = ["Excess", "SchemaWork", "excesses"]

_MAX_EXPANSIONS = 2_000
_SATURATED = 1 << 40
# Finding out what is unevaluated evaluates the parts beside it again.
_UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_AGAIN = 3
_VALUES_A_STEP = 16
_CHARS_A_STEP = 64


@dataclass(frozen=True, slots=True)
class Excess:
    """A part that would cause more work than is allowed.

    Attributes:
        part: The part, which is to lose the keywords.
        keywords: What causes the work.
        reason: Why they are too much.
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
    ordered, circles = _inner_first(graph.parts)
    for part in circles:
        yield Excess(part, ("$ref",), "it refers to itself without end")
    if circles:
        ordered, _ = _inner_first(SchemaGraph(graph.root.schema).parts)
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
        self._ordered, _ = _inner_first(graph.parts)
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
        """The most evaluations of one value this deep."""
        while len(self._levels) <= depth:
            self._level = self._next_level()
            self._levels.append(self._level[self._root])
        return self._levels[depth]

    def _next_level(self) -> dict[Part, int]:
        """For each part, the evaluations one level deeper than were counted last."""
        before, is_first = self._level, not self._levels
        found: dict[Part, int] = {}
        for part in self._ordered:
            own = _own_work(part) if is_first else _below(part, before)
            found[part] = min(_with_same(part, own, found), _SATURATED)
        return found


def _inner_first(parts: Iterable[Part]) -> tuple[list[Part], list[Part]]:
    """Return the parts, each after those that it applies to the same value.

    The second list has the parts whose reference closes a circle.
    """
    ordered: list[Part] = []
    circles: list[Part] = []
    begun: set[Part] = set()
    done: set[Part] = set()
    for start in parts:
        if start in begun:
            continue
        begun.add(start)
        stack = [(start, iter(start.same))]
        while stack:
            part, inner = stack[-1]
            following = next(inner, None)
            if following is None:
                stack.pop()
                done.add(part)
                ordered.append(part)
            elif following not in begun:
                begun.add(following)
                stack.append((following, iter(following.same)))
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
    """The work for one value within the part's value."""
    key = max((work[inner] for inner in part.keys.values()), default=0)
    place = max((work[inner] for inner in part.places), default=0)
    return max(
        key + sum(work[inner] for inner in part.any_key),
        place + sum(work[inner] for inner in part.any_item),
    )
