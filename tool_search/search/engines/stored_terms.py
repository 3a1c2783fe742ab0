"""The words of one tool that are compared with a query, besides its postings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tool_search.catalog.tool import Tool
from tool_search.search.text.documents import ToolTerms
from tool_search.search.text.query import QueryTerms
from tool_search.search.text.tokenizer import MAX_WORD_CHARS, pieces

__all__ = ["NO_TERMS", "StoredTerms", "is_named", "share_of_pairs", "words_of"]

_ENOUGH_PAIRS = 2


class StoredTerms(NamedTuple):
    """The parts of `ToolTerms` that are stored besides the postings.

    Attributes:
        terms: Its terms.
        name: The different words of the name, before stemming.
        text: The different words of name and description, before stemming.
        sequence: All words in order; see `ToolTerms`.
        words: The different words of `sequence`.
    """

    terms: tuple[str, ...]
    name: tuple[str, ...]
    text: tuple[str, ...]
    sequence: str
    words: frozenset[str]

    @classmethod
    def of(cls, own: ToolTerms) -> StoredTerms:
        """Return the parts of a tool's terms."""
        words = frozenset(own.sequence.split())
        return cls(tuple(own.impacts), own.name, own.text, own.sequence, words)


NO_TERMS = StoredTerms((), (), (), "", frozenset())
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


def share_of_pairs(pairs: Sequence[tuple[str, str]], stored: StoredTerms) -> float:
    """Return the number of a query's pairs in a definition, as a share of enough of them."""
    found = 0
    words, sequence = stored.words, stored.sequence
    for written, reversed_ in pairs:
        # Most definitions lack a word of the pair, and a set knows that sooner than a text.
        if words.issuperset(written.split()) and (written in sequence or reversed_ in sequence):
            found += 1
            if found == _ENOUGH_PAIRS:
                break
    return found / _ENOUGH_PAIRS
