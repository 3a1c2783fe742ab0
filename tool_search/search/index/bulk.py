"""The postings of a large catalog at once: terms are added by sorting, not one by one.

Adding the occurrences of terms to dictionaries took a third of the time to build an index.
The numbers are those of `Postings`, to the bit.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress, count, islice, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tool_search.core.catalog.tool import Tool
from tool_search.search.index.storage import HIGH, FlatPostings
from tool_search.search.text.documents import (
    FIELD_SIGN,
    FIELD_WEIGHTS,
    FIELDS,
    MAX_PARTS,
    MAX_TERMS,
    Vocabulary,
    ascii_text,
    impact_of,
    plain_word,
    read_stretch,
    stretches_of,
    tool_fields,
)
from tool_search.search.text.tokenizer import Segmenter

__all__ = ["bulk_postings"]

_Numbers: TypeAlias = NDArray[np.intp]

# So many tools are sorted together: more need more memory, fewer more calls.
_BLOCK = 2_048
_MANY = len(FIELDS)
_NORMS = [FIELD_WEIGHTS[field] for field in FIELDS]
_WEIGHTS = np.array([norm.weight for norm in _NORMS])
_B = np.array([norm.b for norm in _NORMS])
_TYPICAL = np.array([norm.typical_length for norm in _NORMS])


def bulk_postings(tools: Iterable[tuple[int, Tool]], segmenter: Segmenter | None) -> FlatPostings:
    """Return the postings of tools.

    Args:
        tools: Document ids, ascending, and their tools.
        segmenter: Cuts Chinese; None for characters and bigrams.
    """
    words, left = _NumberedWords(), iter(tools)
    blocks: list[tuple[_Numbers, NDArray[np.float64]]] = []
    while block := list(islice(left, _BLOCK)):
        terms, fields, ones = _read_block(block, words, segmenter)
        doc_ids = np.array([doc_id for doc_id, _ in block])
        blocks.append(_entries(terms, fields, ones, doc_ids))
    if not blocks:
        return FlatPostings((), array("q", (0,)), memoryview(array("d")))
    numbers, entries = map(np.concatenate, zip(*blocks, strict=True))
    # Stable: the ids of a term stay ascending.
    order = numbers.argsort(kind="stable")
    counts = np.bincount(numbers, minlength=len(words.terms))
    # A term beyond the bounds of its tool has a number and no tool.
    has_tools = counts > 0
    starts = np.concatenate(([0], counts[has_tools].cumsum()))
    kept = tuple(compress(words.terms, has_tools.tolist()))
    return FlatPostings(kept, starts.data, entries[order].data.cast("B").cast("d"))


class _NumberedWords(dict[str, int]):
    """The number of each stretch of text, and tables of what is in it.

    The end of a field has the number 0.

    Attributes:
        vocabulary: The words of tools that are read one by one.
        terms: The numbers of the terms.
    """

    def __init__(self) -> None:
        super().__init__()
        self.vocabulary = Vocabulary()
        self.terms: defaultdict[str, int] = defaultdict(count().__next__)
        self._content = array("q")
        self._ends = array("q", [0])
        self._lengths = array("d")
        self.__missing__(FIELD_SIGN)

    def __missing__(self, stretch: str) -> int:
        word = plain_word(stretch)
        if word is not None and word != stretch:
            number = self[stretch] = self[word]
            return number
        found, length, _ = read_stretch(stretch, word)
        self._content.extend(map(self.terms.__getitem__, found))
        self._ends.append(len(self._content))
        self._lengths.append(length)
        number = self[stretch] = len(self._lengths) - 1
        return number

    def tables(self) -> tuple[_Numbers, _Numbers, NDArray[np.float64]]:
        """Return the terms of all stretches, the end of each stretch's, and its length."""
        return np.array(self._content), np.array(self._ends), np.array(self._lengths)


