"""The words of one tool that are compared with a query, besides its postings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tool_search.core.catalog.tool import Tool
from tool_search.search.text.documents import ToolTerms
from tool_search.search.text.query import PAIR_BITS, QueryTerms, pair_place
from tool_search.search.text.stop_words import STOP_WORDS
from tool_search.search.text.tokenizer import MAX_WORD_CHARS, pieces

__all__ = ["NO_TERMS", "StoredTerms", "has_in_order", "is_named", "share_of_pairs", "words_of"]

_ENOUGH_PAIRS = 2


class StoredTerms(NamedTuple):
    """The parts of `ToolTerms` that are stored besides the postings.

    Attributes:
        terms: Its terms.
        name: The different words of the name, before stemming.
        text: The different words of name and description, before stemming.
        sequence: All words in order; see `ToolTerms`.
        pair_bits: A bit for each two neighbouring words of `sequence`; see `pair_place`.
    """

    terms: tuple[str, ...]
    name: tuple[str, ...]
    text: tuple[str, ...]
    sequence: str
    pair_bits: int

    @classmethod
    def of(cls, own: ToolTerms) -> StoredTerms:
        """Return the parts of a tool's terms."""
        bits = bytearray(PAIR_BITS // 8)
        for first, second in pairwise(own.sequence.split(" ")):
            place = pair_place(first, second)
            bits[place // 8] |= 1 << place % 8
        pair_bits = int.from_bytes(bits, "little")
        return cls(tuple(own.impacts), own.name, own.text, own.sequence, pair_bits)


NO_TERMS = StoredTerms((), (), (), "", 0)
"""The terms of a document id without a tool."""


def words_of(tool: Tool) -> list[str]:
    """Return the words of a tool's name, before stemming."""
    found = pieces(tool.name, max_chars=MAX_WORD_CHARS)
    return list(dict.fromkeys(form for piece in found for form in piece.forms))


def is_named(terms: QueryTerms, name: Sequence[str]) -> bool:
    """Return True if a query has all words of a name, stop words too.

    Of three words or more, the first may be missing: it is mostly that of a server.
    """
    # `get me` means github_get_me; in `find me a hotel` the stop word says nothing.
    rest = name[1:] if len(name) > 2 else name
    words = terms.forms | terms.stop_words
    return words.issuperset(rest) and not terms.forms.isdisjoint(rest)


def has_in_order(terms: QueryTerms, name: Sequence[str]) -> bool:
    """Return True if a query has the words of a name that are stop words alone, in its order."""
    # `who is example.com` means who_is; without the order, `what is it` would mean it_is.
    rest = name if name[:1] and name[0] in STOP_WORDS else name[1:]
    return len(rest) > 1 and STOP_WORDS.issuperset(rest) and f" {' '.join(rest)} " in terms.text


def share_of_pairs(terms: QueryTerms, stored: StoredTerms) -> float:
    """Return the number of a query's pairs in a definition, as a share of enough of them."""
    common = stored.pair_bits & terms.pair_bits
    if not common:
        return 0.0
    found = 0
    for bit, written, reversed_ in terms.pairs:
        if bit & common and (written in stored.sequence or reversed_ in stored.sequence):
            found += 1
            if found == _ENOUGH_PAIRS:
                break
    return found / _ENOUGH_PAIRS
