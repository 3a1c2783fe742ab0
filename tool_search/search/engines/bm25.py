"""The default engine: BM25F over the fields of a definition, without a model.

Each field's term frequency is divided by the field's length norm, the fields are added
with their weights, and only the sum is saturated. A verb counts half for its synonyms. A
request of several sentences is scored as a whole and by its best sentence. Among tools with
close scores, a tool is boosted if the query covers more of its name and description.

The path of a query: `views` adds up the postings of its words, `best_of` compares tools of
several scripts, `boosts` looks at the words of those that can still be among the best.

Source: Robertson, Zaragoza, Taylor, "Simple BM25 Extension to Multiple Weighted Fields",
CIKM 2004; Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009, sections 3.1 and 3.6.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from tool_search import __version__
from tool_search.core.catalog.tool import Tool
from tool_search.search.engines.options import EngineOptions, garbage_collection_off
from tool_search.search.engines.script_scores import ScriptScores, best_of, with_best
from tool_search.search.index.disk import IndexFiles, KeptIndex, catalog_key
from tool_search.search.index.filter import Lexicon
from tool_search.search.index.ranking import Scores, attainable
from tool_search.search.index.storage import (
    ChunkedArray,
    DocumentIds,
    Posting,
    Postings,
    drop_lone,
    has_numpy,
    sum_impacts,
)
from tool_search.search.text.cache import BoundedCache
from tool_search.search.text.documents import (
    CoveredWords,
    ToolTerms,
    Vocabulary,
    covered_words,
    tool_impacts,
    tool_terms,
)
from tool_search.search.text.query import (
    QueryTerms,
    one_letter_off,
    query_sentences,
    query_terms,
)
from tool_search.search.text.scripts import ALL_SCRIPTS, CJK, OTHER, ToolScripts, languages_with
from tool_search.search.text.synonyms import synonyms_of
from tool_search.search.text.tokenizer import (
    MAX_WORD_CHARS,
    Segmenter,
    chunk_terms,
    english_stem,
    has_cjk,
    pieces,
    stems_in,
)

if TYPE_CHECKING:
    from tool_search.search.index.explanation import Reasons
    from tool_search.search.index.scores import Values

__all__ = ["Bm25Engine", "build"]

# A word that is once in the name has an impact of 0.55, once in the description of 0.33.
_FULL_IMPACT = 0.4
_NAME_COVERED = 0.45
_TEXT_COVERED = 0.45
# Number of tools without the word that are added to the catalog's count: rarity among three
# tools is not evidence, and a word of every tool must still have a weight.
_UNSEEN_TOOLS = 10.0
_RELATED = 0.5
_STOP_WORD = 0.5
# Letters that a word and its like in another language begin with.
_COGNATE = 5
# A longer query does not name a tool.
_MAX_NAME_WORDS = 5
_MAX_NAMES = 200
_MAX_KEPT = 20_000
_MAX_ASKED, _MAX_LOOKED_AT = 256, 8
_FEW_ENTRIES = 16
_MANY_ENTRIES = 200
_ROUNDED = 1.0 + 1e-9
# A smaller catalog is read in less time than a file takes to pay.
_MIN_KEPT = 500
# Loading numpy takes as long as it saves in a smaller one.
_MIN_BULK = 4_000


class _KnownTerm(NamedTuple):
    """A term of an index.

    Attributes:
        posting: The tools that have it.
        idf: The weight of its rarity.
        groups: The scripts of which it is a word, and a tool has it.
    """

    posting: Posting | None
    idf: float
    groups: int


class _Part(NamedTuple):
    """A term of a definition that adds to the score of a query.

    Attributes:
        asked: The term of the query.
        term: The term itself, or a synonym of it.
        posting: The tools that have it.
        weight: The factor of its impacts.
    """

    asked: str
    term: str
    posting: Posting
    weight: float


class Bm25Engine:
    """BM25F; see the module.

    Args:
        tools: The tools to search, in any order.
        segmenter: Cuts Chinese; None for characters and bigrams.
        kept: What was kept of exactly these tools; None to read the tools.

    Attributes:
        postings: The tools of each term.
        scripts: The scripts of the tools.
    """

    __slots__ = (
        "_alike",
        "_cognates",
        "_covered",
        "_kin",
        "_segmenter",
        "_sequences",
        "_terms",
        "doc_ids",
        "postings",
        "scripts",
    )

    max_boost = 1.0 + _NAME_COVERED + _TEXT_COVERED

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        segmenter: Segmenter | None = None,
        kept: KeptIndex | None = None,
    ) -> None:
        self._segmenter = segmenter
        with garbage_collection_off():
            self.doc_ids = DocumentIds(tools)
            if kept is not None:
                self.postings = Postings.of_flat(kept.postings)
                self.scripts = ToolScripts(kept.scripts)
            else:
                self.postings = _read_postings(self.doc_ids, segmenter)
                self.scripts = ToolScripts().changed(left=(), entered=self.doc_ids.taken())
        # Filled on demand: few tools are ever among the best, or looked through for a phrase.
        size = len(self.doc_ids.tools)
        self._covered: ChunkedArray[CoveredWords | None] = ChunkedArray(repeat(None, size))
        self._sequences: ChunkedArray[str | None] = ChunkedArray(repeat(None, size))
        self._fill_terms()

    @property
    def lexicon(self) -> Lexicon:
        """The tools of each term."""
        return Lexicon(self.postings, self._sequence, self._segmenter)

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Bm25Engine:
        """Return the same ranking over changed tools, sharing the unchanged parts."""
        change = self.doc_ids.changed(added=added, removed=removed)
        engine = Bm25Engine(segmenter=self._segmenter)
        engine.doc_ids = change.doc_ids
        left, entered = (
            [(doc_id, _kept_terms(tool, self._segmenter).impacts) for doc_id, tool in tools]
            for tools in (change.left, change.entered)
        )
        engine.postings = self.postings.changed(removed=left, added=entered)
        unread = {doc_id: None for doc_id, _ in change.entered}
        engine._covered = self._covered.changed(unread)
        engine._sequences = self._sequences.changed(unread)
        engine.scripts = self.scripts.changed(left=change.left, entered=change.entered)
        engine._fill_terms()
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

        In a catalog of several scripts each score is a share of what the query could reach
        among the tools of its script.
        """
        return best_of(self.views(query), self.scripts)

    def views(self, query: str) -> list[ScriptScores]:
        """Return the scores once for the tools of each script of the catalog.

        Words that no tool of the script has count as the catalog's rarest.
        """
        whole, sentences = self._read(query)
        known = self._known(whole)
        parts = self._parts(whole, known)
        values = self._sum(whole, parts)
        if sentences:
            weighted = [(part.posting, part.weight) for part in parts]
            own = [_places(parts, sentence) for sentence in sentences]
            values = with_best(values, weighted, own, self.scripts)
        of_sentences = [(each, self._known(each)) for each in sentences]
        views = []
        for group in self.scripts.groups or (OTHER,):
            most, share = self._reach(whole, known, group)
            most += max((self._reach(*each, group)[0] for each in of_sentences), default=0.0)
            views.append(ScriptScores(group, Scores(values, most), share))
        return views

    def _read(self, query: str) -> tuple[QueryTerms, list[QueryTerms]]:
        """Return the terms of a query, and those of its sentences if it has several."""
        whole = query_terms(query, self._segmenter)
        found = query_sentences(query, self._segmenter)
        sentences = [query_terms(sentence, self._segmenter) for sentence in found]
        # A very long text is cut, but not in the sentences that ask for something.
        weights = dict(whole.weights)
        for sentence in sentences:
            for term, weight in sentence.weights.items():
                weights.setdefault(term, weight)
        return (replace(whole, weights=weights) if sentences else whole), sentences

    def _parts(self, terms: QueryTerms, known: Iterable[_KnownTerm]) -> list[_Part]:
        """Return everything that adds to the scores of tools."""
        found, weights, size = list[_Part](), terms.weights, len(self.doc_ids)
        is_chinese = self.scripts.groups == (CJK,)
        if len(terms.pieces) + len(terms.stop_words) <= _MAX_NAME_WORDS:
            # Only names have stop words as terms: `get me` means github_get_me.
            words = terms.forms | terms.stop_words
            for word in sorted(terms.stop_words):
                posting, idf, _ = self._terms[word]
                if posting and len(posting) <= _MAX_NAMES:
                    named = array("d", [one for one in posting if self._is_named(int(one), words)])
                    found += [_Part(word, word, named, _STOP_WORD * idf)] if named else []
        for (term, weight), (posting, idf, _) in zip(weights.items(), known, strict=True):
            if posting:
                found.append(_Part(term, term, posting, weight * idf))
            found += [
                _Part(term, other, own, weight * idf)
                for other in self._kin_of(term, terms)
                if (own := self._terms[other].posting)
            ]
            synonyms = synonyms_of(term)
            # Among Chinese tools alone, a verb that they have says enough without others.
            if not synonyms or (posting and is_chinese and has_cjk(term)):
                continue
            postings = {
                other: own
                for other in synonyms
                if other not in weights and (own := self._terms[other].posting)
            }
            # They are as common as they are together: a rare synonym is not a rare wish.
            having = min(sum(map(len, postings.values())), size)
            value = weight * _RELATED * _idf(having, size)
            found += [_Part(term, other, own, value) for other, own in postings.items()]
        return found

    def _known(self, terms: QueryTerms) -> list[_KnownTerm]:
        """Return the entries of a query's terms."""
        if terms.stems:
            return [self._entry(term, terms) for term in terms.weights]
        return list(map(self._terms.__getitem__, terms.weights))

    def _entry(self, term: str, terms: QueryTerms) -> _KnownTerm:
        """Return the entry of a term of a query; its rarity is that of all its kin."""
        posting, idf, groups = self._terms[term]
        if kin := [self._terms[other] for other in self._kin_of(term, terms)]:
            having = len(posting or ()) + sum(len(other.posting or ()) for other in kin)
            idf = _idf(min(having, len(self.doc_ids)), len(self.doc_ids))
            for other in kin:
                groups |= other.groups
        return _KnownTerm(posting, idf, groups)

    def _kin_of(self, term: str, terms: QueryTerms) -> Sequence[str]:
        """Return the other terms of the index with the term's stem in the query's language.

        Definitions are stemmed as English; a request says in which language to read them. If
        no tool has the word, those that begin alike are taken: `contrato` for contract.
        """
        if (stem := terms.stems.get(term)) is None:
            return ()
        if not self._alike:
            alike = defaultdict[str, list[str]](list)
            for known in self.postings.terms():
                alike[known[:2]].append(known)
            self._alike.update(alike)
        # Those that begin alike, and not all of the index, are stemmed in a turn.
        start = stem[:2]
        near = self._alike.get(start, []) if start.isascii() else self._written_as(stem)
        if (kin := self._kin.get((terms.language, start))) is None:
            kin = defaultdict(list)
            for other, own in zip(near, stems_in(terms.language, near), strict=True):
                kin[own].append(other)
            self._kin[terms.language, start] = kin
        found = kin.get(stem, [])
        if not found and self._terms[term].posting is None and len(stem) >= _COGNATE:
            found = self._cognates[stem[:_COGNATE]]
        return [other for other in found if other not in terms.weights]

    def _written_as(self, stem: str) -> list[str]:
        """Return the terms in the script of a stem: an Arabic one has lost the article."""
        script = ord(stem[0]) >> 8
        alike = self._alike.items()
        return [each for start, own in alike if ord(start[0]) >> 8 == script for each in own]

    def _is_named(self, doc_id: int, words: frozenset[str]) -> bool:
        """Return True if words have a tool's name; of three, the first is mostly a server's."""
        tool = self.doc_ids.tools[doc_id]
        found = pieces(tool.name if tool else "", max_chars=MAX_WORD_CHARS)
        name = [form for piece in found for form in piece.forms]
        return words.issuperset(name[1:] if len(name) > 2 else name)

    def _sum(self, terms: QueryTerms, parts: Sequence[_Part]) -> Values:
        values = sum_impacts(
            [(part.posting, part.weight) for part in parts], len(self.doc_ids.tools)
        )
        if len(terms.characters) < 2:
            return values
        # A Chinese character is a part of many words: 权力 shares 权 with 权利 and means
        # something else. A tool with one of several characters alone is there by chance.
        single = [part.posting for part in parts if part.term in terms.characters]
        others = [part.posting for part in parts if part.term not in terms.characters]
        return drop_lone(values, single, others) if single else values

    def _reach(
        self, terms: QueryTerms, entries: Iterable[_KnownTerm], group: int
    ) -> tuple[float, float]:
        """Return the score that a query could reach in a script, and the share of known words.

        An unknown word counts as the rarest; an unknown compound is nothing that is missed.
        """
        known: list[float] = []
        missing: list[float] = []
        rarest = _idf(0, len(self.doc_ids))
        for (term, weight), (_, idf, groups) in zip(terms.weights.items(), entries, strict=True):
            if groups & group:
                known.append(weight * idf * _FULL_IMPACT)
            elif term not in terms.compounds:
                missing.append(weight * rarest * _FULL_IMPACT)
        return attainable(known + missing), len(known) / max(len(known) + len(missing), 1)

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return 1 and a share for the words of name and text that the query covers."""
        terms = query_terms(query, self._segmenter)
        of_name, of_text = terms.forms | terms.stop_words, terms.forms
        boosts = []
        for doc_id in doc_ids:
            name, texts = self._covered_words(doc_id)
            covered = max([len(of_text & text) / len(text) for text in texts], default=0.0)
            boost = 1.0 + _NAME_COVERED * len(of_name & name) / (len(name) or 1)
            boosts.append(boost + _TEXT_COVERED * covered)
        return boosts

    def _covered_words(self, doc_id: int) -> CoveredWords:
        """Return the words of a tool; two threads may read them, with equal results."""
        found, tool = self._covered[doc_id], self.doc_ids.tools[doc_id]
        if found is None:
            if tool is None:
                return CoveredWords(frozenset(), ())
            found = covered_words(tool, self.scripts.by_doc_id[doc_id], self._segmenter)
            self._covered.replace_equal(doc_id, found)
        return found

    def _sequence(self, doc_id: int) -> str:
        """Return the words of a tool in order; see `sequence_of`."""
        found, tool = self._sequences[doc_id], self.doc_ids.tools[doc_id]
        if found is None:
            found = "" if tool is None else tool_terms(tool, self._segmenter).sequence
            self._sequences.replace_equal(doc_id, found)
        return found

    def unmatched_in(self, query: str, group: int) -> list[str]:
        """Return the words of the query that no tool of the script has."""
        terms = query_terms(query, self._segmenter)
        return terms.unmatched(lambda term: bool(self._terms[term].groups & group))

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has."""
        terms = query_terms(query, self._segmenter)

        def known(term: str) -> bool:
            found = map(self.postings.get, (term, *self._kin_of(term, terms)))
            return any(has_tool(map(int, posting)) for posting in found if posting is not None)

        return terms.unmatched(known)

    def near_word(self, word: str, may_find: Callable[[int], bool]) -> str | None:
        """Return the word of names and descriptions that another is a typing error of.

        One letter is missing, doubled or too much, two have changed places, or one vowel of a
        long word stands for another; the first letter is right. Capitals begin names, and more
        changes make other words of right ones.

        Args:
            word: A word that no tool has.
            may_find: Returns True for a document that the caller may find.
        """
        found: Counter[str] = Counter()
        for form in one_letter_off(word):
            # Hundreds of words that are seldom right: their stems are not kept.
            term = english_stem(form) if form.isascii() else chunk_terms(form)[0][0]
            posting = islice(self.postings.get(term) or (), _MAX_ASKED)
            for doc_id in islice(filter(may_find, map(int, posting)), _MAX_LOOKED_AT):
                found[form] += any(form in text for text in self._covered_words(doc_id).texts)
        best = max(found, key=lambda form: (found[form], form), default="")
        return best if found[best] else None

    def reasons(
        self, query: str, doc_ids: Sequence[int], *, scripts: int = ALL_SCRIPTS
    ) -> list[Reasons]:
        """Return the score of each word for these tools; see `Explains`.

        Args:
            query: The query.
            doc_ids: The tools.
            scripts: The scripts that their scores may be from.
        """
        from tool_search.search.index.explanation import (  # noqa: PLC0415 - few ask why
            Reasons,
            ScorePart,
            WordSums,
            field_contributions,
        )

        views = [view for view in self.views(query) if view.group & scripts]
        found = []
        for doc_id in doc_ids:
            tool, scores = self.doc_ids.tools[doc_id], self._best_view(views, doc_id).scores
            score = float(scores.values[doc_id])
            if tool is None or not score or scores.attainable <= 0:
                found.append(Reasons((ScorePart("words", 1.0, 0.0),)))
                continue
            words = WordSums(scores.attainable)
            fields = field_contributions(tool, self._segmenter)
            for word, value, part in self._counted(query, doc_id, score):
                instead = None if part.term == part.asked else part.term
                words.add(word, value, fields[part.term], instead)
            found.append(
                Reasons((ScorePart("words", 1.0, score / scores.attainable),), words.sorted())
            )
        return found

    def _counted(self, query: str, doc_id: int, score: float) -> Iterator[tuple[str, float, _Part]]:
        """Yield what adds to a tool's score: the words of a query, and of its best sentence."""
        whole, sentences = self._read(query)
        written = {
            term: piece.original
            for piece in reversed(whole.pieces)
            for term in (*piece.words, *piece.compounds)
            if not piece.is_cjk
        }
        parts = self._parts(whole, self._known(whole))
        values = [part.weight * _impact(part.posting, doc_id) for part in parts]
        counted = list(range(len(parts)))
        if sentences and score > math.fsum(values) * _ROUNDED:
            own = [_places(parts, sentence) for sentence in sentences]
            counted += max(own, key=lambda places: math.fsum(values[place] for place in places))
        for place in counted:
            asked = parts[place].asked
            if values[place]:
                yield written.get(asked, asked), values[place], parts[place]

    def _best_view(self, views: Sequence[ScriptScores], doc_id: int) -> ScriptScores:
        own = self.scripts.by_doc_id[doc_id]
        mine = [view for view in views if view.group & own] or views
        return max(
            mine, key=lambda view: view.scores.values[doc_id] / (view.scores.attainable or 1.0)
        )

    def _fill_terms(self) -> None:
        """Start a table of terms; the one of an index that changed has other rarities."""
        know = partial(_know, self.postings, self.scripts, len(self.doc_ids))
        self._terms = BoundedCache(know, max_values=_MAX_KEPT, max_chars=2 * MAX_WORD_CHARS)
        self._alike: dict[str, list[str]] = {}
        self._kin: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._cognates = BoundedCache(
            partial(_begin_with, self._alike), max_values=_MAX_KEPT, max_chars=_COGNATE
        )


