"""The terms of a query and their weights."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tool_search.search.text.tokenizer import Piece, Segmenter, pieces, to_simplified

__all__ = ["QUOTATION", "QueryTerms", "query_terms"]

_MAX_QUERY_CHARS = 8_000
_MAX_TERMS = 256
_QUOTED = 0.6
_NUMBER = 0.3
_QUOTE = re.compile("[\"'`“‘「《«]")
QUOTATION = re.compile(
    r"\"[^\"]{1,400}\"|“[^”]{1,400}”|‘[^’]{2,400}’|「[^」]{1,400}」|《[^》]{1,100}》"
    r"|«[^»]{1,400}»|`[^`]{1,400}`|(?<!\w)'[^']{3,400}'(?!\w)"
)
"""Matches text in quotation marks, which is a value and not a wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """The terms of a query.

    Attributes:
        pieces: Its words without stop words, or all words if it has no others.
        weights: The weight of each term, in the order of the query.
        compounds: Terms that only join others; a missing one is not reported.
        forms: Its words before stemming.
        characters: Its terms that are one Chinese character.
    """

    pieces: tuple[Piece, ...]
    weights: dict[str, float]
    compounds: frozenset[str]
    forms: frozenset[str]
    characters: frozenset[str]

    def unmatched(self, known: Callable[[str], bool]) -> list[str]:
        """Return the words of which no term is known, as written, in order."""
        words: dict[str, None] = {}
        for piece in self.pieces:
            if piece.is_cjk:
                words.update(dict.fromkeys(_unknown_stretches(piece, known)))
            elif not any(known(term) for term in (*piece.words, *piece.compounds)):
                words[piece.original] = None
        return list(words)


@lru_cache(maxsize=64)
def query_terms(query: str, segmenter: Segmenter | None = None) -> QueryTerms:
    """Return the terms of a query; of a very long one, those of its beginning."""
    everything = pieces(query, max_chars=_MAX_QUERY_CHARS, segmenter=segmenter)
    chosen = [piece for piece in everything if not piece.is_stop_word] or everything
    words = Counter([word for piece in chosen for word in piece.words])
    compounds = Counter([word for piece in chosen for word in piece.compounds])
    quoted = _quoted_counts(query[:_MAX_QUERY_CHARS], segmenter)
    counts = {**words, **{term: count + words[term] for term, count in compounds.items()}}
    return QueryTerms(
        pieces=tuple(chosen),
        weights={
            term: _weight(term, counts[term], quoted.get(term, 0))
            for term in islice(counts, _MAX_TERMS)
        },
        compounds=frozenset(compounds.keys() - words.keys()),
        forms=frozenset([form for piece in chosen for form in piece.forms]),
        characters=frozenset(
            [word for piece in chosen if piece.is_cjk for word in piece.words if len(word) == 1]
        ),
    )


def _quoted_counts(query: str, segmenter: Segmenter | None) -> Mapping[str, int]:
    """Count each term in quotation marks, where it is a value and not a wish."""
    if not _QUOTE.search(query):
        return {}
    return Counter(
        term
        for quotation in QUOTATION.findall(query)
        for piece in pieces(quotation, max_chars=_MAX_QUERY_CHARS, segmenter=segmenter)
        for term in (*piece.words, *piece.compounds)
    )


def _weight(term: str, count: int, quoted: int) -> float:
    asked = count - quoted
    weight = 1.0 if asked == 1 else 1.0 + math.log(asked) if asked > 0 else _QUOTED
    return weight * _NUMBER if term.isdigit() else weight


def _unknown_stretches(piece: Piece, known: Callable[[str], bool]) -> list[str]:
    """Return the stretches of a run of Chinese that no known word covers.

    Single characters occur everywhere and explain nothing, unless the run is one character.
    """
    run = to_simplified(piece.original)
    explain = dict.fromkeys(word for word in piece.words if len(word) > 1 or len(run) == 1)
    covered = [False] * len(run)
    for word in filter(known, explain):
        place = run.find(word)
        while place >= 0:
            covered[place : place + len(word)] = [True] * len(word)
            place = run.find(word, place + 1)
    marked = "".join(
        " " if hit else char for char, hit in zip(piece.original, covered, strict=True)
    )
    return [stretch for stretch in marked.split() if len(stretch) > 1 or len(run) == 1]
