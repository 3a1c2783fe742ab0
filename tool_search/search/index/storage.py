"""An immutable inverted index that is cheap to change: which tools have a term.

A posting has one number for each tool that has the term: the tool's slot, plus
what the term is worth in it, its impact, below 1. Impacts are multiples of
2**-24, so that in a double the sum is exact for every slot below 2**28. That is
half the memory of two arrays, and needs no object a tool.

An update shares the postings that it does not change, and only notes of the others
what is gone and what is new: a posting is made when a query asks for it. Nobody asks
for most words of a server before it comes or goes again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from tool_search.search.index.layered import LayeredTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Posting", "Postings", "squared", "summed"]

Posting: TypeAlias = "array[float]"
"""A term's numbers, ascending; none is empty."""

_STEPS = 2**24
# So high, doubles are whole steps apart: what is added to it is rounded to the next one.
_HIGH = 2.0**28
# So many changes of a posting wait at most.
_MOST_NOTED = 32
# Where numpy's start-up cost is worth it.
_MANY_SLOTS = 2_000


class Postings:
    """Postings by term.

    Args:
        documents: A slot and the impacts of its terms each, slots ascending, impacts
            from 0 to 1 - 2**-24.
    """

    __slots__ = ("_terms", "get")

    get: Callable[[str], Posting | None]
    """Gives the slot of each tool that has a term, plus its impact there."""

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, float]]] = ()) -> None:
        growing: dict[str, Posting | _Noted] = {}
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
        # Nothing is noted yet.
        self.get = cast("Callable[[str], Posting | None]", growing.get)

    def __len__(self) -> int:
        return len(self._terms)

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
        changes: dict[str, Posting | _Noted | None] = {}
        for term, slots in gone.items():
            changes[term] = _noted(find(term), slots, new.pop(term, ()))
        for term, entries in new.items():
            changes[term] = _noted(find(term), (), entries)
        postings = Postings()
        postings._terms = self._terms.changed(changes)
        postings.get = postings._made
        return postings

    def _made(self, term: str) -> Posting | None:
        """`get` of an index that was changed."""
        found = self._terms.get(term)
        if not isinstance(found, _Noted):
            return found
        posting = found.made()
        # Two threads may both do this, and make the same.
        self._terms.put_equal(term, posting)
        return posting


class _Noted(NamedTuple):
    """A posting with a change that was not made yet.

    Attributes:
        before: What is changed.
        gone: Slots that are no longer in it.
        new: Numbers that are new in it, some of them in slots that are gone.
        size: How many numbers it has, once made; at least one.
        depth: How many changes wait.
    """

    before: Posting | _Noted
    gone: Sequence[int]
    new: Sequence[float]
    size: int
    depth: int

    def made(self) -> Posting:
        """The posting with all changes."""
        waiting = [self]
        before = self.before
        while isinstance(before, _Noted):
            waiting.append(before)
            before = before.before
        posting = before[:]
        while waiting:
            noted = waiting.pop()
            _change(posting, noted.gone, noted.new)
        return posting


def _noted(
    old: Posting | _Noted | None, gone: Sequence[int], new: Sequence[float]
) -> Posting | _Noted | None:
    """A posting with slots taken out, then numbers put in; None where nothing is left."""
    if old is None:
        return array("d", sorted(new))
    length, depth = (old.size, old.depth) if isinstance(old, _Noted) else (len(old), 0)
    size = length - len(gone) + len(new)
    if not size:
        return None
    noted = _Noted(old, gone, new, size, depth + 1)
    return noted if depth < _MOST_NOTED else noted.made()


def _change(posting: Posting, gone: Iterable[int], new: Iterable[float]) -> None:
    """Takes some slots out, and puts numbers in others or in the same ones."""
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
