"""tooldiscovery's two searches: BM25 over one text, and substrings (`lexical`).

In the text of BM25 a tool's name is repeated three times, its namespace and each of its
tags twice; then comes the text that the substring search reads. Words are cut as Bleve's
standard analyzer cuts them: whole identifiers, in lower case, without stop words; each
Chinese character is a word. Operators have no meaning.

Source: tooldiscovery, package `search`, https://github.com/jonwraymond/tooldiscovery;
Unicode Standard Annex 29, word boundaries; https://blevesearch.com/docs/Analyzers/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from tool_search.adapters.compat.weighted_bm25 import Bm25Recipe, WeightedBm25Index
from tool_search.core.catalog.tool import Tool
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.ranking import Scores
from tool_search.search.index.storage import ChunkedArray, DocumentIds
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.stop_words import STOP_WORDS
from tool_search.search.text.tokenizer import normalized

if TYPE_CHECKING:
    from tool_search.config.search import SearchSettings

__all__ = [
    "Boosts",
    "LexicalEngine",
    "build",
    "build_lexical",
    "normalized_tag",
    "tooldiscovery_recipe",
    "tooldiscovery_tokens",
]


_IN_NAME = 100
_IS_NAME = 50
_IN_SPACE = 50
_IN_TEXT = 10
_MAX_POINTS = _IN_NAME + _IS_NAME + _IN_SPACE
# Scores are linear in points and start high, so that the default floor drops no hit:
# tooldiscovery has no floor.
_BASE = 0.5
_SPAN = 1.5
_LEXICAL_TEXT_FIELDS: tuple[FieldName, ...] = ("name", "aliases", "server", "tags", "description")
_MAX_LEXICAL_FIELD_CHARS = 20_000
_MAX_UNMATCHED_CHARS = 100
_MAX_PARTS = 96


class LexicalEngine:
    """A ranking by substrings: tooldiscovery's default search.

    A query that is in the name has 100 points, and 50 more if it is the name; one that is in
    the namespace or server has 50; one that is in neither, but in the text, has 10. Nothing
    is cut into words: a query of two words must occur literally. Points order the tools, ties
    by name.

    Args:
        tools: The tools to search, in any order.

    Source: https://github.com/jonwraymond/tooldiscovery, package `index`, the default
    searcher of an index.
    """

    __slots__ = ("_texts", "doc_ids")

    max_boost = 1.0

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.doc_ids = DocumentIds(tools)
        self._texts = ChunkedArray(_texts(tool) for _, tool in self.doc_ids.taken())

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> LexicalEngine:
        """Return the same ranking over changed tools, sharing the unchanged parts."""
        change = self.doc_ids.changed(added=added, removed=removed)
        engine = LexicalEngine()
        engine.doc_ids = change.doc_ids
        left = {doc_id: _NO_TEXTS for doc_id, _ in change.left}
        entered = {doc_id: _texts(tool) for doc_id, tool in change.entered}
        engine._texts = self._texts.changed({**left, **entered})
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`."""
        parts = _parts(query)
        if not parts:
            return Scores([0.0] * len(self._texts), 0.0)
        return Scores([_best(parts, texts) for texts in self._texts], 1.0)

    def boosts(self, _query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return 1 for each tool: points are not boosted."""
        return [1.0] * len(doc_ids)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the lines of the query that no tool has."""

        def is_known(part: str) -> bool:
            having = [doc_id for doc_id, texts in enumerate(self._texts) if _score(part, texts)]
            return bool(having) and has_tool(having)

        parts = (part for part in _parts(query) if len(part) <= _MAX_UNMATCHED_CHARS)
        return [part for part in parts if not is_known(part)]


class _Texts(NamedTuple):
    """The compared texts of a tool, normalized as names are."""

    name: str
    space: str
    text: str


_NO_TEXTS = _Texts("", "", "")


def _texts(tool: Tool) -> _Texts:
    found = field_texts(tool)
    lines = [
        text[:_MAX_LEXICAL_FIELD_CHARS]
        for field in _LEXICAL_TEXT_FIELDS
        for text in found.get(field, ())
    ]
    lines += [written for tag in tool.tags if (written := normalized_tag(tag)) != tag]
    return _Texts(
        name=normalized(tool.name),
        space=normalized(f"{tool.namespace or ''}\n{tool.server or ''}"),
        text=normalized("\n".join(lines)),
    )


def _parts(query: str) -> tuple[str, ...]:
    """Return the lines of a query, which operators make: a or b is two of them."""
    lines = map(normalized, query.splitlines()[:_MAX_PARTS])
    return tuple(dict.fromkeys(line for line in lines if any(map(str.isalnum, line))))


def _best(parts: Iterable[str], texts: _Texts) -> float:
    return max(_score(part, texts) for part in parts)


def _score(part: str, texts: _Texts) -> float:
    points = 0
    if part in texts.name:
        points += _IN_NAME
        if part == texts.name:
            points += _IS_NAME
    if part in texts.space:
        points += _IN_SPACE
    if not points and part in texts.text:
        points = _IN_TEXT
    return _BASE + _SPAN * points / _MAX_POINTS if points else 0.0


_TEXT_FIELDS: tuple[FieldName, ...] = ("name", "aliases", "server", "tags", "description")
_MAX_FIELD_CHARS = 20_000
_MAX_TAG_CHARS = 64
_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# A mark between two letters (don't, e.g, a:b) or two digits (3,5) is part of a word.
_WORD = re.compile(
    rf"[{_CJK}]|(?:[^\W{_CJK}]|(?<=[^\W\d_])['’.:·](?=[^\W\d_])|(?<=\d)['’.,;](?=\d))+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """The number of repetitions of each part of a tool; 0 means the default."""

    name: int = 3
    namespace: int = 2
    tags: int = 2


def tooldiscovery_tokens(text: str) -> list[str]:
    """Return the words of a text, in order, without stop words.

    >>> tooldiscovery_tokens("Create the issue with create_issue: don't use file-read")
    ['create', 'issue', 'create_issue', "don't", 'use', 'file', 'read']
    """
    words = (found[0] for found in _WORD.finditer(text[:_MAX_FIELD_CHARS].lower()))
    return [word for word in words if word.strip("_") and word not in STOP_WORDS]


def normalized_tag(tag: str) -> str:
    """Return a tag as tooldiscovery writes it, however its author did.

    Its letters and digits are those of any script, which tooldiscovery would drop.

    >>> normalized_tag("  TAG ONE "), normalized_tag("tag-one"), normalized_tag("a/b")
    ('tag-one', 'tag-one', 'ab')
    """
    joined = re.sub(r"\s+", "-", tag.strip().lower())
    kept = "".join(char for char in joined if char.isalnum() or char in "-_.")
    return kept[:_MAX_TAG_CHARS]


def tooldiscovery_recipe(boosts: Boosts | None = None) -> Bm25Recipe:
    """Return the ranking as a recipe.

    The server counts as a namespace if a tool has no other.

    Args:
        boosts: The number of repetitions of the parts of a tool.
    """
    given, usual = boosts or Boosts(), Boosts()
    name = given.name or usual.name
    namespace = given.namespace or usual.namespace
    tags = given.tags or usual.tags

    def weights(tool: Tool) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for times, texts in (
            (name, [tool.name]),
            (namespace, [tool.namespace or tool.server or ""]),
            (tags, list(map(normalized_tag, tool.tags))),
            (1, _searched_texts(tool)),
        ):
            for token in chain.from_iterable(map(tooldiscovery_tokens, texts)):
                counts[token] += times
        return counts

    return Bm25Recipe(tokens=tooldiscovery_tokens, weights=weights, order=str)


def _searched_texts(tool: Tool) -> list[str]:
    found = field_texts(tool)
    return [text for field in _TEXT_FIELDS for text in found.get(field, ())]


def build(tools: Iterable[Tool], settings: SearchSettings) -> WeightedBm25Index:
    """Build the index of the preset `tooldiscovery`.

    Args:
        tools: The tools to search, in any order.
        settings: The `search` section.
    """
    given = settings.boosts
    boosts = None
    if given is not None:
        boosts = Boosts(name=given.name, namespace=given.namespace, tags=given.tags)
    recipe = tooldiscovery_recipe(boosts)
    return WeightedBm25Index(tools, recipe, min_relevance=settings.min_relevance)


def build_lexical(tools: Iterable[Tool], _options: EngineOptions) -> LexicalEngine:
    """Build the engine `lexical`."""
    return LexicalEngine(tools)
