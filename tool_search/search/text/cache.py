"""A bounded dictionary that makes what it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["BoundedCache"]

_V = TypeVar("_V")


class BoundedCache(dict[str, _V]):
    """Values by string, made when they are asked for.

    What was asked for lately stays: of two generations the older one is forgotten
    when the younger one is full, and what is asked for again is young again.

    Args:
        make: Makes the value of a string.
        most: How many values a generation has.
        longest: Values of longer strings are made each time.
    """

    def __init__(self, make: Callable[[str], _V], *, max_values: int, max_chars: int) -> None:
        super().__init__()
        self._make = make
        self._max_values = max_values
        self._max_chars = max_chars
        self._older: dict[str, _V] = {}

    def __missing__(self, key: str) -> _V:
        # One look at a table that another thread may exchange.
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
