"""A bounded dictionary that computes the values that it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["BoundedCache"]

_V = TypeVar("_V")


class BoundedCache(dict[str, _V]):
    """Values by string, computed on demand.

    Recently used values stay. There are two generations: when the younger one is full, the
    older one is dropped, and a value that is used again becomes young again.

    Args:
        make: Computes the value of a string.
        max_values: The number of values in a generation.
        max_chars: Values of longer strings are computed each time.
    """

    def __init__(self, make: Callable[[str], _V], *, max_values: int, max_chars: int) -> None:
        super().__init__()
        self._make = make
        self._max_values = max_values
        self._max_chars = max_chars
        self._older: dict[str, _V] = {}

    def __missing__(self, key: str) -> _V:
        # Read once: another thread may replace the table.
        older = self._older
        if key in older:
            value = older[key]
        else:
            value = self._make(key)
            if len(key) > self._max_chars:
                return value
        if len(self) >= self._max_values:
            self._older = self.copy()
            self.clear()
        self[key] = value
        return value
