"""The tools that a query with operators lets through, whatever engine ranks them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

from tool_search.core.catalog.tool import Tool
from tool_search.search.index.storage import DocumentIds, Postings
from tool_search.search.text.documents import (
    FIELDS,
    FieldName,
    field_texts,
    sequence_of,
    tool_terms,
)
from tool_search.search.text.query_language import FieldFilter, Group, Node, Term
from tool_search.search.text.tokenizer import Piece, Segmenter, normalized, pieces

__all__ = ["FilterResult", "Lexicon", "apply_filter", "build_lexicon"]

# Parts of the field "tags" that can be asked for by themselves.
_PartName = Literal["namespace", "category"]
_PARTS: tuple[_PartName, ...] = get_args(_PartName)
_Fields = Sequence[FieldName | _PartName]
_SEARCHED: dict[FieldFilter, _Fields] = {
    "name": ("name", "aliases"),
    "description": ("description",),
    "server": ("server",),
    "tag": ("tags",),
    "namespace": ("namespace",),
    "category": ("category",),
}
_MAX_CHARS = 20_000
_PREFIX_PARTS = re.compile(r"[^\W_]+")
# The most that a word is longer than its stem; the stem may differ in its last letter.
_MAX_ENDING_CHARS = 5
_MIN_STEM_CHARS = 3
_MAX_NAMES = 200
_MAX_WORDS = 8


class Lexicon(NamedTuple):
    """The tools of each term.

    Attributes:
        postings: Document ids by term.
        sequence: Returns the words of a document; see `sequence_of`.
        segmenter: The segmenter that Chinese was cut with.
    """

    postings: Postings
    sequence: Callable[[int], str]
    segmenter: Segmenter | None = None


def build_lexicon(doc_ids: DocumentIds) -> Lexicon:
    """Build a lexicon for an engine that keeps none of its own."""
    known = {doc_id: tool_terms(tool) for doc_id, tool in doc_ids.taken()}
    sequences = {doc_id: own.sequence for doc_id, own in known.items()}
    postings = Postings((doc_id, own.impacts) for doc_id, own in known.items())
    return Lexicon(postings, sequences.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """The documents that a query with operators lets through.

    Attributes:
        always_hits: Documents that are hits whatever their score.
        candidates: Documents that may be hits; None for all.
        excluded: Documents that may not be hits.
        text: The text to rank by, a line for each part of the query.
        reported_text: The lines whose unknown words are reported.
    """

    always_hits: frozenset[int]
    candidates: frozenset[int] | None
    excluded: frozenset[int]
    text: str
    reported_text: str

    def mask(self, size: int, is_allowed: Sequence[bool] | None) -> list[bool]:
        """Return True by document id for each document that may be a hit."""
        may = [is_allowed is None or is_allowed[doc_id] for doc_id in range(size)]
        if self.candidates is not None:
            may = [is_open and doc_id in self.candidates for doc_id, is_open in enumerate(may)]
        for doc_id in self.excluded:
            may[doc_id] = False
        return may


def apply_filter(
    group: Group, doc_ids: DocumentIds, lexicon: Lexicon, is_allowed: Sequence[bool] | None
) -> FilterResult:
    """Return the allowed tools that a query lets through.

    Optional words are left to the engine and its floors. Any other part of a query makes a
    tool a hit by itself.
    """
    matcher = _Matcher(doc_ids, lexicon, is_allowed)
    excluded = matcher.any_of(group.must_not)
    words = [node for node in group.should if isinstance(node, Term) and node.is_plain]
    others = [node for node in group.should if not (isinstance(node, Term) and node.is_plain)]
    candidates: frozenset[int] | None = None
    if not (group.must or group.should):
        always_hits = candidates = matcher.allowed() - excluded
    elif group.must:
        always_hits = candidates = matcher.all_of(group.must) - excluded
    else:
        always_hits = matcher.any_of(others) - excluded
        if others:
            candidates = always_hits | matcher.any_of(words)
    wanted = list(group.wanted)
    return FilterResult(
        always_hits=always_hits,
        candidates=candidates,
        excluded=excluded,
        text="\n".join(matcher.ranked_by(term) for term in wanted),
        reported_text="\n".join(
            term.text for term in wanted if term.kind != "prefix" or not matcher.doc_ids_of(term)
        ),
    )


class _Matcher:
    """Finds the allowed tools that match the parts of one query."""

    def __init__(
        self, doc_ids: DocumentIds, lexicon: Lexicon, is_allowed: Sequence[bool] | None
    ) -> None:
        self._doc_ids = doc_ids
        self._lexicon = lexicon
        self._is_allowed = is_allowed
        self._found: dict[Node, frozenset[int]] = {}
        # A query of many phrases reads the same definitions for each.
        self._cut: dict[str, tuple[Piece, ...]] = {}

    def any_of(self, nodes: Iterable[Node]) -> frozenset[int]:
        return frozenset().union(*map(self.doc_ids_of, nodes))

    def all_of(self, nodes: Iterable[Node]) -> frozenset[int]:
        return reduce(frozenset.intersection, map(self.doc_ids_of, nodes))

    def doc_ids_of(self, node: Node) -> frozenset[int]:
        if node not in self._found:
            self._found[node] = self._match(node)
        return self._found[node]

    def ranked_by(self, term: Term) -> str:
        """Return the words of a leaf, to rank by.

        A prefix has the words of tool names that begin with it.
        """
        if term.kind != "prefix":
            return term.text
        prefix = normalized(term.text)
        words = Counter(
            form
            for doc_id in islice(sorted(self.doc_ids_of(term)), _MAX_NAMES)
            for piece in self._pieces(self._tool(doc_id).name)
            for form in piece.forms
            if form.startswith(prefix)
        )
        common = sorted(words, key=lambda word: (-words[word], word))[:_MAX_WORDS]
        return " ".join(dict.fromkeys((term.text, *common)))

    def _match(self, node: Node) -> frozenset[int]:
        if isinstance(node, Group):
            found = self.all_of(node.must) if node.must else self.any_of(node.should)
            return found - self.any_of(node.must_not)
        found = self._with_prefix(node) if node.kind == "prefix" else self._with_words(node.text)
        if node.field is None and node.kind != "phrase":
            return found
        if node.field and all(piece.is_stop_word for piece in self._pieces(node.text)):
            # A server may be named by a stop word, which is not an indexed term.
            found = self.allowed()
        fields: _Fields = FIELDS if node.field is None else _SEARCHED[node.field]
        if node.kind == "phrase":
            return self._with_sequence(found, node.text, fields)
        return frozenset(doc_id for doc_id in found if self._has(doc_id, node, fields))

    def _with_sequence(self, doc_ids: frozenset[int], text: str, fields: _Fields) -> frozenset[int]:
        """Return those of the tools that have a phrase in one text of these fields."""
        letters = "".join(sequence_of(self._pieces(text)).split())
        # With an optional space between letters: github and git hub are the same.
        stands_in = re.compile(f"(?<= ){' ?'.join(map(re.escape, letters))}(?= )").search
        places = [FIELDS.index(field) for field in fields if field not in _PARTS]
        found = []
        for doc_id in doc_ids:
            sequence = self._lexicon.sequence(doc_id)
            if not stands_in(sequence):
                continue
            texts = sequence.split("\t")
            own = self._parts(doc_id, fields)
            if any(stands_in(texts[place]) for place in places) or any(
                stands_in(sequence_of(self._pieces(text))) for text in own
            ):
                found.append(doc_id)
        return frozenset(found)

    def _with_words(self, text: str) -> frozenset[int]:
        """Return the tools with every word of a text, anywhere in their definitions."""
        cut = self._pieces(text)
        words = [piece for piece in cut if not piece.is_stop_word] or cut
        asked = [
            (
                list(map(self._find_posting, piece.words or last)),
                list(map(self._find_posting, last)),
            )
            for piece in words
            if (last := piece.compounds[-1:]) or piece.words
        ]
        if not asked:
            return frozenset()
        # The rarest first: a few tools are looked up in the postings of frequent words.
        asked.sort(key=lambda postings: min(map(len, postings[0])) + sum(map(len, postings[1])))
        (parts, whole), *others = asked
        found = self._in_all(parts).union(*map(self._doc_ids_in, whole))
        for parts, whole in others:
            found = frozenset(
                doc_id
                for doc_id in found
                if all(_has_entry(posting, doc_id) for posting in parts)
                or any(_has_entry(posting, doc_id) for posting in whole)
            )
        return found

    def _in_all(self, postings: Iterable[Sequence[float]]) -> frozenset[int]:
        """Return the allowed tools that are in each of some postings."""
        rarest, *others = sorted(postings, key=len)
        return frozenset(
            doc_id
            for doc_id in self._doc_ids_in(rarest)
            if all(_has_entry(posting, doc_id) for posting in others)
        )

    def _with_prefix(self, term: Term) -> frozenset[int]:
        """Return the tools with a word that begins so, and with the words before it."""
        *before, prefix = _PREFIX_PARTS.findall(normalized(term.text))
        whole: list[str] = []
        stems: list[str] = []
        for known in self._lexicon.postings.terms():
            if known.startswith(prefix):
                whole.append(known)
            elif len(known) > _MIN_STEM_CHARS and prefix.startswith(known[:-1]):
                stems.append(known)
        near = [stem for stem in stems if len(prefix) - len(stem) <= _MAX_ENDING_CHARS]
        maybe = self._with_any(near)
        ended = (doc_id for doc_id in maybe if _begins(self._forms(doc_id, None), prefix))
        found = self._with_any(whole).union(ended)
        return reduce(frozenset.intersection, map(self._with_words, before), found)

    def _has(self, doc_id: int, term: Term, fields: _Fields) -> bool:
        """Return True if a tool that has all the words has them in these fields."""
        if term.kind != "prefix":
            return self._has_words(doc_id, term.text, fields)
        *before, prefix = _PREFIX_PARTS.findall(normalized(term.text))
        return _begins(self._forms(doc_id, fields), prefix) and all(
            self._has_words(doc_id, word, fields) for word in before
        )

    def _has_words(self, doc_id: int, text: str, fields: _Fields) -> bool:
        known: set[str] = set()
        for piece in chain.from_iterable(map(self._pieces, self._texts(doc_id, fields))):
            known.update(piece.words, piece.compounds)
        return all(
            known.issuperset(piece.words) or not known.isdisjoint(piece.compounds[-1:])
            for piece in self._pieces(text)
        )

    def _forms(self, doc_id: int, fields: _Fields | None) -> Iterator[str]:
        for text in self._texts(doc_id, fields):
            for piece in self._pieces(text):
                yield from piece.forms
                yield from piece.compounds

    def _texts(self, doc_id: int, fields: _Fields | None) -> list[str]:
        if fields and fields[0] in _PARTS:
            return self._parts(doc_id, fields)
        found = field_texts(self._tool(doc_id))
        return [
            text
            for field, texts in found.items()
            if not fields or field in fields
            for text in texts
        ]

    def _parts(self, doc_id: int, fields: _Fields) -> list[str]:
        tool = self._tool(doc_id)
        own = {"namespace": tool.namespace, "category": tool.category}
        return [text for field in fields if field in own and (text := own[field])]

    def _tool(self, doc_id: int) -> Tool:
        tool = self._doc_ids.tools[doc_id]
        if tool is None:
            raise AssertionError("a free document id has terms")
        return tool

    def _pieces(self, text: str) -> tuple[Piece, ...]:
        if text not in self._cut:
            cut = pieces(text, max_chars=_MAX_CHARS, segmenter=self._lexicon.segmenter)
            self._cut[text] = tuple(cut)
        return self._cut[text]

    def allowed(self) -> frozenset[int]:
        return frozenset(
            doc_id
            for doc_id, _ in self._doc_ids.taken()
            if self._is_allowed is None or self._is_allowed[doc_id]
        )

    def _with_any(self, terms: Iterable[str]) -> frozenset[int]:
        return frozenset().union(*map(self._with, terms))

    def _with(self, term: str) -> frozenset[int]:
        return self._doc_ids_in(self._find_posting(term))

    def _find_posting(self, term: str) -> Sequence[float]:
        return self._lexicon.postings.get(term) or ()

    def _doc_ids_in(self, posting: Sequence[float]) -> frozenset[int]:
        """Return the allowed tools in a posting."""
        having = map(int, posting)
        if self._is_allowed is None:
            return frozenset(having)
        return frozenset(doc_id for doc_id in having if self._is_allowed[doc_id])


def _has_entry(posting: Sequence[float], doc_id: int) -> bool:
    place = bisect_left(posting, doc_id)
    return place < len(posting) and int(posting[place]) == doc_id


def _begins(words: Iterable[str], prefix: str) -> bool:
    return any(word.startswith(prefix) for word in words)
