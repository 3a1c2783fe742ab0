"""Work that the requests of one conversation leave for those that follow.

A request repeats the one before it and adds a little. Whatever writes requests keeps here
how far it came, so that a message is written once and not once a request. Nothing depends
on it: without it, the same is made anew.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["KeptWork"]

_T = TypeVar("_T")
# A turn that moves to a fallback and back finds both providers' work.
_MAX_OF_A_KIND = 2


class KeptWork:
    """What was worked out last, by its kind and by what it depends on.

    >>> kept = KeptWork()
    >>> kept.put("a key", ["work"])
    ['work']
    >>> kept.get(list, "a key"), kept.get(list, "another"), kept.last(list)
    (['work'], None, ['work'])
    """

    def __init__(self) -> None:
        self._entries: dict[type, list[tuple[object, Any]]] = {}

    def get(self, kind: type[_T], key: object) -> _T | None:
        """Return the work of a kind that depends on this and nothing else, or None."""
        entries = self._entries.get(kind, [])
        for place, (known, work) in enumerate(entries):
            if known == key:
                entries.insert(0, entries.pop(place))
                found: _T = work
                return found
        return None

    def last(self, kind: type[_T]) -> _T | None:
        """Return the work of a kind that was used last, whatever it depends on."""
        entries = self._entries.get(kind)
        return entries[0][1] if entries else None

    def put(self, key: object, work: _T) -> _T:
        """Keep a piece of work, and drop the one of its kind that was used least recently."""
        others = [entry for entry in self._entries.get(type(work), []) if entry[0] != key]
        self._entries[type(work)] = [(key, work), *others][:_MAX_OF_A_KIND]
        return work

    def clear(self) -> None:
        """Drop everything: it is made anew when it is needed."""
        self._entries.clear()
