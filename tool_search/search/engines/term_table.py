"""Values of an index's terms, kept as queries ask for them.

Reading the postings of frequent words for each query took four fifths of a search in a
catalog of several scripts. A script of few tools has postings of its own here, so that a
query pays for those tools and not for the whole catalog again.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tool_search.search.index.storage import Posting, Postings, square_impacts
from tool_search.search.text.scripts import ALL_SCRIPTS, OTHER, ToolScripts, script_of
from tool_search.search.text.synonyms import synonyms_of

__all__ = ["KnownTerm", "Row", "TermTable"]

# Number of tools without the word that are added to the catalog's count: rarity among three
# tools is not evidence, and a word of every tool must still have a weight.
_UNSEEN_TOOLS = 10.0
_RELATED_TO_KNOWN = 0.8
_RELATED_TO_UNKNOWN = 0.5
_MAX_KEPT = 20_000
_MAX_ROWS = 2_000


class KnownTerm(NamedTuple):
    """A term of an index.

    Attributes:
        posting: The tools that have it.
        idf: The weight of its rarity.
        groups: The scripts of which it is a word, and a tool has it.
    """

    posting: Posting | None
    idf: float
    groups: int


class Row(NamedTuple):
    """The synonyms of one verb.

    Attributes:
        words: The synonyms.
        power: The exponent of their impacts.
        idf: The weight of the rarity of all its words together.
        score: The weight of a synonym; the verb itself has 1.
        postings: The postings of the synonyms, with their impacts to the power.
    """

    words: Sequence[str]
    power: int
    idf: float
    score: float
    postings: Sequence[Posting]


class TermTable:
    """The terms of one index.

    Two threads may fill it at the same time, with equal entries.

    Args:
        postings: The tools of each term.
        scripts: The scripts of the tools.
        size: The number of tools.
    """

    __slots__ = ("_few", "_own", "_postings", "_rows", "_scripts", "_size", "_squares", "_terms")

    def __init__(self, postings: Postings, scripts: ToolScripts, size: int) -> None:
        self._postings = postings
        self._scripts = scripts
        self._size = size
        self._terms: dict[str, KnownTerm] = {}
        self._own: dict[tuple[int, str], Posting] = {}
        self._squares: dict[tuple[int, str], Posting] = {}
        self._rows: dict[tuple[int, bool, tuple[str, ...]], Row] = {}
        self._few = frozenset(filter(scripts.is_few, scripts.groups))

    def idf(self, having: int) -> float:
        """Return ln(1 + (N - df + 0.5) / (df + 0.5)), with the unseen tools in N.

        Source: Lucene's BM25Similarity, the form that is never negative.
        """
        without = self._size + _UNSEEN_TOOLS - having
        return math.log(1.0 + (without + 0.5) / (having + 0.5))

    def __getitem__(self, term: str) -> KnownTerm:
        """Return the entry of any term; one that no tool has is as rare as can be."""
        known = self._terms.get(term)
        if known is None:
            posting = self._postings.get(term)
            having = 0 if posting is None else len(posting)
            known = KnownTerm(posting, self.idf(having), self._groups_of(term, posting))
            if len(self._terms) >= _MAX_KEPT:
                self._terms.clear()
            self._terms[term] = known
        return known

    def is_known(self, term: str, group: int) -> bool:
        """Return True if a tool of a script has a term.

        A word of another script than Latin is a word of its own script's tools alone, so
        that a tool in two languages is scored as if it had but one of them.
        """
        return bool(self[term].groups & group)

    def has_few(self, group: int) -> bool:
        """Return True if a script has postings of its own; see `ToolScripts.is_few`."""
        return group in self._few

    def own_posting(self, term: str, group: int) -> Posting:
        """Return the entries of a term's posting that are tools of a script with few tools."""
        own = self._own.get((group, term))
        if own is None:
            own = self.entries_in(self._postings.get(term) or (), group)
            if len(self._own) >= _MAX_KEPT:
                self._own.clear()
            self._own[group, term] = own
        return own

    def entries_in(self, posting: Sequence[float], group: int) -> Posting:
        """Return the entries of a posting that are tools of a script."""
        members, scripts = self._scripts.members(group), self._scripts.by_doc_id
        if len(posting) < len(members):
            return array("d", [entry for entry in posting if scripts[int(entry)] & group])
        places = [(doc_id, bisect_left(posting, doc_id)) for doc_id in members]
        return array(
            "d",
            [
                posting[place]
                for doc_id, place in places
                if place < len(posting) and int(posting[place]) == doc_id
            ],
        )

    def row(self, term: str, weights: Mapping[str, float], group: int) -> Row | None:
        """Return the synonyms of a term of a query; None if it is in no row of the table.

        For a verb that no tool of the script has, the row has words of every language. For one
        that some tool has, it has English words alone, as Chinese tools of the public sets were
        found less well, and their impacts are squared: a synonym is another name for the action
        if it has a high impact, as in a tool's name, and mostly chance if it is one word of many.

        Args:
            term: The term.
            weights: The terms of the query, which are no synonyms of one another.
            group: The script of the tools.
        """
        synonyms = synonyms_of(term)
        if not synonyms:
            return None
        asked = (term, *(other for other in synonyms if other in weights))
        home = group if group in self._few else ALL_SCRIPTS
        key = home, self.is_known(term, group), asked
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            row = self._rows[key] = self._new_row(*key, synonyms)
        return row

    def _new_row(
        self, home: int, is_known: bool, asked: Sequence[str], words: Iterable[str]
    ) -> Row:
        others = [word for word in words if word not in asked]
        if is_known:
            others = [word for word in others if word.isascii() and asked[0].isascii()]
        found = [word for word in others if self[word].posting]
        # The row is as common as its words together: a rare synonym is not a rare wish.
        counted = [*found, asked[0]] if is_known else found
        having = sum(len(self[word].posting or ()) for word in counted)
        idf = self.idf(min(having, self._size))
        power, score = (2, _RELATED_TO_KNOWN) if is_known and found else (1, _RELATED_TO_UNKNOWN)
        entries = [self._entries(word, home, power) for word in found]
        return Row(others, power, idf, score, [posting for posting in entries if posting])

    def _entries(self, term: str, home: int, power: int) -> Posting:
        """Return a term's posting among the tools of a script, its impacts to a power."""
        plain = self[term].posting if home == ALL_SCRIPTS else self.own_posting(term, home)
        if power == 1 or not plain:
            return plain or array("d")
        squares = self._squares.get((home, term))
        if squares is None:
            # A table of verbs: their number is bounded.
            squares = self._squares[home, term] = square_impacts([plain])
        return squares

    def _groups_of(self, term: str, posting: Posting | None) -> int:
        if posting is None:
            return 0
        groups = self._scripts.groups
        if len(groups) < 2:
            return ALL_SCRIPTS
        own = script_of(term)
        found = 0
        for group in groups:
            if own not in (group, OTHER):
                continue
            if group in self._few:
                is_there = bool(self.own_posting(term, group))
            else:
                is_there = self._scripts.has_any(posting, group)
            found |= group if is_there else 0
        return found