def _read_block(
    block: Sequence[tuple[int, Tool]], words: _NumberedWords, segmenter: Segmenter | None
) -> tuple[_Numbers, _Numbers, NDArray[np.float64]]:
    """Return the terms of tools, the field of each, and what one occurrence adds in a field.

    The fields of a tool are numbered from `MAX_PARTS` times its place in the block.
    """
    texts: list[str] = []
    simple: list[int] = []
    others: list[int] = []
    for place, (_, tool) in enumerate(block):
        text = ascii_text(tool)
        if text is None:
            others.append(place)
        else:
            texts.append(text)
            simple.append(place)
    stretches = stretches_of("".join(texts))
    numbers = np.fromiter(map(words.__getitem__, stretches), np.intp, len(stretches))
    content, ends, lengths = words.tables()
    is_end = numbers == 0
    field = is_end.cumsum() - is_end
    counts = ends[numbers + 1] - ends[numbers]
    is_left_out = _is_special(field, counts, is_end, len(simple))
    if is_left_out.any():
        others += np.array(simple)[is_left_out].tolist()
        kept = ~is_left_out[field // _MANY]
        numbers, field, counts = numbers[kept], field[kept], counts[kept]
    # The place in the block instead of the place among the simple ones.
    field = np.array(simple, np.intp)[field // _MANY] * MAX_PARTS + field % _MANY
    size = len(block) * MAX_PARTS
    sums = np.bincount(field, lengths[numbers], minlength=size).reshape(-1, MAX_PARTS)[:, :_MANY]
    by_tool = np.zeros((len(block), MAX_PARTS))
    by_tool[:, :_MANY] = _WEIGHTS / (1.0 - _B + _B * sums / _TYPICAL)
    ones = by_tool.ravel()
    firsts = ends[numbers] - (counts.cumsum() - counts)
    terms = content[np.repeat(firsts, counts) + np.arange(counts.sum())]
    fields = np.repeat(field, counts)
    more_terms, more_fields = _read_others(block, others, words, segmenter, ones)
    return np.concatenate([terms, more_terms]), np.concatenate([fields, more_fields]), ones


def _read_others(
    block: Sequence[tuple[int, Tool]],
    places: Iterable[int],
    words: _NumberedWords,
    segmenter: Segmenter | None,
    ones: NDArray[np.float64],
) -> tuple[_Numbers, _Numbers]:
    """Return the terms of tools that are read one by one, and the field of each.

    What one occurrence adds in their fields is written into `ones`.
    """
    terms: list[int] = []
    fields: list[int] = []
    for place in places:
        listed = tool_fields(block[place][1], segmenter, words.vocabulary)
        for number, (_, one, found) in enumerate(listed, place * MAX_PARTS):
            ones[number] = one
            terms += map(words.terms.__getitem__, found)
            fields += repeat(number, len(found))
    return np.array(terms, np.intp), np.array(fields, np.intp)


def _is_special(
    field: _Numbers, counts: _Numbers, is_end: NDArray[np.bool_], size: int
) -> NDArray[np.bool_]:
    """Return True for tools that are read one by one.

    Those with more terms than are kept, and those with a stop word in the name.
    """
    tool = field // _MANY
    found = np.bincount(tool, counts, minlength=size) > MAX_TERMS
    found[tool[(field % _MANY == 0) & (counts == 0) & ~is_end]] = True
    return found


def _entries(
    terms: _Numbers, fields: _Numbers, ones: NDArray[np.float64], doc_ids: _Numbers
) -> tuple[_Numbers, NDArray[np.float64]]:
    """Return the terms and the entries of a block, from the occurrences of terms in fields."""
    # Sorted by term, tool and field: as a dictionary would add them.
    keys = terms * len(ones) + fields
    keys.sort()
    terms, fields = np.divmod(keys, len(ones))
    tools = fields // MAX_PARTS
    is_first = np.ones(len(keys), bool)
    is_first[1:] = (terms[1:] != terms[:-1]) | (tools[1:] != tools[:-1])
    # One addition after another, in their order, as Python does.
    frequencies = np.bincount(is_first.cumsum() - 1, ones[fields])
    impacts = impact_of(frequencies.astype(np.float64, copy=False))
    return terms[is_first], doc_ids[tools[is_first]] + (impacts + HIGH - HIGH)
