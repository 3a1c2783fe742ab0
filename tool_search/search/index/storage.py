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
from tool_search.search.text.tokenizer import normalized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChunkedArray",
    "DocumentChange",
    "DocumentIds",
    "PersistentMap",
    "Posting",
    "Postings",
    "square_impacts",
    "sum_impacts",
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

    def replace_equal(self, key: str, entry: _V) -> None:
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

    def pick(self, places: Iterable[int]) -> list[_V]:
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
        for doc_id, tool in self.taken():
            key = normalized(tool.name)
            by_name[key] = (*by_name.get(key, ()), doc_id)
        # DocumentIds by folded name; the few tools that differ in case alone share an entry.
        self._by_name = PersistentMap(by_name)

    def __len__(self) -> int:
        """How many tools there are; free slots do not count."""
        return len(self.tools) - len(self._free)

    def taken(self) -> list[tuple[int, Tool]]:
        """Every tool with its slot, slots ascending."""
        return [(doc_id, tool) for doc_id, tool in enumerate(self.tools) if tool is not None]

    def named(self, text: str) -> tuple[int, ...]:
        """The slots of the tools that the text names, exactly or but for case and width."""
        doc_ids = self._by_name.get(normalized(text)) or ()
        exact = self._doc_id(text)
        return doc_ids if exact is None else (exact,)

    def changed(self, *, added: Sequence[Tool], removed: Sequence[str]) -> DocumentChange:
        """A table with tools added or replaced and others gone.

        Equal tools and unknown names change nothing.
        """
        new = {tool.name: tool for tool in added}
        left: list[tuple[int, Tool]] = []
        for name in dict.fromkeys((*removed, *new)):
            doc_id = self._doc_id(name)
            tool = None if doc_id is None else self.tools[doc_id]
            if doc_id is None or tool is None:
                continue
            if tool == new.get(name):
                del new[name]
            else:
                left.append((doc_id, tool))
        # In their order: what replaces a server's tools stands in their order mostly too.
        free = [*self._free, *sorted((doc_id for doc_id, _ in left), reverse=True)]
        places: dict[int, Tool | None] = {doc_id: None for doc_id, _ in left}
        entered: list[tuple[int, Tool]] = []
        end = len(self.tools)
        for tool in sorted(new.values(), key=lambda tool: tool.name):
            doc_id = free.pop() if free else end
            end = max(end, doc_id + 1)
            places[doc_id] = tool
            entered.append((doc_id, tool))
        doc_ids = DocumentIds()
        doc_ids.tools, doc_ids._free = self.tools.changed(places), tuple(free)
        doc_ids._by_name = self._by_name.changed(self._renamed(left, entered))
        return DocumentChange(doc_ids, left, entered)

    def _doc_id(self, name: str) -> int | None:
        for doc_id in self._by_name.get(normalized(name)) or ():
            tool = self.tools[doc_id]
            if tool is not None and tool.name == name:
                return doc_id
        return None

    def _renamed(
        self, left: Iterable[tuple[int, Tool]], entered: Iterable[tuple[int, Tool]]
    ) -> dict[str, tuple[int, ...] | None]:
        entries: dict[str, tuple[int, ...] | None] = {}
        for doc_id, tool in left:
            key = normalized(tool.name)
            others = entries.get(key, self._by_name.get(key)) or ()
            entries[key] = tuple(other for other in others if other != doc_id) or None
        for doc_id, tool in entered:
            key = normalized(tool.name)
            entries[key] = (*(entries.get(key, self._by_name.get(key)) or ()), doc_id)
        return entries


class DocumentChange(NamedTuple):
    """What became of a table of slots.

    Attributes:
        slots: The new table.
        left: What is no longer in its slot.
        entered: What is new in its slot, which may be one that was left.
    """

    doc_ids: DocumentIds
    left: list[tuple[int, Tool]]
    entered: list[tuple[int, Tool]]


Posting: TypeAlias = "array[float]"
"""A term's numbers, ascending; none is empty."""

