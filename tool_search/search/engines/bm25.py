"""The default engine: BM25F over the fields of a definition, without a model.

Each field's term frequency is divided by the field's length norm, the fields are added
with their weights, and only the sum is saturated. Among tools with close scores, a tool
is boosted if the query covers more of its name and description, and if it has the query's
words next to each other. A request of several sentences is scored as a whole and by its
best sentence.

Source: Robertson, Zaragoza, Taylor, "Simple BM25 Extension to Multiple Weighted Fields",
CIKM 2004; Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009, sections 3.1 and 3.6.
"""

from __future__ import annotations

import gc
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from tool_search import __version__
from tool_search.core.catalog.tool import Tool
from tool_search.search.engines.options import EngineOptions
from tool_search.search.engines.script_scores import (
    ScriptScores,
    best_of,
    share_covered,
    value_in,
    with_best,
)
from tool_search.search.engines.stored_terms import (
    NO_TERMS,
    StoredTerms,
    has_in_order,
    is_named,
    share_of_pairs,
    words_of,
)
from tool_search.search.engines.term_table import KnownTerm, Row, TermTable
from tool_search.search.index.disk import IndexFiles, catalog_key
from tool_search.search.index.filter import Lexicon
from tool_search.search.index.ranking import Scores, attainable
from tool_search.search.index.storage import (
    ChunkedArray,
    DocumentIds,
    Posting,
    Postings,
    has_numpy,
    sum_impacts,
)
from tool_search.search.text.documents import (
    FieldName,
    ToolTerms,
    Vocabulary,
    tool_impacts,
    tool_terms,
)
from tool_search.search.text.query import QueryTerms, query_sentences, query_terms
from tool_search.search.text.scripts import ALL_SCRIPTS, OTHER, ToolScripts
from tool_search.search.text.tokenizer import Segmenter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.search.index.explanation import Reasons, WordSums
    from tool_search.search.index.scores import Values

__all__ = [
    "Bm25Engine",
    "ScriptScores",
    "build",
    "drop_single_character_matches",
]


# A Chinese character is a part of many words: 权力 shares 权 with 权利 and means something
# else. If a query has several characters, a tool with one of them alone is there by chance.


def drop_single_character_matches(
    values: list[float] | NDArray[np.float64],
    characters: Sequence[Posting],
    words: Sequence[Posting],
) -> list[float] | NDArray[np.float64]:
    """Set scores to 0 that come from a single Chinese character.

    Args:
        values: One score for each document id; they may be changed.
        characters: Postings of the query's single characters.
        words: Postings of all other terms that gave a score.
    """
    if isinstance(values, list):
        counts = Counter(map(int, chain.from_iterable(characters)))
        covered = set(map(int, chain.from_iterable(words)))
        for doc_id, count in counts.items():
            if count == 1 and doc_id not in covered:
                values[doc_id] = 0.0
        return values
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    met = np.zeros(len(values), np.intp)
    for posting in characters:
        met[np.frombuffer(posting).astype(np.intp)] += 1
    for posting in words:
        met[np.frombuffer(posting).astype(np.intp)] += 2
    values[met == 1] = 0.0
    return values


# A word that is once in the name has an impact of 0.55, once in the description of 0.33.
_FULL_IMPACT = 0.4
_NAME_COVERED = 0.3
_TEXT_COVERED = 0.3
_HAS_PAIRS = 0.2
# A longer query does not name a tool, and a common stop word names none.
_MAX_NAME_WORDS = 5
_MAX_NAMES = 200
# `how to cancel an order` means cancel_order before how_to.
_ONLY_STOP_WORDS = 0.5
# A smaller catalog is read in less time than a file takes to pay.
_MIN_KEPT = 500
# Loading numpy takes as long as it saves in a smaller one.
_MIN_BULK = 4_000


