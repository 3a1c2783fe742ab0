"""An immutable inverted index that is cheap to change.

A posting has one number for each tool that has the term: the tool's document id plus the
term's impact, which is below 1. Impacts are multiples of 2**-24, so the sum is exact in
a double for every id below 2**28. This takes half the memory of two arrays, and no
object for each tool.

An update shares the postings that it does not change, and only records the changes of
the others: a posting is rebuilt when a query asks for it. Most words of a server are
never asked for before the server comes or goes again.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

from tool_search.core.catalog.tool import Tool
from tool_search.search.text.tokenizer import normalized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "HIGH",
    "ChunkedArray",
    "DocumentChange",
    "DocumentIds",
    "FlatPostings",
    "PersistentMap",
    "Posting",
    "Postings",
    "drop_lone",
    "entries_of",
    "has_numpy",
    "sum_impacts",
    "uses_numpy",
]


_V = TypeVar("_V")
_BLOCK = 256


class PersistentMap(Generic[_V]):
    """An immutable map by string that is cheap to change.

    It is a large dictionary, and a small one of changes over it; maps share both. A change
    copies the small dictionary alone, until it has grown to a sixteenth of the large one;
    then the two are merged.

    Args:
        entries: The content of the map; taken over, not copied.
    """

    __slots__ = ("_base", "_changes", "get")

    get: Callable[[str], _V | None]
    """Returns the entry of a key, or None."""

    def __init__(self, entries: dict[str, _V] | None = None) -> None:
        self._base: dict[str, _V] = {} if entries is None else entries
        self._changes: dict[str, _V | None] = {}
        # A map without changes is as fast as its dictionary.
        self.get = self._base.get

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _get(self, key: str) -> _V | None:
        if key in self._changes:
            return self._changes[key]
        return self._base.get(key)

    def __iter__(self) -> Iterator[str]:
        if not self._changes:
            yield from self._base
            return
        for key in self._base:
            if key not in self._changes:
                yield key
        for key, entry in self._changes.items():
            if entry is not None:
                yield key

    def replace_equal(self, key: str, entry: _V) -> None:
        """Replace an entry by one of equal meaning, in every map that shares it."""
        (self._changes if key in self._changes else self._base)[key] = entry

    def changed(self, entries: Mapping[str, _V | None]) -> PersistentMap[_V]:
        """Return a map with other entries; None removes one."""
        table: PersistentMap[_V] = PersistentMap()
        table._base, table._changes = self._base, self._changes.copy()
        table._changes.update(entries)
        if len(table._changes) > len(self._base) // 16:
            # Copying a whole dictionary is as fast as copying a list of the same length.
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
    """An immutable list; a changed copy shares all chunks but the changed ones.

    A plain copy would touch every entry to count its references.

    Args:
        entries: The content of the list.
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
        """Return the entries at these places."""
        blocks = self._blocks
        return [blocks[place // _BLOCK][place % _BLOCK] for place in places]

    def replace_equal(self, place: int, entry: _V) -> None:
        """Replace an entry by one of equal meaning, in every list that shares it."""
        self._blocks[place // _BLOCK][place % _BLOCK] = entry

    def changed(self, entries: Mapping[int, _V]) -> ChunkedArray[_V]:
        """Return a list with other entries.

        Places from the list's length on, without a gap, extend it.
        """
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


class DocumentIds:
    """An immutable table of tools by document id, and of ids by tool name.

    Args:
        tools: The tools; names differ. Ids are in name order.

    Attributes:
        tools: The tools by document id; None for a free id.
    """

    __slots__ = ("_by_name", "_free", "tools")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        ordered: list[Tool] = sorted(tools, key=attrgetter("name"))
        self.tools: ChunkedArray[Tool | None] = ChunkedArray(ordered)
        self._free: tuple[int, ...] = ()
        names = [normalized(tool.name) for tool in ordered]
        by_name: dict[str, tuple[int, ...]] = {}
        for doc_id, name in enumerate(names):
            by_name[name] = (*by_name[name], doc_id) if name in by_name else (doc_id,)
        # The few tools whose names differ in case alone share an entry.
        self._by_name = PersistentMap(by_name)

    def __len__(self) -> int:
        """Return the number of tools; free ids do not count."""
        return len(self.tools) - len(self._free)

    def taken(self) -> list[tuple[int, Tool]]:
        """Return every tool with its document id, ids ascending."""
        return [(doc_id, tool) for doc_id, tool in enumerate(self.tools) if tool is not None]

    def named(self, text: str) -> tuple[int, ...]:
        """Return the ids of the tools that a text names.

        The tool with exactly this name, or else those that differ in case and width alone.
        """
        doc_ids = self._by_name.get(normalized(text)) or ()
        exact = self._doc_id(text) if doc_ids else None
        return doc_ids if exact is None else (exact,)

    def changed(self, *, added: Sequence[Tool], removed: Sequence[str]) -> DocumentChange:
        """Return a table with tools added or replaced and others removed.

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
        # Ascending: the tools that replace those of a server are mostly in the same order.
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
        doc_ids._by_name = self._by_name.changed(self._rename(left, entered))
        return DocumentChange(doc_ids, left, entered)

    def _doc_id(self, name: str) -> int | None:
        for doc_id in self._by_name.get(normalized(name)) or ():
            tool = self.tools[doc_id]
            if tool is not None and tool.name == name:
                return doc_id
        return None

    def _rename(
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
    """The difference between two tables of document ids.

    Attributes:
        doc_ids: The new table.
        left: The tools that lost their ids.
        entered: The tools that got ids; an id may be one that another tool lost.
    """

    doc_ids: DocumentIds
    left: list[tuple[int, Tool]]
    entered: list[tuple[int, Tool]]


Posting: TypeAlias = "array[float] | memoryview[float]"
"""A term's numbers, ascending; none is empty."""


class FlatPostings(NamedTuple):
    """The postings of many terms, one after another, as a file has them.

    Attributes:
        terms: The terms.
        starts: The place of each term's first entry; last, the number of entries.
        entries: The entries.
    """

    terms: Sequence[str]
    starts: Sequence[int]
    entries: memoryview[float]


# At this size doubles are one step of 2**-24 apart.
HIGH = 2.0**28
"""Adding and subtracting it rounds an impact to steps."""
# The number of changes of a posting that may wait.
_MAX_PENDING = 32
# From here on numpy is faster despite the cost of loading it; if it is there, from a few on.
_MANY_DOCUMENTS = 2_000
_FEW = 100
_MANY_ENTRIES = 60


class Postings:
    """Postings by term.

    Args:
        documents: Pairs of a document id and the impacts of its terms, ids ascending,
            impacts from 0 to 1 - 2**-24.
    """

    __slots__ = ("_entries", "_starts", "_terms", "get")

    get: Callable[[str], Posting | None]
    """Returns the posting of a term, or None if no document has it."""

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, float]]] = ()) -> None:
        growing: dict[str, _Stored] = {}
        added: dict[str, Callable[[float], None]] = {}
        for doc_id, impacts in documents:
            for term, impact in impacts.items():
                # Most terms are known: an exception is rare, and `try` costs nothing.
                try:
                    added[term](doc_id + (impact + HIGH - HIGH))
                except KeyError:
                    posting = array("d", (doc_id + (impact + HIGH - HIGH),))
                    growing[term] = posting
                    added[term] = posting.append
        self._terms = PersistentMap(growing)
        self._starts: Sequence[int] = ()
        self._entries: memoryview[float] = memoryview(array("d"))
        # No change is pending yet.
        self.get = cast("Callable[[str], Posting | None]", growing.get)

    @classmethod
    def of_flat(cls, flat: FlatPostings) -> Postings:
        """Return an index of these postings, which are not unpacked."""
        made = cls()
        numbered: dict[str, _Stored] = dict(zip(flat.terms, range(len(flat.terms)), strict=True))
        made._terms = PersistentMap(numbered)
        made._starts, made._entries = flat.starts, flat.entries
        made.get = made._get_stored
        return made

    def flat(self) -> FlatPostings:
        """Return every posting, one after another."""
        postings = self.by_term()
        starts = array("q", accumulate(map(len, postings.values()), initial=0))
        entries = memoryview(b"".join(postings.values())).cast("d")
        return FlatPostings(tuple(postings), starts, entries)

    def by_term(self) -> dict[str, Posting]:
        """Return every posting, by term."""
        return {term: posting for term in self._terms if (posting := self.get(term)) is not None}

    def __len__(self) -> int:
        return len(self._terms)

    def terms(self) -> Iterator[str]:
        """Return every term that a document has, in no order."""
        return iter(self._terms)

    def changed(
        self,
        *,
        removed: Iterable[tuple[int, Iterable[str]]],
        added: Iterable[tuple[int, Mapping[str, float]]],
    ) -> Postings:
        """Return an index with some documents removed and others added.

        Args:
            removed: Pairs of a document id and its terms.
            added: Pairs of a document id and the impacts of its terms; the id may be one that
                is removed here.
        """
        gone: defaultdict[str, list[int]] = defaultdict(list)
        new: defaultdict[str, list[float]] = defaultdict(list)
        for doc_id, words in removed:
            for term in words:
                gone[term].append(doc_id)
        for doc_id, impacts in added:
            for term, impact in impacts.items():
                new[term].append(doc_id + (impact + HIGH - HIGH))
        changes: dict[str, _Stored | None] = {}
        for term, doc_ids in gone.items():
            changes[term] = _with_change(self._find(term), doc_ids, new.pop(term, ()))
        for term, entries in new.items():
            changes[term] = _with_change(self._find(term), (), entries)
        postings = Postings()
        postings._terms = self._terms.changed(changes)
        postings._starts, postings._entries = self._starts, self._entries
        postings.get = postings._get_stored
        return postings

    def _find(self, term: str) -> Posting | _PendingChange | None:
        """Return the posting of a term, or its change that waits."""
        found = self._terms.get(term)
        if isinstance(found, int):
            return self._entries[self._starts[found] : self._starts[found + 1]]
        return found

    def _get_stored(self, term: str) -> Posting | None:
        """Return the posting of a term; `get` of an index that is flat or was changed."""
        found = self._find(term)
        if not isinstance(found, _PendingChange):
            return found
        posting = found.apply()
        # Two threads may both do this, with equal results.
        self._terms.replace_equal(term, posting)
        return posting


