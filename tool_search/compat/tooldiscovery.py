"""tooldiscovery's BM25: one text a tool, in which what counts is repeated.

A tool's name stands in it three times, its namespace and each of its tags twice,
then the text that its substring search looks through (`lexical`). Words are cut as
Bleve's standard analyzer cuts them: whole identifiers, in lower case, without
function words; each Chinese character is a word. Signs of a query say nothing.

Source: tooldiscovery, package `search`, https://github.com/jonwraymond/tooldiscovery;
Unicode Standard Annex 29, word boundaries; https://blevesearch.com/docs/Analyzers/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from tool_search.catalog.catalog import Tool
from tool_search.compat.weighted_bm25 import Bm25Recipe
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.stop_words import FUNCTION_WORDS

__all__ = ["Boosts", "tooldiscovery_recipe", "tooldiscovery_tokens"]

_TEXT_FIELDS: tuple[FieldName, ...] = ("name", "aliases", "server", "tags", "description")
_LONGEST_FIELD = 20_000
_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# One mark between two letters (don't, e.g, a:b) or two digits (3,5) is inside a word.
_WORD = re.compile(
    rf"[{_CJK}]|(?:[^\W{_CJK}]|(?<=[^\W\d_])['’.:·](?=[^\W\d_])|(?<=\d)['’.,;](?=\d))+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """How often each part of a tool is repeated; 0 means the default."""

    name: int = 3
    namespace: int = 2
    tags: int = 2


def tooldiscovery_tokens(text: str) -> list[str]:
    """The words of a text, in order, function words left out.

    >>> tooldiscovery_tokens("Create the issue with create_issue: don't use file-read")
    ['create', 'issue', 'create_issue', "don't", 'use', 'file', 'read']
    """
    words = (found[0] for found in _WORD.finditer(text[:_LONGEST_FIELD].lower()))
    return [word for word in words if word.strip("_") and word not in FUNCTION_WORDS]


def tooldiscovery_recipe(boosts: Boosts | None = None) -> Bm25Recipe:
    """The ranking.

    The server counts as a namespace where a tool has no other.

    Args:
        boosts: Of the parts of a tool.
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
            (tags, tool.tags),
            (1, _searched_texts(tool)),
        ):
            for token in chain.from_iterable(map(tooldiscovery_tokens, texts)):
                counts[token] += times
        return counts

    return Bm25Recipe(tokens=tooldiscovery_tokens, weights=weights, order=str)


def _searched_texts(tool: Tool) -> list[str]:
    found = field_texts(tool)
    return [text for field in _TEXT_FIELDS for text in found.get(field, ())]
