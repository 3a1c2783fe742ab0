"""An immutable inverted index that is cheap to change: which tools have a term.

A posting is one number for each tool that has the term: the tool's slot, plus
what the term is worth in it, its impact, below 1. Impacts are multiples of
2**-24, so that in a double the sum is exact for every slot below 2**28. One
array a term is half the memory of two, and needs no object a tool.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tool_search.search.layered import LayeredTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Postings", "summed"]

Weighted = Sequence[tuple["array[float]", float]]

_STEPS = 2**24
# Where numpy's start-up cost is worth it.
_MANY_SLOTS = 2_000


class Postings:
    """Postings by term.

    Args:
        documents: A slot and the impacts of its terms each, slots ascending.
    """

    __slots__ = ("_terms",)

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, float]]] = ()) -> None:
        terms: dict[str, array[float]] = {}
        for slot, impacts in documents:
            for term, impact in impacts.items():
                posting = terms.get(term)
                if posting is None:
                    terms[term] = array("d", (slot + _exact(impact),))
                else:
                    posting.append(slot + _exact(impact))
        self._terms = LayeredTable(terms)

    def __len__(self) -> int:
        return len(self._terms)

    def get(self, term: str) -> array[float] | None:
        """The slot of each tool that has the term, plus its impact there, ascending."""
        return self._terms.get(term)

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
                new[term].append(slot + _exact(impact))
        postings = Postings()
        postings._terms = self._terms.changed(
            {
                term: _changed(self._terms.get(term), gone.get(term, ()), new.get(term, ()))
                for term in gone.keys() | new.keys()
            }
        )
        return postings


def _exact(impact: float) -> float:
    return min(int(impact * _STEPS), _STEPS - 1) / _STEPS


def _changed(
    old: array[float] | None, gone: Sequence[int], new: Sequence[float]
) -> array[float] | None:
    posting = old[:] if old else array("d")
    for slot in gone:
        del posting[bisect_left(posting, slot)]
    for entry in new:
        posting.insert(bisect_left(posting, entry), entry)
    return posting or None


def summed(weighted: Weighted, size: int) -> list[float] | NDArray[np.float64]:
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


def _summed_in_python(weighted: Weighted, size: int) -> list[float]:
    sums = [0.0] * size
    for posting, weight in weighted:
        for entry in posting:
            slot = int(entry)
            sums[slot] += (entry - slot) * weight
    return sums


def _summed_by_numpy(weighted: Weighted, size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.concatenate([np.frombuffer(posting) for posting, _ in weighted])
    slots = entries.astype(np.intp)
    entries -= slots
    entries *= np.repeat([weight for _, weight in weighted], [len(p) for p, _ in weighted])
    # One pass in C, adding in the order of the postings as Python does.
    return np.bincount(slots, entries, minlength=size).astype(np.float64, copy=False)
