"""Which words of a query stand in which field of a tool."""

from __future__ import annotations

from tool_search.catalog import Tool
from tool_search.search.documents import FieldName, field_texts
from tool_search.search.query import query_terms
from tool_search.search.tokenizer import pieces

__all__ = ["matched_words"]

_LONGEST_FIELD = 20_000


def matched_words(query: str, tool: Tool) -> dict[FieldName, list[str]]:
    """The query's words by the field that has them, as the default engine cuts words.

    A run of Chinese shows the parts of it that were found, the longest alone.
    """
    asked = query_terms(query).pieces
    found: dict[FieldName, list[str]] = {}
    for field, texts in field_texts(tool).items():
        terms = {
            term
            for text in texts
            for piece in pieces(text, longest=_LONGEST_FIELD)
            for term in (*piece.words, *piece.compounds)
        }
        words: dict[str, None] = {}
        for piece in asked:
            had = [term for term in (*piece.words, *piece.compounds) if term in terms]
            words.update(dict.fromkeys(_longest(had) if piece.is_cjk else had and [piece.original]))
        if words:
            found[field] = list(words)
    return found


def _longest(parts: list[str]) -> list[str]:
    return [part for part in parts if not any(part in other and part != other for other in parts)]
