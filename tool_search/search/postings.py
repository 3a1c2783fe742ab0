"""An immutable inverted index that is cheap to change: which tools have a term.

A tool lives in a slot, a small number that is used again when the tool goes.
Changing an index copies its tables of references and the lists of the terms
that changed; every other list is shared between the old index and the new one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Posting", "Postings"]


class Posting(NamedTuple):
    """The tools that have one term.

    Attributes:
        slots: The tools' slots, ascending; unsigned 32-bit.
        impacts: What the term is worth in each of them; 32-bit floats.
    """

    slots: array[int]
    impacts: array[float]


class Postings:
    """Postings by term.

    Args:
        terms: The postings; taken over, not copied.
    """

    __slots__ = ("_terms",)

    def __init__(self, terms: dict[str, Posting] | None = None) -> None:
        self._terms = terms or {}

    def __len__(self) -> int:
        return len(self._terms)

    def get(self, term: str) -> Posting | None:
        """The term's posting, or None where no tool has it."""
        return self._terms.get(term)

    @classmethod
    def built(cls, documents: Iterable[tuple[int, Mapping[str, float]]]) -> Postings:
        """An index of documents.

        Args:
            documents: A slot and the impacts of its terms each, slots ascending.
        """
        terms: dict[str, Posting] = {}
        for slot, impacts in documents:
            for term, impact in impacts.items():
                posting = terms.get(term)
                if posting is None:
                    terms[term] = posting = Posting(array("I"), array("f"))
                posting.slots.append(slot)
                posting.impacts.append(impact)
        return cls(terms)

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
        new: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for slot, words in removed:
            for term in words:
                gone[term].append(slot)
        for slot, impacts in added:
            for term, impact in impacts.items():
                new[term].append((slot, impact))
        terms = self._terms.copy()
        for term in gone.keys() | new.keys():
            posting = _changed(terms.get(term), gone.get(term, ()), new.get(term, ()))
            if posting.slots:
                terms[term] = posting
            else:
                del terms[term]
        return Postings(terms)


def _changed(old: Posting | None, gone: Sequence[int], new: Sequence[tuple[int, float]]) -> Posting:
    slots = old.slots[:] if old else array("I")
    impacts = old.impacts[:] if old else array("f")
    for slot in gone:
        place = bisect_left(slots, slot)
        del slots[place]
        del impacts[place]
    for slot, impact in new:
        place = bisect_left(slots, slot)
        slots.insert(place, slot)
        impacts.insert(place, impact)
    return Posting(slots, impacts)