class _PendingChange(NamedTuple):
    """A posting with a change that was not applied yet.

    Attributes:
        before: The posting before the change.
        gone: Document ids that are removed.
        new: Numbers that are added, some of them for ids that are removed.
        size: The length of the posting after the change; at least 1.
        depth: The number of changes that wait.
    """

    before: Posting | _PendingChange
    gone: Sequence[int]
    new: Sequence[float]
    size: int
    depth: int

    def apply(self) -> Posting:
        """Return the posting with all changes."""
        waiting = [self]
        before = self.before
        while isinstance(before, _PendingChange):
            waiting.append(before)
            before = before.before
        posting = array("d", before)
        while waiting:
            noted = waiting.pop()
            _change(posting, noted.gone, noted.new)
        return posting


_Stored: TypeAlias = "Posting | _PendingChange | int"
"""A posting, one with changes that wait, or the number of one that is flat."""


def _with_change(
    old: Posting | _PendingChange | None, gone: Sequence[int], new: Sequence[float]
) -> Posting | _PendingChange | None:
    """Return a posting with ids removed, then numbers added; None if nothing is left."""
    if old is None:
        return array("d", sorted(new))
    length, depth = (old.size, old.depth) if isinstance(old, _PendingChange) else (len(old), 0)
    size = length - len(gone) + len(new)
    if not size:
        return None
    noted = _PendingChange(old, gone, new, size, depth + 1)
    return noted if depth < _MAX_PENDING else noted.apply()


