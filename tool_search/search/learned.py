"""What is kept of searches that led to a tool: evidence, its decay and its bounds.

Kept are the words of a query as the search cuts them, sorted: no sentence, no
order, no numbers, nothing that stood in quotation marks; and the tool, how often
that went well, and when it last did. Nothing says who asked.

Pure: the time is an argument, in seconds since 1970.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tool_search.search.text.query import query_terms

__all__ = [
    "HALF_LIFE_S",
    "MOST_EVIDENCE",
    "MOST_PER_TOOL",
    "Evidence",
    "evidence_of",
    "evidence_words",
    "kept",
    "merged",
]

HALF_LIFE_S = 90 * 86_400.0
"""Seconds after which evidence counts half: 90 days."""
MOST_PER_TOOL = 64
"""How many different queries one tool is remembered by."""
MOST_EVIDENCE = 10_000
"""How many entries there are at most."""

_MOST_WORDS = 64
_MOST_STRENGTH = 4.0
# Less than that is left of one success after more than a year.
_LEAST_STRENGTH = 0.05
_LONGEST_CODE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """That searches with these words led to a tool which then did what was asked.

    Attributes:
        tool: Its canonical name.
        words: Of the query, as the search cuts them, sorted.
        at: When it last went well, in seconds since 1970.
        strength: How often it went well, decayed to `at`; at most 4.
    """

    tool: str
    words: tuple[str, ...]
    at: float
    strength: float = 1.0

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """What tells it from other evidence."""
        return self.tool, self.words

    @property
    def level(self) -> float:
        """What orders evidence by its strength at any one time: the same for all of them."""
        return math.log2(self.strength) + self.at / HALF_LIFE_S

    def strength_at(self, now: float) -> float:
        """What is left of the strength; it halves every 90 days."""
        age = max(now - self.at, 0.0)
        return float(self.strength * 0.5 ** (age / HALF_LIFE_S))

    def renewed(self, newer: Evidence) -> Evidence:
        """The same after more successes, whichever of the two came first."""
        at = max(self.at, newer.at)
        strength = self.strength_at(at) + newer.strength_at(at)
        return Evidence(
            tool=self.tool, words=self.words, at=at, strength=min(strength, _MOST_STRENGTH)
        )


def evidence_words(query: str) -> tuple[str, ...]:
    """What of a query is remembered and compared, sorted.

    Left out are function words, numbers and words with digits but for short codes
    (s3, mp4), what stands in quotation marks, and all beyond the first 64.

    >>> evidence_words('Mail "the secret" to 4711 about the weather in Paris')
    ('mail', 'pari', 'weather')
    """
    terms = query_terms(query)
    # Quoted words and numbers weigh less than one.
    wished = (
        term
        for term, weight in terms.weights.items()
        if weight >= 1.0 and term not in terms.compounds and _is_word(term)
    )
    return tuple(sorted(islice(wished, _MOST_WORDS)))


def evidence_of(query: str, tool: str, *, now: float, strength: float = 1.0) -> Iterator[Evidence]:
    """The evidence of one success; none where the query has no word to remember."""
    words = evidence_words(query)
    if words:
        yield Evidence(tool=tool, words=words, at=now, strength=strength)


def merged(known: Iterable[Evidence], new: Iterable[Evidence]) -> dict[object, Evidence]:
    """Evidence by its key, with new successes added to those that are known."""
    entries: dict[object, Evidence] = {entry.key: entry for entry in known}
    for entry in new:
        before = entries.get(entry.key)
        entries[entry.key] = before.renewed(entry) if before else entry
    return entries


def kept(entries: Iterable[Evidence], now: float) -> list[Evidence]:
    """What stays within the bounds, the strongest first; what is almost forgotten goes.

    Of a tool 64 entries, 10,000 in all; equally strong ones by tool and words.
    """
    counts: dict[str, int] = defaultdict(int)
    chosen: list[Evidence] = []
    for entry in sorted(entries, key=lambda entry: (-entry.level, entry.key)):
        if len(chosen) == MOST_EVIDENCE or entry.strength_at(now) < _LEAST_STRENGTH:
            break
        counts[entry.tool] += 1
        if counts[entry.tool] <= MOST_PER_TOOL:
            chosen.append(entry)
    return chosen


def _is_word(term: str) -> bool:
    if not any(char.isdigit() for char in term):
        return True
    return len(term) <= _LONGEST_CODE and any(char.isalpha() for char in term)
