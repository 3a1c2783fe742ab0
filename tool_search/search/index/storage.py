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
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

from tool_search.catalog.tool import Tool
from tool_search.search.text.tokenizer import folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChunkedArray",
    "DocumentIds",
    "PersistentMap",
    "Posting",
    "Postings",
    "SlotChange",
    "squared",
    "summed",
]


# A dictionary and a list that are cheap to change without changing them.


_V = TypeVar("_V")
_BLOCK = 256


class PersistentMap(Generic[_V]):
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

    def changed(self, entries: Mapping[str, _V | None]) -> PersistentMap[_V]:
        """A table with other entries; None takes one out."""
        table: PersistentMap[_V] = PersistentMap()
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


class ChunkedArray(Sequence[_V]):
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

    def changed(self, entries: Mapping[int, _V]) -> ChunkedArray[_V]:
        """A list with other entries; places from its length on, without a gap, extend it."""
        copy: ChunkedArray[_V] = ChunkedArray()
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


# Which tool of an index lives in which slot.


class DocumentIds:
    """An immutable table of tools by slot and of slots by name.

    Args:
        tools: What the slots hold; names differ.

    Attributes:
        tools: The tools by slot; None where a slot is free.
    """

    __slots__ = ("_by_name", "_free", "tools")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        ordered: list[Tool] = sorted(tools, key=attrgetter("name"))
        self.tools: ChunkedArray[Tool | None] = ChunkedArray(ordered)
        self._free: tuple[int, ...] = ()
        by_name: dict[str, tuple[int, ...]] = {}
        for slot, tool in self.taken():
            key = folded(tool.name)
            by_name[key] = (*by_name.get(key, ()), slot)
        # DocumentIds by folded name; the few tools that differ in case alone share an entry.
        self._by_name = PersistentMap(by_name)

    def __len__(self) -> int:
        """How many tools there are; free slots do not count."""
        return len(self.tools) - len(self._free)

    def taken(self) -> list[tuple[int, Tool]]:
        """Every tool with its slot, slots ascending."""
        return [(slot, tool) for slot, tool in enumerate(self.tools) if tool is not None]

    def named(self, text: str) -> tuple[int, ...]:
        """The slots of the tools that the text names, exactly or but for case and width."""
        slots = self._by_name.get(folded(text)) or ()
        exact = self._slot(text)
        return slots if exact is None else (exact,)

    def changed(self, *, added: Sequence[Tool], removed: Sequence[str]) -> SlotChange:
        """A table with tools added or replaced and others gone.

        Equal tools and unknown names change nothing.
        """
        new = {tool.name: tool for tool in added}
        left: list[tuple[int, Tool]] = []
        for name in dict.fromkeys((*removed, *new)):
            slot = self._slot(name)
            tool = None if slot is None else self.tools[slot]
            if slot is None or tool is None:
                continue
            if tool == new.get(name):
                del new[name]
            else:
                left.append((slot, tool))
        # In their order: what replaces a server's tools stands in their order mostly too.
        free = [*self._free, *sorted((slot for slot, _ in left), reverse=True)]
        places: dict[int, Tool | None] = {slot: None for slot, _ in left}
        entered: list[tuple[int, Tool]] = []
        end = len(self.tools)
        for tool in sorted(new.values(), key=lambda tool: tool.name):
            slot = free.pop() if free else end
            end = max(end, slot + 1)
            places[slot] = tool
            entered.append((slot, tool))
        slots = DocumentIds()
        slots.tools, slots._free = self.tools.changed(places), tuple(free)
        slots._by_name = self._by_name.changed(self._renamed(left, entered))
        return SlotChange(slots, left, entered)

    def _slot(self, name: str) -> int | None:
        for slot in self._by_name.get(folded(name)) or ():
            tool = self.tools[slot]
            if tool is not None and tool.name == name:
                return slot
        return None

    def _renamed(
        self, left: Iterable[tuple[int, Tool]], entered: Iterable[tuple[int, Tool]]
    ) -> dict[str, tuple[int, ...] | None]:
        entries: dict[str, tuple[int, ...] | None] = {}
        for slot, tool in left:
            key = folded(tool.name)
            others = entries.get(key, self._by_name.get(key)) or ()
            entries[key] = tuple(other for other in others if other != slot) or None
        for slot, tool in entered:
            key = folded(tool.name)
            entries[key] = (*(entries.get(key, self._by_name.get(key)) or ()), slot)
        return entries


class SlotChange(NamedTuple):
    """What became of a table of slots.

    Attributes:
        slots: The new table.
        left: What is no longer in its slot.
        entered: What is new in its slot, which may be one that was left.
    """

    slots: DocumentIds
    left: list[tuple[int, Tool]]
    entered: list[tuple[int, Tool]]


Posting: TypeAlias = "array[float]"
"""A term's numbers, ascending; none is empty."""

_STEPS = 2**24
# So high, doubles are whole steps apart: what is added to it is rounded to the next one.
_HIGH = 2.0**28
# So many changes of a posting wait at most.
_MAX_NOTED = 32
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
        self._terms = PersistentMap(growing)
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
        gone: DocumentIds that are no longer in it.
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
    return noted if depth < _MAX_NOTED else noted.made()


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


@cache
def _has_numpy() -> bool:
    """Return True if numpy, which comes with some of the extras, is installed."""
    try:
        import numpy  # noqa: F401, ICN001, PLC0415 - only large catalogs pay for it
    except ImportError:
        return False
    return True


def squared(postings: Iterable[Posting]) -> Posting:
    """The numbers of several postings one after the other, their impacts squared."""
    together = array("d")
    for posting in postings:
        together += posting
    if len(together) < _MANY_SLOTS or not _has_numpy():
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
        A list, or an array if the index is large and numpy is installed; the sums are the
        same.
    """
    if size < _MANY_SLOTS or not weighted or not _has_numpy():
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
