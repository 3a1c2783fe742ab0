"""What must go with a part of a schema that was left out.

A schema that says less takes more. Where a part decides by what it refuses (`not`, `if`,
`oneOf`, `maxContains`, `unevaluatedProperties`), saying less would refuse what was right,
so that keyword is left out with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from tool_search.catalog.schema.graph import Part, SchemaGraph

__all__ = ["loosen"]

_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def loosen(graph: SchemaGraph, left_out: Collection[int]) -> list[tuple[Part, str]]:
    """Take out of a sound schema what could refuse more than it did; return what and where.

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
    """The keywords of a part that rest on a part that says less now.

    Args:
        schema: The part.
        looser: The parts that take more than they did, by `id`.
        with_rest: True if what is left over by the part's keywords has changed.
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
    """The parts to start with, and all that apply one of them, near or far."""
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
