"""The protocol of a vector store, and the store in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tool_search.search.index.storage import ChunkedArray, PersistentMap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ExactVectorStore", "VectorStore"]

_BLOCK = 1_024


class VectorStore(Protocol):
    """Vectors by id, searched by similarity.

    A store is a snapshot, as an index is. One that changes in place instead returns itself
    from `updated`; then only the newest index over it may be used.
    """

    def updated(
        self, *, added: Mapping[str, NDArray[np.float32]], removed: Iterable[str]
    ) -> VectorStore:
        """Return a store with vectors added or replaced and others removed.

        Unknown ids are ignored.
        """
        ...

    def search(self, vector: NDArray[np.float32], *, limit: int) -> Sequence[tuple[str, float]]:
        """Return the ids of the most similar vectors with their similarity.

        Args:
            vector: A vector of unit length.
            limit: Maximum number of results.

        Returns:
            Highest similarity first, ties by id; a similarity is the product of two unit
            vectors, from -1 to 1.
        """
        ...


class ExactVectorStore:
    """A store in memory that compares every vector.

    A vector takes four bytes for each dimension. Blocks are shared between stores.
    """

    __slots__ = ("_blocks", "_free", "_ids", "_places")

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.float32]] = []
        self._ids: ChunkedArray[str | None] = ChunkedArray()
        self._places: PersistentMap[int] = PersistentMap()
        self._free: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._ids) - len(self._free)

    def updated(
        self, *, added: Mapping[str, NDArray[np.float32]], removed: Iterable[str]
    ) -> ExactVectorStore:
        """Return a store with other vectors; see `VectorStore.updated`."""
        gone = [name for name in dict.fromkeys(removed) if name not in added]
        left = [(name, place) for name in gone if (place := self._places.get(name)) is not None]
        free = [*self._free, *(place for _, place in left)]
        places: dict[str, int | None] = {name: None for name, _ in left}
        ids: dict[int, str | None] = {place: None for _, place in left}
        end = len(self._ids)
        rows: dict[int, NDArray[np.float32] | None] = {place: None for _, place in left}
        for name, vector in added.items():
            place = self._places.get(name)
            if place is None:
                place = free.pop() if free else end
                end = max(end, place + 1)
            places[name], ids[place], rows[place] = place, name, vector
        store = ExactVectorStore()
        store._blocks = _change_blocks(self._blocks, rows)
        store._ids, store._places = self._ids.changed(ids), self._places.changed(places)
        store._free = tuple(free)
        return store

    def place(self, name: str) -> int:
        """Return the place of an id's vector in `similarities`.

        Raises:
            KeyError: The id is unknown.
        """
        place = self._places.get(name)
        if place is None:
            raise KeyError(name)
        return place

    def rows(self, places: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors at some places."""
        import numpy as np  # noqa: PLC0415 - only who asks pays for it

        return np.concatenate(self._blocks)[places]

    def similarities(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarity of every vector, by place; 0 at a free place."""
        import numpy as np  # noqa: PLC0415 - only who asks pays for it

        if not self._blocks:
            return np.zeros(0, np.float32)
        # einsum and not BLAS, whose threads take 100 times as long where cores are busy.
        found = [np.einsum("ij,j->i", block, vector) for block in self._blocks]
        return np.concatenate(found)[: len(self._ids)]

    def search(self, vector: NDArray[np.float32], *, limit: int) -> list[tuple[str, float]]:
        """Return the most similar vectors; see `VectorStore.search`."""
        values = self.similarities(vector)
        if limit <= 0 or not len(self):
            return []
        taken = [(name, place) for place, name in enumerate(self._ids) if name is not None]
        if len(values) > limit + len(self._free):
            # All that may be among the best, and ties with the last of them.
            ordered = values.copy()
            ordered.partition(len(ordered) - limit - len(self._free))
            least = ordered[-limit - len(self._free)]
            taken = [(name, place) for name, place in taken if values[place] >= least]
        found = [(name, float(values[place])) for name, place in taken]
        return sorted(found, key=lambda item: (-item[1], item[0]))[:limit]


def _change_blocks(
    blocks: Sequence[NDArray[np.float32]], rows: Mapping[int, NDArray[np.float32] | None]
) -> list[NDArray[np.float32]]:
    import numpy as np  # noqa: PLC0415 - only who asks pays for it

    changed, ends = list(blocks), dict[int, int]()
    for place, vector in rows.items():
        number = place // _BLOCK
        end = place % _BLOCK + 1 if vector is not None else 0
        ends[number] = max(end, ends.get(number, 0))
    dimensions = next((len(vector) for vector in rows.values() if vector is not None), 0)
    for number, end in sorted(ends.items()):
        if number == len(changed):
            changed.append(np.zeros((end, dimensions), np.float32))
            continue
        block = changed[number]
        new = np.zeros((max(end - len(block), 0), block.shape[1]), np.float32)
        changed[number] = np.concatenate((block, new))
    for place, vector in rows.items():
        changed[place // _BLOCK][place % _BLOCK] = 0.0 if vector is None else vector
    return changed