def _change(posting: array[float], gone: Iterable[int], new: Iterable[float]) -> None:
    """Remove ids from a posting and add numbers, in place."""
    left = set(gone)
    for entry in new:
        doc_id = int(entry)
        place = bisect_left(posting, doc_id)
        # A tool that took over an id mostly shares the words of the tool before.
        if doc_id in left:
            left.remove(doc_id)
            posting[place] = entry
        else:
            posting.insert(place, entry)
    for doc_id in left:
        del posting[bisect_left(posting, doc_id)]


@cache
def has_numpy() -> bool:
    """Return True if numpy, which comes with some of the extras, is installed."""
    try:
        import numpy  # noqa: F401, ICN001, PLC0415 - only large catalogs pay for it
    except ImportError:
        return False
    return True


def uses_numpy(size: int) -> bool:
    """Return True if so many documents are summed by numpy."""
    if size >= _MANY_DOCUMENTS:
        return has_numpy()
    return size > _FEW and sys.modules.get("numpy") is not None


def sum_impacts(
    weighted: Sequence[tuple[Posting, float]], size: int
) -> list[float] | NDArray[np.float64]:
    """Return, for each document, the sum of impact * weight over the postings.

    Args:
        weighted: Postings and their weights.
        size: The number of document ids.

    Returns:
        A list, or an array if the index is large and numpy is installed; the sums are the
        same.
    """
    if not uses_numpy(size):
        return _sum_in_python(weighted, size)
    if sum(len(posting) for posting, _ in weighted) < _MANY_ENTRIES:
        return _sum_few(weighted, size)
    return _sum_by_numpy(weighted, size)


