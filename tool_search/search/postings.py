"""An immutable inverted index that is cheap to change: which tools have a term.

A posting has one number for each tool that has the term: the tool's slot, plus
what the term is worth in it, its impact, below 1. Impacts are multiples of
2**-24, so that in a double the sum is exact for every slot below 2**28. That is
half the memory of two arrays, and needs no object a tool.

An update copies the postings that it changes, and shares the others: even a
posting of 50,000 tools is copied in less time than a definition is read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tool_search.search.layered import LayeredTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Posting", "Postings", "squared", "summed"]

Posting: TypeAlias = "array[float]"
"""A term's numbers, ascending; none is empty."""

_STEPS = 2**24
# So high, doubles are whole steps apart: what is added to it is rounded to the next one.
_HIGH = 2.0**28
# Where numpy's start-up cost is worth it.
_MANY_SLOTS = 2_000


class Postings:
    """Postings by term.

    Args:
        documents: A slot and the impacts of its terms each, slots ascending, impacts
            from 0 to below 1.
    """

    __slots__ = ("_terms",)

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, float]]] = ()) -> None:
        growing: dict[str, Posting] = {}
        added: dict[str, Callable[[float], None]] = {}
        for slot, impacts in documents:
            for term, impact in impacts.items():
                entry = slot + (impact + _HIGH - _HIGH)
                add = added.get(term)
                if add is None:
                    posting = growing[term] = array("d", (entry,))
                    added[term] = posting.append
                else:
                    add(entry)
        self._terms = LayeredTable(growing)

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def get(self) -> Callable[[str], Posting | None]:
        """Gives the slot of each tool that has a term, plus its impact there."""
        return self._terms.get

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
        gone: defaultdict[str, list[int]] = defaultdict(list)
        new: defaultdict[str, list[float]] = defaultdict(list)
        for slot, words in removed:
            for term in words:
                gone[term].append(slot)
        for slot, impacts in added:
            for term, impact in impacts.items():
                new[term].append(slot + (impact + _HIGH - _HIGH))
        find = self._terms.get
        changes: dict[str, Posting | None] = {}
        for term, slots in gone.items():
            changes[term] = _changed(find(term) or array("d"), slots, new.pop(term, ()))
        for term, entries in new.items():
            changes[term] = _changed(find(term) or array("d"), (), entries)
        postings = Postings()
        postings._terms = self._terms.changed(changes)
        return postings


def _changed(old: Posting, gone: Sequence[int], new: Sequence[float]) -> Posting | None:
    """A posting with some slots taken out, and numbers in others or in the same ones."""
    # Most words are those of few tools.
    if len(gone) == len(old):
        return array("d", sorted(new)) if new else None
    posting = old[:]
    left = set(gone)
    for entry in new:
        slot = int(entry)
        place = bisect_left(posting, slot)
        # A tool that took over a slot mostly shares the words of the one before.
        if slot in left:
            left.remove(slot)
            posting[place] = entry
        else:
            posting.insert(place, entry)
    for slot in left:
        del posting[bisect_left(posting, slot)]
    return posting


def squared(postings: Iterable[Posting]) -> Posting:
    """The numbers of several postings one after the other, their impacts squared."""
    together = array("d")
    for posting in postings:
        together += posting
    if len(together) < _MANY_SLOTS:
        slots = map(int, together)
        pairs = ((slot, (entry - slot) ** 2) for slot, entry in zip(slots, together, strict=True))
        return array("d", [slot + int(square * _STEPS) / _STEPS for slot, square in pairs])
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.frombuffer(together)
    whole = np.floor(entries)
    squares = np.floor((entries - whole) ** 2 * _STEPS) / _STEPS
    return array("d", (whole + squares).tobytes())


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
        for entry in posting:
            slot = int(entry)
            sums[slot] += (entry - slot) * weight
    return sums


def _summed_by_numpy(weighted: Sequence[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.concatenate([np.frombuffer(posting) for posting, _ in weighted])
    slots = entries.astype(np.intp)
    entries -= slots
    entries *= np.repeat([weight for _, weight in weighted], [len(p) for p, _ in weighted])
    # One pass in C, adding in the order of the postings as Python does.
    return np.bincount(slots, entries, minlength=size).astype(np.float64, copy=False)