def _begin_with(alike: Mapping[str, Sequence[str]], start: str) -> list[str]:
    """Return the terms that begin so, of those that begin with the same two letters."""
    return [term for term in alike.get(start[:2], ()) if term.startswith(start)]


def _know(postings: Postings, scripts: ToolScripts, size: int, term: str) -> _KnownTerm:
    """Return the entry of any term; one that no tool has is as rare as can be."""
    posting = postings.get(term)
    groups = _groups_of(term, posting, scripts) if posting else 0
    return _KnownTerm(posting, _idf(len(posting or ()), size), groups)


def _idf(having: int, size: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), with the unseen tools in N.

    Source: Lucene's BM25Similarity, the form that is never negative.
    """
    return math.log(1.0 + (size + _UNSEEN_TOOLS - having + 0.5) / (having + 0.5))


def _groups_of(term: str, posting: Posting, scripts: ToolScripts) -> int:
    """Return the scripts of which a term is a word, and a tool has it.

    A word of another script than Latin is a word of its own script's tools alone, so that a
    tool in two languages is scored as if it had but one of them.
    """
    if len(scripts.groups) < 2:
        return ALL_SCRIPTS
    maybe = sum(scripts.groups) & languages_with(term)
    is_many, found = len(posting) >= _MANY_ENTRIES and has_numpy(), 0
    for entry in posting[:_FEW_ENTRIES] if is_many else posting:
        found |= scripts.by_doc_id[int(entry)]
        if found & maybe == maybe:
            return maybe
    if is_many:
        import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

        found = int(np.bitwise_or.reduce(scripts.kinds[np.asarray(posting).astype(np.intp)]))
    return found & maybe


def _places(parts: Sequence[_Part], sentence: QueryTerms) -> list[int]:
    """Return the places of the parts that a sentence asks for."""
    return [place for place, part in enumerate(parts) if part.asked in sentence.weights]


@lru_cache(maxsize=1024)
def _kept_terms(tool: Tool, segmenter: Segmenter | None) -> ToolTerms:
    """Return `tool_terms`, kept for tools that come and go with their server."""
    return tool_terms(tool, segmenter)


def _impact(posting: Posting, doc_id: int) -> float:
    """Return the impact of a term in a document; 0 if absent."""
    place = bisect_left(posting, doc_id)
    if place == len(posting) or int(posting[place]) != doc_id:
        return 0.0
    return posting[place] - doc_id


def build(tools: Iterable[Tool], options: EngineOptions) -> Bm25Engine:
    """Build the engine `bm25`.

    Raises:
        SearchError: The segmenter jieba is chosen and not installed.
    """
    segmenter, settings = options.load_segmenter(), options.settings
    listed = sorted(tools, key=attrgetter("name"))
    folder = settings.index_cache if settings else None
    if folder is None or len(listed) < _MIN_KEPT:
        return Bm25Engine(listed, segmenter=segmenter)
    if folder == "auto":
        from tool_search.search.vectors.cache import default_cache_path  # noqa: PLC0415 - sqlite3

        folder = str(default_cache_path().with_name("indexes"))
    files = IndexFiles(folder)
    key = catalog_key(listed, f"bm25 {__version__} {options.segmenter}", segmenter)
    with garbage_collection_off():
        kept = files.load(key, len(listed))
        engine = Bm25Engine(listed, segmenter=segmenter, kept=kept)
    if kept is None:
        files.save(key, KeptIndex(engine.postings.flat(), engine.scripts.found))
    return engine


def _read_postings(doc_ids: DocumentIds, segmenter: Segmenter | None) -> Postings:
    if len(doc_ids) >= _MIN_BULK and has_numpy():
        from tool_search.search.index.bulk import bulk_postings  # noqa: PLC0415 - numpy

        return Postings.of_flat(bulk_postings(doc_ids.taken(), segmenter))
    vocabulary = Vocabulary()
    return Postings(
        (doc_id, tool_impacts(tool, segmenter, vocabulary)) for doc_id, tool in doc_ids.taken()
    )