class Bm25Engine:
    """BM25F; see the module.

    Args:
        tools: The tools to search, in any order.
        segmenter: Cuts Chinese; None for characters and bigrams.
        kept: The postings of exactly these tools; None to read the tools.

    Attributes:
        scripts: The scripts of the tools.
    """

    __slots__ = ("_postings", "_segmenter", "_stored", "_table", "doc_ids", "scripts")

    max_boost = 1.0 + _NAME_COVERED + _TEXT_COVERED + _HAS_PAIRS

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        segmenter: Segmenter | None = None,
        kept: dict[str, Posting] | None = None,
    ) -> None:
        self._segmenter = segmenter
        with _garbage_collection_off():
            self.doc_ids = DocumentIds(tools)
            if kept is not None:
                self._postings = Postings.of_terms(kept)
            else:
                self._postings = _read_postings(self.doc_ids, segmenter)
            self.scripts = ToolScripts().changed(left=(), entered=self.doc_ids.taken())
        # Filled on demand: few tools are ever among the best, and reading them for it took a
        # third of the time to build an index.
        self._stored: ChunkedArray[StoredTerms | None] = ChunkedArray(
            repeat(None, len(self.doc_ids.tools))
        )
        self._fill_table()

    @property
    def postings(self) -> Postings:
        """The tools of each term."""
        return self._postings

    @property
    def lexicon(self) -> Lexicon:
        """The tools of each term."""
        return Lexicon(
            self._postings, lambda doc_id: self._stored_terms(doc_id).sequence, self._segmenter
        )

    def _stored_terms(self, doc_id: int) -> StoredTerms:
        """Return the stored terms of a tool; two threads may make them, with equal results."""
        stored = self._stored[doc_id]
        if stored is None:
            tool = self.doc_ids.tools[doc_id]
            stored = (
                NO_TERMS if tool is None else StoredTerms.of(_changed_terms(tool, self._segmenter))
            )
            self._stored.replace_equal(doc_id, stored)
        return stored

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> Bm25Engine:
        """Return the same ranking over changed tools, sharing the unchanged parts."""
        change = self.doc_ids.changed(added=added, removed=removed)
        entered = [
            (doc_id, _changed_terms(tool, self._segmenter)) for doc_id, tool in change.entered
        ]
        engine = Bm25Engine(segmenter=self._segmenter)
        engine.doc_ids = change.doc_ids
        engine._postings = self._postings.changed(
            removed=[(doc_id, self._stored_terms(doc_id).terms) for doc_id, _ in change.left],
            added=[(doc_id, own.impacts) for doc_id, own in entered],
        )
        engine._stored = self._stored.changed(
            {doc_id: StoredTerms.of(own) for doc_id, own in entered}
        )
        engine.scripts = self.scripts.changed(left=change.left, entered=change.entered)
        engine._fill_table()
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`.

        In a catalog of several scripts each score is a share of what the query could reach
        among the tools of its script.
        """
        return best_of(self.views(query), self.scripts)

    def views(self, query: str) -> list[ScriptScores]:
        """Return the scores once for the tools of each script of the catalog.

        Words that no tool of the script has count as the catalog's rarest, and their
        synonyms in other languages are searched. A request of several sentences is scored as
        a whole and by the best of them.
        """
        views = self._views_of(query)
        sentences = query_sentences(query, self._segmenter)
        if not sentences:
            return views
        found = zip(*map(self._views_of, sentences), strict=True)
        return [
            view._replace(scores=with_best(view, [each.scores for each in own], self.scripts))
            for view, own in zip(views, found, strict=True)
        ]

    def _views_of(self, text: str) -> list[ScriptScores]:
        """Return the scores of a text as a whole."""
        terms, table = query_terms(text, self._segmenter), self._table
        asked = [(term, weight, table[term]) for term, weight in terms.weights.items()]
        full = _full_values(terms, asked, table.idf(0))
        named = list(self._named_stop_words(terms))
        # By the rows of synonyms: scripts that share them share the scores.
        sums: dict[tuple[int, ...], Values] = {}
        views: list[ScriptScores] = []
        for group in self.scripts.groups or (OTHER,):
            rows = self._synonyms(terms.weights, group)
            few = group if table.has_few(group) else 0
            key = (few, *(id(row) for _, row, _ in rows))
            values = sums.get(key)
            if values is None:
                values = sums[key] = self._sum(terms, asked, named, rows, few)
            known = [value for value, _, groups in full if groups & group]
            missing = [value for _, value, groups in full if not groups & group and value]
            share = len(known) / max(len(known) + len(missing), 1)
            views.append(ScriptScores(group, Scores(values, attainable(known + missing)), share))
        return views

    def _named_stop_words(self, terms: QueryTerms) -> Iterator[tuple[str, Posting, float]]:
        """Yield stop words with the tools that the query names with them, and their weights."""
        if len(terms.pieces) + len(terms.stop_words) > _MAX_NAME_WORDS:
            return
        for word in sorted(terms.stop_words):
            # Only names have stop words as terms.
            posting = self._postings.get(word) or ()
            if not posting or len(posting) > _MAX_NAMES:
                continue
            named, in_order = array("d"), array("d")
            for entry in posting:
                tool = self.doc_ids.tools[int(entry)]
                if tool is None:
                    continue
                name = words_of(tool)
                if is_named(terms, name):
                    named.append(entry)
                elif has_in_order(terms, name):
                    in_order.append(entry)
            idf = self._table[word].idf
            if named:
                yield word, named, idf
            if in_order:
                yield word, in_order, idf * _ONLY_STOP_WORDS

    def _sum(
        self,
        terms: QueryTerms,
        asked: Sequence[tuple[str, float, KnownTerm]],
        named: Sequence[tuple[str, Posting, float]],
        rows: Sequence[tuple[str, Row, float]],
        few: int,
    ) -> Values:
        """Return the scores of a text for all tools, or for those of a script with few."""
        table = self._table
        weighted: list[tuple[Posting, float]] = []
        characters: list[Posting] = []
        for term, weight, (whole, idf, _) in asked:
            posting = table.own_posting(term, few) if few else whole
            if posting:
                weighted.append((posting, weight * idf))
                if term in terms.characters:
                    characters.append(posting)
        for _, tools, value in named:
            if entries := table.entries_in(tools, few) if few else tools:
                weighted.append((entries, value))
        weighted += [(posting, value) for _, row, value in rows for posting in row.postings]
        scores = sum_impacts(weighted, len(self.doc_ids.tools))
        if characters and len(terms.characters) > 1:
            single = set(map(id, characters))
            words = [posting for posting, _ in weighted if id(posting) not in single]
            scores = drop_single_character_matches(scores, characters, words)
        return scores

    def boosts(
        self, query: str, doc_ids: Sequence[int], *, is_text: bool = True
    ) -> Sequence[float]:
        """Return 1 and a share for the words of name and text that the query covers.

        And a share for pairs of neighbouring words that are neighbours in the definition,
        unless the query is a list of words and not a text.
        """
        return self.bounded_boosts(query, doc_ids, [0.0] * len(doc_ids), is_text=is_text)

    def bounded_boosts(
        self, query: str, doc_ids: Sequence[int], least: Sequence[float], *, is_text: bool = True
    ) -> Sequence[float]:
        """Return `boosts`; one that is below the least that matters may be lower still."""
        terms = query_terms(query, self._segmenter)
        both, stop_words = terms.forms.intersection, terms.stop_words
        boosts, kinds = [], self.scripts.by_doc_id
        for doc_id, floor in zip(doc_ids, least, strict=True):
            stored = self._stored_terms(doc_id)
            name, text = stored.name, stored.text
            covered, pairs = len(both(name)) / (len(name) or 1), 0.0
            if not stop_words.isdisjoint(name) and is_named(terms, name):
                covered, pairs = 1.0, 1.0
            elif 1.0 + _NAME_COVERED * covered + _TEXT_COVERED + _HAS_PAIRS < floor:
                boosts.append(1.0)
                continue
            boost = 1.0 + _TEXT_COVERED * share_covered(text, terms.forms, kinds[doc_id])
            boost += _NAME_COVERED * covered
            if not pairs and is_text and boost + _HAS_PAIRS >= floor:
                pairs = share_of_pairs(terms, stored)
            boosts.append(boost + _HAS_PAIRS * pairs)
        return boosts

    def unmatched_in(self, query: str, group: int) -> list[str]:
        """Return the words of the query that no tool of the script has."""
        known = partial(self._table.is_known, group=group)
        return query_terms(query, self._segmenter).unmatched(known)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has."""

        def known(term: str) -> bool:
            posting = self._postings.get(term)
            return posting is not None and has_tool(map(int, posting))

        return query_terms(query, self._segmenter).unmatched(known)

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
        sentences = {text: self._views_of(text) for text in query_sentences(query, self._segmenter)}
        found = []
        for doc_id in doc_ids:
            tool, (group, scores, _) = self.doc_ids.tools[doc_id], self._best_view(views, doc_id)
            score = float(scores.values[doc_id])
            if tool is None or not score or scores.attainable <= 0:
                found.append(Reasons((ScorePart("words", 1.0, 0.0),)))
                continue
            words = WordSums(scores.attainable)
            fields = field_contributions(tool, self._segmenter)
            self._add_words(words, query, group, doc_id, fields)
            if sentences:
                best = max(sentences, key=lambda text: value_in(sentences[text], group, doc_id))
                self._add_words(words, best, group, doc_id, fields)
            found.append(
                Reasons((ScorePart("words", 1.0, score / scores.attainable),), words.sorted())
            )
        return found

    def _add_words(
        self,
        words: WordSums,
        text: str,
        group: int,
        doc_id: int,
        fields: Mapping[str, Mapping[FieldName, float]],
    ) -> None:
        """Add the score of each word of a text for a tool."""
        terms = query_terms(text, self._segmenter)
        written = {
            term: piece.original
            for piece in reversed(terms.pieces)
            for term in (*piece.words, *piece.compounds)
            if not piece.is_cjk
        }
        for term, weight in terms.weights.items():
            posting, idf, _ = self._table[term]
            if impact := _impact(posting, doc_id):
                value = weight * idf * impact
                words.add(written.get(term, term), value, fields[term])
        for word, named, value in self._named_stop_words(terms):
            if impact := _impact(named, doc_id):
                words.add(word, value * impact, fields[word])
        for term, row, value in self._synonyms(terms.weights, group):
            for other in row.words:
                if impact := _impact(self._postings.get(other), doc_id):
                    added = value * impact**row.power
                    words.add(written.get(term, term), added, fields[other], other)

    def _best_view(self, views: Sequence[ScriptScores], doc_id: int) -> ScriptScores:
        own = self.scripts.by_doc_id[doc_id]
        mine = [view for view in views if view.group & own] or views
        return max(
            mine, key=lambda view: view.scores.values[doc_id] / (view.scores.attainable or 1.0)
        )

    def _synonyms(self, weights: Mapping[str, float], group: int) -> list[tuple[str, Row, float]]:
        """Return the verbs of the query with the row of their synonyms and its weight."""
        found = []
        for term, weight in weights.items():
            row = self._table.row(term, weights, group)
            if row is not None:
                found.append((term, row, weight * row.idf * row.score))
        return found

    def _fill_table(self) -> None:
        """Start a table of terms; the one of an index that changed has other rarities."""
        self._table = TermTable(self._postings, self.scripts, len(self.doc_ids))


def _full_values(
    terms: QueryTerms, asked: Iterable[tuple[str, float, KnownTerm]], rarest: float
) -> list[tuple[float, float, int]]:
    """Return the largest value of each term if it is known, and if not, with its scripts.

    An unknown word counts as the rarest; an unknown compound is nothing that is missed.
    """
    return [
        (
            weight * entry.idf * _FULL_IMPACT,
            0.0 if term in terms.compounds else weight * rarest * _FULL_IMPACT,
            entry.groups,
        )
        for term, weight, entry in asked
    ]


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Pause the garbage collector, which would visit all new objects in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@lru_cache(maxsize=1024)
def _changed_terms(tool: Tool, segmenter: Segmenter | None) -> ToolTerms:
    """Return `tool_terms`, cached for tools that come and go with their server."""
    return tool_terms(tool, segmenter)


def _impact(posting: Posting | None, doc_id: int) -> float:
    """Return the impact of a term in a document; 0 if absent."""
    place = bisect_left(posting or (), doc_id)
    if posting is None or place == len(posting) or int(posting[place]) != doc_id:
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
    with _garbage_collection_off():
        kept = files.load(key, len(listed))
        engine = Bm25Engine(listed, segmenter=segmenter, kept=kept)
    if kept is None:
        files.save(key, engine.postings.by_term())
    return engine


def _read_postings(doc_ids: DocumentIds, segmenter: Segmenter | None) -> Postings:
    if len(doc_ids) >= _MIN_BULK and has_numpy():
        from tool_search.search.index.bulk import bulk_postings  # noqa: PLC0415 - numpy

        return Postings.of_terms(bulk_postings(doc_ids.taken(), segmenter))
    vocabulary = Vocabulary()
    return Postings(
        (doc_id, tool_impacts(tool, segmenter, vocabulary)) for doc_id, tool in doc_ids.taken()
    )