_STEPS = 2**24
# So high, doubles are whole steps apart: what is added to it is rounded to the next one.
_HIGH = 2.0**28
# So many changes of a posting wait at most.
_MAX_PENDING = 32
# Where numpy's start-up cost is worth it.
_MANY_DOCUMENTS = 2_000


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
        growing: dict[str, Posting | _PendingChange] = {}
        added: dict[str, Callable[[float], None]] = {}
        for doc_id, impacts in documents:
            for term, impact in impacts.items():
                entry = doc_id + (impact + _HIGH - _HIGH)
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
        for doc_id, words in removed:
            for term in words:
                gone[term].append(doc_id)
        for doc_id, impacts in added:
            for term, impact in impacts.items():
                new[term].append(doc_id + (impact + _HIGH - _HIGH))
        find = self._terms.get
        changes: dict[str, Posting | _PendingChange | None] = {}
        for term, doc_ids in gone.items():
            changes[term] = _with_change(find(term), doc_ids, new.pop(term, ()))
        for term, entries in new.items():
            changes[term] = _with_change(find(term), (), entries)
        postings = Postings()
        postings._terms = self._terms.changed(changes)
        postings.get = postings._get_changed
        return postings

    def _get_changed(self, term: str) -> Posting | None:
        """`get` of an index that was changed."""
        found = self._terms.get(term)
        if not isinstance(found, _PendingChange):
            return found
        posting = found.apply()
        # Two threads may both do this, and make the same.
        self._terms.replace_equal(term, posting)
        return posting


class _PendingChange(NamedTuple):
    """A posting with a change that was not made yet.

    Attributes:
        before: What is changed.
        gone: DocumentIds that are no longer in it.
        new: Numbers that are new in it, some of them in slots that are gone.
        size: How many numbers it has, once made; at least one.
        depth: How many changes wait.
    """

    before: Posting | _PendingChange
    gone: Sequence[int]
    new: Sequence[float]
    size: int
    depth: int

    def apply(self) -> Posting:
        """The posting with all changes."""
        waiting = [self]
        before = self.before
        while isinstance(before, _PendingChange):
            waiting.append(before)
            before = before.before
        posting = before[:]
        while waiting:
            noted = waiting.pop()
            _change(posting, noted.gone, noted.new)
        return posting


def _with_change(
    old: Posting | _PendingChange | None, gone: Sequence[int], new: Sequence[float]
) -> Posting | _PendingChange | None:
    """A posting with slots taken out, then numbers put in; None where nothing is left."""
    if old is None:
        return array("d", sorted(new))
    length, depth = (old.size, old.depth) if isinstance(old, _PendingChange) else (len(old), 0)
    size = length - len(gone) + len(new)
    if not size:
        return None
    noted = _PendingChange(old, gone, new, size, depth + 1)
    return noted if depth < _MAX_PENDING else noted.apply()


def _change(posting: Posting, gone: Iterable[int], new: Iterable[float]) -> None:
    """Takes some slots out, and puts numbers in others or in the same ones."""
    left = set(gone)
    for entry in new:
        doc_id = int(entry)
        place = bisect_left(posting, doc_id)
        # A tool that took over a slot mostly shares the words of the one before.
        if doc_id in left:
            left.remove(doc_id)
            posting[place] = entry
        else:
            posting.insert(place, entry)
    for doc_id in left:
        del posting[bisect_left(posting, doc_id)]


@cache
def _has_numpy() -> bool:
    """Return True if numpy, which comes with some of the extras, is installed."""
    try:
        import numpy  # noqa: F401, ICN001, PLC0415 - only large catalogs pay for it
    except ImportError:
        return False
    return True


def square_impacts(postings: Iterable[Posting]) -> Posting:
    """The numbers of several postings one after the other, their impacts squared."""
    together = array("d")
    for posting in postings:
        together += posting
    if len(together) < _MANY_DOCUMENTS or not _has_numpy():
        doc_ids = map(int, together)
        pairs = (
            (doc_id, (entry - doc_id) ** 2) for doc_id, entry in zip(doc_ids, together, strict=True)
        )
        return array("d", [doc_id + int(square * _STEPS) / _STEPS for doc_id, square in pairs])
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.frombuffer(together)
    whole = np.floor(entries)
    squares = np.floor((entries - whole) ** 2 * _STEPS) / _STEPS
    return array("d", (whole + squares).tobytes())


def sum_impacts(
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
    if size < _MANY_DOCUMENTS or not weighted or not _has_numpy():
        return _sum_in_python(weighted, size)
    return _sum_by_numpy(weighted, size)


def _sum_in_python(weighted: Sequence[tuple[Posting, float]], size: int) -> list[float]:
    sums = [0.0] * size
    for posting, weight in weighted:
        for entry in posting:
            doc_id = int(entry)
            sums[doc_id] += (entry - doc_id) * weight
    return sums


def _sum_by_numpy(weighted: Sequence[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.concatenate([np.frombuffer(posting) for posting, _ in weighted])
    doc_ids = entries.astype(np.intp)
    entries -= doc_ids
    entries *= np.repeat([weight for _, weight in weighted], [len(p) for p, _ in weighted])
    # One pass in C, adding in the order of the postings as Python does.
    return np.bincount(doc_ids, entries, minlength=size).astype(np.float64, copy=False)
