"""A dictionary and a list that are cheap to change without changing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, TypeVar, overload

__all__ = ["BlockedList", "LayeredTable"]

_V = TypeVar("_V")
_BLOCK = 256


class LayeredTable(Generic[_V]):
    """An immutable table by string: a large dictionary, and a small one of changes over it.

    Both are shared between tables; a change copies the small one alone, until it
    has grown to a sixteenth of the large one and the two become one.

    Args:
        entries: What the table holds; taken over, not copied.
    """

    __slots__ = ("_base", "_changes", "get")

    get: Callable[[str], _V | None]
    """The entry of a key, or None where there is none."""

    def __init__(self, entries: dict[str, _V] | None = None) -> None:
        self._base: dict[str, _V] = {} if entries is None else entries
        self._changes: dict[str, _V | None] = {}
        # A table that was not changed is as fast as its dictionary.
        self.get = self._base.get

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _get(self, key: str) -> _V | None:
        if key in self._changes:
            return self._changes[key]
        return self._base.get(key)

    def __iter__(self) -> Iterator[str]:
        for key in self._base:
            if key not in self._changes:
                yield key
        for key, entry in self._changes.items():
            if entry is not None:
                yield key

    def put_equal(self, key: str, entry: _V) -> None:
        """Puts an entry in the place of one that means the same, in every table that shares it."""
        (self._changes if key in self._changes else self._base)[key] = entry

    def changed(self, entries: Mapping[str, _V | None]) -> LayeredTable[_V]:
        """A table with other entries; None takes one out."""
        table: LayeredTable[_V] = LayeredTable()
        table._base, table._changes = self._base, self._changes.copy()
        table._changes.update(entries)
        if len(table._changes) > len(self._base) // 16:
            # Copied whole, a dictionary is no slower than a list of the same length.
            table._base = self._base.copy()
            for key, entry in table._changes.items():
                if entry is not None:
                    table._base[key] = entry
                else:
                    table._base.pop(key, None)
            table._changes = {}
        table.get = table._get if table._changes else table._base.get
        return table


class BlockedList(Sequence[_V]):
    """An immutable list of which a changed copy shares all blocks but the changed ones.

    A plain copy would touch every entry to count its references.

    Args:
        entries: What the list holds.
    """

    __slots__ = ("_blocks", "_size")

    def __init__(self, entries: Iterable[_V] = ()) -> None:
        listed = list(entries)
        self._size = len(listed)
        self._blocks = [listed[at : at + _BLOCK] for at in range(0, len(listed), _BLOCK)]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_V]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, place: int) -> _V: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_V]: ...
    def __getitem__(self, place: int | slice) -> _V | Sequence[_V]:
        if isinstance(place, slice):
            return list(self)[place]
        return self._blocks[place // _BLOCK][place % _BLOCK]

    def picked(self, places: Iterable[int]) -> list[_V]:
        """The entries at these places."""
        blocks = self._blocks
        return [blocks[place // _BLOCK][place % _BLOCK] for place in places]

    def changed(self, entries: Mapping[int, _V]) -> BlockedList[_V]:
        """A list with other entries; places from its length on, without a gap, extend it."""
        copy: BlockedList[_V] = BlockedList()
        copy._blocks, copy._size = self._blocks.copy(), self._size
        own: set[int] = set()
        for place in sorted(entries):
            number = place // _BLOCK
            if number == len(copy._blocks):
                copy._blocks.append([])
                own.add(number)
            if number not in own:
                copy._blocks[number] = copy._blocks[number].copy()
                own.add(number)
            copy._blocks[number][place % _BLOCK : place % _BLOCK + 1] = [entries[place]]
            copy._size = max(copy._size, place + 1)
        return copy
