"""A dictionary that is cheap to change without changing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

__all__ = ["LayeredTable"]

_V = TypeVar("_V")


class LayeredTable(Generic[_V]):
    """An immutable table by string: a large dictionary, and a small one of changes over it.

    Both are shared between tables; a change copies the small one alone, until it
    has grown to an eighth of the large one and the two become one.

    Args:
        entries: What the table holds; taken over, not copied.
    """

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, entries: dict[str, _V] | None = None) -> None:
        self._base: dict[str, _V] = {} if entries is None else entries
        self._changes: dict[str, _V | None] = {}
        self._size = len(self._base)

    def __len__(self) -> int:
        return self._size

    def get(self, key: str) -> _V | None:
        """The entry, or None where there is none."""
        if key in self._changes:
            return self._changes[key]
        return self._base.get(key)

    def changed(self, entries: Mapping[str, _V | None]) -> LayeredTable[_V]:
        """A table with other entries; None takes one out."""
        table: LayeredTable[_V] = LayeredTable()
        gained = sum(
            (new is not None) - (self.get(key) is not None) for key, new in entries.items()
        )
        table._base, table._changes = self._base, {**self._changes, **entries}
        if len(table._changes) > len(self._base) // 8:
            merged = {**table._base, **table._changes}
            table._base = {key: entry for key, entry in merged.items() if entry is not None}
            table._changes = {}
        table._size = self._size + gained
        return table
