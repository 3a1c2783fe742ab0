"""The reasons of a ranking as JSON values, for the command and the inspector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import ToolSearchIndex
from tool_search.search.index.explanation import Explanation
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.query import query_terms
from tool_search.search.text.tokenizer import pieces

__all__ = ["explained_matches", "explanation_object", "matched_words"]

# Long fields are cut as the index cuts them, so that explaining stays quick.
_MAX_FIELD_CHARS = 20_000


def explained_matches(
    index: ToolSearchIndex, catalog: ToolCatalog, query: str, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the reasons for which a query found tools, by name.

    Each has `fields`, the matched words by field, and `explanation` if the engine has one.
    Names that the catalog lacks are left out.

    Raises:
        SearchError: The engine's embedder failed.
    """
    found: dict[str, dict[str, Any]] = {
        name: {"fields": matched_words(query, catalog[name])} for name in names if name in catalog
    }
    if isinstance(index, RankedIndex):
        for each in index.explain(query, list(found)):
            found[each.tool]["explanation"] = explanation_object(each)
    return found


def matched_words(query: str, tool: Tool) -> dict[FieldName, list[str]]:
    """Return the query's words by the field that has them, as the default engine cuts words.

    A run of Chinese shows the parts of it that were found, the longest alone.
    """
    asked = query_terms(query).pieces
    found: dict[FieldName, list[str]] = {}
    for field, texts in field_texts(tool).items():
        terms = {
            term
            for text in texts
            for piece in pieces(text, max_chars=_MAX_FIELD_CHARS)
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


def explanation_object(found: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values; numbers have six decimals."""
    return {
        "named": found.is_named,
        "sum": _number(found.sum),
        "boost": _number(found.boost),
        "sides": [
            {
                "side": side.name,
                "weight": _number(side.weight),
                "score": _number(side.score),
                "share": _number(side.share),
            }
            for side in found.reasons.sides
        ],
        "words": [
            {
                "word": word.word,
                "side": word.side,
                "share": _number(word.share),
                "fields": {field: _number(share) for field, share in word.fields.items()},
                **({"instead": list(word.instead)} if word.instead else {}),
            }
            for word in found.reasons.words
        ],
        "operators": _number(found.operators),
        "learned": _number(found.learned),
    }


def _number(value: float) -> float:
    return round(value, 6)