def _sum_in_python(weighted: Sequence[tuple[Posting, float]], size: int) -> list[float]:
    sums = [0.0] * size
    for posting, weight in weighted:
        for entry in posting:
            doc_id = int(entry)
            sums[doc_id] += (entry - doc_id) * weight
    return sums


def _sum_few(weighted: Sequence[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    """Return an array of sums of few entries, which are added one by one."""
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    sums: dict[int, float] = {}
    for posting, weight in weighted:
        for entry in posting:
            doc_id = int(entry)
            sums[doc_id] = sums.get(doc_id, 0.0) + (entry - doc_id) * weight
    values = np.zeros(size)
    if sums:
        values[list(sums)] = list(sums.values())
    return values


def _sum_by_numpy(weighted: Sequence[tuple[Posting, float]], size: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    doc_ids, values = entries_of(weighted)
    # One pass in C, adding in the order of the postings as Python does.
    return np.bincount(doc_ids, values, minlength=size).astype(np.float64, copy=False)


def entries_of(
    weighted: Sequence[tuple[Posting, float]],
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the documents of all postings, and impact * weight in each."""
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    entries = np.concatenate([np.asarray(posting) for posting, _ in weighted])
    doc_ids = entries.astype(np.intp)
    entries -= doc_ids
    weights = np.array([weight for _, weight in weighted])
    entries *= weights.repeat([len(posting) for posting, _ in weighted])
    return doc_ids, entries


def drop_lone(
    values: list[float] | NDArray[np.float64],
    single: Sequence[Posting],
    others: Sequence[Posting],
) -> list[float] | NDArray[np.float64]:
    """Set the scores to 0 of the documents in one of some postings, and in no other.

    Args:
        values: One score for each document id; they are changed.
        single: The postings of which one is too little.
        others: The postings of which one is enough.
    """
    if isinstance(values, list):
        covered = set(map(int, chain.from_iterable(others)))
        for doc_id, count in Counter(map(int, chain.from_iterable(single))).items():
            if count == 1 and doc_id not in covered:
                values[doc_id] = 0.0
        return values
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    postings = [*single, *others]
    doc_ids = np.concatenate([np.asarray(posting) for posting in postings]).astype(np.intp)
    ones = [1.0] * len(single) + [2.0] * len(others)
    counts = np.bincount(doc_ids, np.repeat(ones, list(map(len, postings))), minlength=len(values))
    values[counts == 1.0] = 0.0
    return values
