"""Which tools a query with operators lets through, whatever engine ranks them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, islice
from typing import NamedTuple

from tool_search.catalog.tool import Tool
from tool_search.search.index.storage import DocumentIds, Postings
from tool_search.search.text.documents import (
    FIELDS,
    FieldName,
    field_texts,
    sequence_of,
    tool_terms,
)
from tool_search.search.text.query_language import FieldFilter, Group, Node, Term
from tool_search.search.text.tokenizer import Piece, Segmenter, folded, pieces

__all__ = ["FilterResult", "Lexicon", "lexicon_of", "passing"]

_SEARCHED: dict[FieldFilter, tuple[FieldName, ...]] = {
    "name": ("name", "aliases"),
    "description": ("description",),
    "server": ("server",),
    "tag": ("tags",),
}
_MAX_CHARS = 20_000
_PREFIX_PARTS = re.compile(r"[^\W_]+")
# A stem is shorter than its words by so much, and may differ in its last letter.
_MAX_ENDING_CHARS = 5
_SHORTEST_STEM = 3
_MAX_NAMES = 200
_MAX_WORDS = 8


class Lexicon(NamedTuple):
    """Which tools have which term.

    Attributes:
        postings: DocumentIds by term.
        sequence: The words of the tool in a slot; see `sequence_of`.
        segmenter: How the terms of Chinese were cut.
    """

    postings: Postings
    sequence: Callable[[int], str]
    segmenter: Segmenter | None = None


def lexicon_of(slots: DocumentIds) -> Lexicon:
    """A lexicon for an engine that keeps none of its own."""
    known = {slot: tool_terms(tool) for slot, tool in slots.taken()}
    sequences = {slot: own.sequence for slot, own in known.items()}
    postings = Postings((slot, own.impacts) for slot, own in known.items())
    return Lexicon(postings, sequences.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """What a query with operators lets through.

    Attributes:
        sure: DocumentIds of tools that are hits whatever their score.
        kept: DocumentIds of the tools that may be hits; None: all.
        excluded: DocumentIds of tools that may not.
        text: What an engine is to rank by, a line for each part of the query.
        asked: What of it may be missed in the catalog, likewise.
    """

    sure: frozenset[int]
    kept: frozenset[int] | None
    excluded: frozenset[int]
    text: str
    asked: str

    def mask(self, size: int, is_open: Sequence[bool] | None) -> list[bool]:
        """Which slots may be hits at all."""
        may = [is_open is None or is_open[slot] for slot in range(size)]
        if self.kept is not None:
            may = [is_kept and slot in self.kept for slot, is_kept in enumerate(may)]
        for slot in self.excluded:
            may[slot] = False
        return may


def passing(
    group: Group, slots: DocumentIds, lexicon: Lexicon, is_open: Sequence[bool] | None
) -> FilterResult:
    """Which of the open tools a query lets through.

    Optional words are left to the engine with its floors. Whatever else is asked
    for makes a tool a hit by itself.
    """
    matcher = _Matcher(slots, lexicon, is_open)
    excluded = matcher.any_of(group.must_not)
    words = [node for node in group.should if isinstance(node, Term) and node.is_plain]
    others = [node for node in group.should if not (isinstance(node, Term) and node.is_plain)]
    kept: frozenset[int] | None = None
    if group.must:
        sure = kept = matcher.all_of(group.must) - excluded
    else:
        sure = matcher.any_of(others) - excluded
        if others:
            kept = sure | matcher.any_of(words)
    wanted = list(group.wanted)
    return FilterResult(
        sure=sure,
        kept=kept,
        excluded=excluded,
        text="\n".join(matcher.ranked_by(term) for term in wanted),
        asked="\n".join(
            term.text for term in wanted if term.kind != "prefix" or not matcher.slots_of(term)
        ),
    )


class _Matcher:
    """Finds the open tools that match the parts of one query."""

    def __init__(
        self, slots: DocumentIds, lexicon: Lexicon, is_open: Sequence[bool] | None
    ) -> None:
        self._slots = slots
        self._lexicon = lexicon
        self._is_open = is_open
        self._found: dict[Node, frozenset[int]] = {}
        # A query of many phrases reads the same definitions for each.
        self._cut: dict[str, tuple[Piece, ...]] = {}

    def any_of(self, nodes: Iterable[Node]) -> frozenset[int]:
        return frozenset().union(*map(self.slots_of, nodes))

    def all_of(self, nodes: Iterable[Node]) -> frozenset[int]:
        return reduce(frozenset.intersection, map(self.slots_of, nodes))

    def slots_of(self, node: Node) -> frozenset[int]:
        if node not in self._found:
            self._found[node] = self._matching(node)
        return self._found[node]

    def ranked_by(self, term: Term) -> str:
        """The words of a leaf; for a prefix, those that begin with it in tools' names."""
        if term.kind != "prefix":
            return term.text
        prefix = folded(term.text)
        words = Counter(
            form
            for slot in islice(sorted(self.slots_of(term)), _MAX_NAMES)
            for piece in self._pieces(self._tool(slot).name)
            for form in piece.forms
            if form.startswith(prefix)
        )
        common = sorted(words, key=lambda word: (-words[word], word))[:_MAX_WORDS]
        return " ".join(dict.fromkeys((term.text, *common)))

    def _matching(self, node: Node) -> frozenset[int]:
        if isinstance(node, Group):
            found = self.all_of(node.must) if node.must else self.any_of(node.should)
            return found - self.any_of(node.must_not)
        found = self._beginning(node) if node.kind == "prefix" else self._having(node.text)
        if node.field is None and node.kind != "phrase":
            return found
        if node.field and all(piece.is_function for piece in self._pieces(node.text)):
            # A server may be called it: no term of it, but not to be looked for among terms.
            found = self._open()
        fields = FIELDS if node.field is None else _SEARCHED[node.field]
        if node.kind == "phrase":
            return self._with_sequence(found, node.text, fields)
        return frozenset(slot for slot in found if self._has(slot, node, fields))

    def _with_sequence(
        self, slots: frozenset[int], text: str, fields: Sequence[FieldName]
    ) -> frozenset[int]:
        """Those of the tools with the words of a phrase together in one text of these fields."""
        letters = "".join(sequence_of(self._pieces(text)).split())
        # The space: github and git hub are the same.
        stands_in = re.compile(f"(?<= ){' ?'.join(map(re.escape, letters))}(?= )").search
        places = [FIELDS.index(field) for field in fields]
        found = []
        for slot in slots:
            sequence = self._lexicon.sequence(slot)
            if not stands_in(sequence):
                continue
            texts = sequence.split("\t")
            if any(stands_in(texts[place]) for place in places):
                found.append(slot)
        return frozenset(found)

    def _having(self, text: str) -> frozenset[int]:
        """The tools with every word of a text, wherever in their definitions."""
        words = [piece for piece in self._pieces(text) if not piece.is_function]
        found = [
            reduce(frozenset.intersection, map(self._with, piece.words or piece.compounds[-1:]))
            | self._with_any(piece.compounds[-1:])
            for piece in words or self._pieces(text)
            if piece.words or piece.compounds
        ]
        return reduce(frozenset.intersection, found) if found else frozenset()

    def _beginning(self, term: Term) -> frozenset[int]:
        """The tools with a word that begins so, after words that stand before it."""
        *before, prefix = _PREFIX_PARTS.findall(folded(term.text))
        sure: list[str] = []
        stems: list[str] = []
        for known in self._lexicon.postings.terms():
            if known.startswith(prefix):
                sure.append(known)
            elif len(known) > _SHORTEST_STEM and prefix.startswith(known[:-1]):
                stems.append(known)
        near = [stem for stem in stems if len(prefix) - len(stem) <= _MAX_ENDING_CHARS]
        maybe = self._with_any(near)
        ended = (slot for slot in maybe if _begins(self._forms(slot, None), prefix))
        found = self._with_any(sure).union(ended)
        return reduce(frozenset.intersection, map(self._having, before), found)

    def _has(self, slot: int, term: Term, fields: Sequence[FieldName]) -> bool:
        """Return True if a tool that has all the words has them in these fields."""
        if term.kind != "prefix":
            return self._has_words(slot, term.text, fields)
        *before, prefix = _PREFIX_PARTS.findall(folded(term.text))
        return _begins(self._forms(slot, fields), prefix) and all(
            self._has_words(slot, word, fields) for word in before
        )

    def _has_words(self, slot: int, text: str, fields: Sequence[FieldName]) -> bool:
        known: set[str] = set()
        for piece in chain.from_iterable(map(self._pieces, self._texts(slot, fields))):
            known.update(piece.words, piece.compounds)
        return all(
            known.issuperset(piece.words) or not known.isdisjoint(piece.compounds[-1:])
            for piece in self._pieces(text)
        )

    def _forms(self, slot: int, fields: Sequence[FieldName] | None) -> Iterator[str]:
        for text in self._texts(slot, fields):
            for piece in self._pieces(text):
                yield from piece.forms
                yield from piece.compounds

    def _texts(self, slot: int, fields: Sequence[FieldName] | None) -> list[str]:
        found = field_texts(self._tool(slot))
        return [text for field in fields or found for text in found.get(field, ())]

    def _tool(self, slot: int) -> Tool:
        tool = self._slots.tools[slot]
        if tool is None:
            raise AssertionError("a free slot has terms")
        return tool

    def _pieces(self, text: str) -> tuple[Piece, ...]:
        if text not in self._cut:
            cut = pieces(text, longest=_MAX_CHARS, segmenter=self._lexicon.segmenter)
            self._cut[text] = tuple(cut)
        return self._cut[text]

    def _open(self) -> frozenset[int]:
        return frozenset(
            slot for slot, _ in self._slots.taken() if self._is_open is None or self._is_open[slot]
        )

    def _with_any(self, terms: Iterable[str]) -> frozenset[int]:
        return frozenset().union(*map(self._with, terms))

    def _with(self, term: str) -> frozenset[int]:
        having = map(int, self._lexicon.postings.get(term) or ())
        if self._is_open is None:
            return frozenset(having)
        return frozenset(slot for slot in having if self._is_open[slot])


def _begins(words: Iterable[str], prefix: str) -> bool:
    return any(word.startswith(prefix) for word in words)
