"""The first difference of two JSON values, in the order of their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Difference", "first_difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values part; what is not there is None.

    Attributes:
        path: The place, as `tools[3].name`.
        old: What the one has there.
        new: What the other has there.
    """

    path: str
    old: Any
    new: Any


def first_difference(old: Any, new: Any, path: str) -> Difference | None:
    """The innermost place at which two values differ first, or None for equal ones.

    The order of an object's members counts, since a prompt shows it.

    >>> first_difference({"a": [1, 2]}, {"a": [1, 3]}, "body").path
    'body.a[1]'
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for place, key in enumerate(old):
            at = f"{path}.{key}"
            others = list(new)
            if place >= len(others) or others[place] != key:
                return Difference(at, old[key], new.get(key))
            found = first_difference(old[key], new[key], at)
            if found is not None:
                return found
        more = list(new)[len(old) :]
        return Difference(f"{path}.{more[0]}", None, new[more[0]]) if more else None
    if isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            at = f"{path}[{index}]"
            if index >= len(old) or index >= len(new):
                return Difference(at, *(v[index] if index < len(v) else None for v in (old, new)))
            found = first_difference(old[index], new[index], at)
            if found is not None:
                return found
        return None
    same = type(old) is type(new) and old == new
    return None if same else Difference(path, old, new)
