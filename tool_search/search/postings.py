"""An immutable inverted index that is cheap to change: which tools have a term.

A posting has one number for each tool that has the term: the tool's slot, plus
what the term is worth in it, its impact, below 1. Impacts are multiples of
2**-24, so that in a double the sum is exact for every slot below 2**28. That is
half the memory of two arrays, and needs no object a tool.

A posting is cut into blocks of 4,096 slots. An update copies the blocks that it
changes, and shares the others: the tools of one server stand close together.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from tool_search.search.layered import LayeredTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Posting", "Postings", "exact_impact", "summed"]

Posting = tuple["array[float]", ...]
"""Blocks of a term's numbers, all ascending; none is empty."""

_STEPS = 2**24
_BLOCK = 4_096
# Where numpy's start-up cost is worth it.
_MANY_SLOTS = 2_000


class Postings:
    """Postings by term.

    Args:
        documents: A slot and the impacts of its terms each, slots ascending and
            impacts as `exact_impact` makes them.
    """

    __slots__ = ("_terms",)

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, float]]] = ()) -> None:
        growing: dict[str, array[float]] = {}
        for slot, impacts in documents:
            for term, impact in impacts.items():
                if term in growing:
                    growing[term].append(slot + impact)
                else:
                    growing[term] = array("d", (slot + impact,))
        self._terms = LayeredTable({term: _blocks(entries) for term, entries in growing.items()})

    def __len__(self) -> int:
        return len(self._terms)

    def get(self, term: str) -> Posting | None:
        """The slot of each tool that has the term, plus its impact there."""
        return self._terms.get(term)

    def terms(self) -> Iterator[str]:
        """Every term that a document has, in no order."""
        return iter(self._terms)

    def changed(
        self,
        *,
        removed: Iterable[tuple[int, Iterable[str]]],
        added: Iterable[tuple[int, Mapping[str, float]]],
    ) -> Postings:
        """An index with some documents gone and others new.

        Args:
            removed: A slot and its terms each.
            added: A slot and the impacts of its terms each; the slot may be one
                that is removed here.
        """
        gone: dict[str, list[int]] = defaultdict(list)
        new: dict[str, list[float]] = defaultdict(list)
        for slot, words in removed:
            for term in words:
                gone[term].append(slot)
        for slot, impacts in added:
            for term, impact in impacts.items():
                new[term].append(slot + impact)
        postings = Postings()
        postings._terms = self._terms.changed(
            {
                term: _changed(self._terms.get(term) or (), gone.get(term, ()), new.get(term, ()))
                for term in gone.keys() | new.keys()
            }
        )
        return postings


def exact_impact(impact: float) -> float:
    """The impact, from 0 to below 1, as postings can hold it."""
    return int(impact * _STEPS) / _STEPS


def _blocks(entries: array[float]) -> Posting:
    if entries[-1] < _BLOCK:
        return (entries,)
    edges = [bisect_left(entries, edge) for edge in range(0, int(entries[-1]) + _BLOCK, _BLOCK)]
    return tuple(
        entries[start:end] for start, end in pairwise([*edges, len(entries)]) if start < end
    )


def _changed(old: Posting, gone: Sequence[int], new: Sequence[float]) -> Posting | None:
    blocks = {int(block[0]) // _BLOCK: block for block in old}
    for number in {int(entry) // _BLOCK for entry in (*gone, *new)}:
        start, end = number * _BLOCK, (number + 1) * _BLOCK
        blocks[number] = _changed_block(
            blocks.get(number, array("d")),
            {slot for slot in gone if start <= slot < end},
            [entry for entry in new if start <= entry < end],
        )
    return tuple(blocks[number] for number in sorted(blocks) if blocks[number]) or None


def _changed_block(old: array[float], gone: set[int], new: Sequence[float]) -> array[float]:
    block = old[:]
    for entry in new:
        slot = int(entry)
        place = bisect_left(block, slot)
        # A tool that took over a slot mostly shares the words of the one before.
        if slot in gone:
            block[place] = entry
            gone.remove(slot)
        else:
            block.insert(place, entry)
    for slot in gone:
        del block[bisect_left(block, slot)]
    return block


def summed(
    weighted: Sequence[tuple[Posting, float]], size: int
) -> list[float] | NDArray[np.float64]:
    """For each slot the sum of impact * weight over the postings that have it.

    Args:
        weighted: Postings and what each weighs.
        size: How many slots there are.

    Returns:
        A list for a small index, an array for a large one, with the same sums.
    """
    if size < _MANY_SLOTS or not weighted:
        return _summed_in_python(weighted, size)
    return _summed_by_numpy(weighted, size)


def _summed_in_python(weighted: Sequence[tuple[Posting, float]], size: int) -> list[float]:
    sums = [0.0] * size
    for posting, weight in weighted:
        for entry in chain.from_iterable(posting):
            slot = int(entry)
            sums[slot] += (entry - slot) * weight
    return sums


def _summed_by_numpy(weighted: Sequence[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    blocks = [(block, weight) for posting, weight in weighted for block in posting]
    entries = np.concatenate([np.frombuffer(block) for block, _ in blocks])
    slots = entries.astype(np.intp)
    entries -= slots
    entries *= np.repeat([weight for _, weight in blocks], [len(block) for block, _ in blocks])
    # One pass in C, adding in the order of the postings as Python does.
    return np.bincount(slots, entries, minlength=size).astype(np.float64, copy=False)
