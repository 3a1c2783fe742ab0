"""Why a tool was found: what gave it its score, and which words stand in which field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tool_search.catalog.catalog import Tool
from tool_search.search.index.explanation import Explanation, WordShare
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.query import query_terms
from tool_search.search.text.tokenizer import pieces

__all__ = [
    "HOW_SCORES_ARE_MADE",
    "explanation_lines",
    "explanation_object",
    "matched_words",
    "places",
]

HOW_SCORES_ARE_MADE = "a score is 1 - e^-(sum x boost)"
_LONGEST_FIELD = 20_000
_MOST_WORDS = 12


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


def explanation_object(found: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it; numbers to six decimals."""
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


def explanation_lines(found: Explanation) -> Iterator[str]:
    """The same for people, a part a line, none that gave nothing."""
    if found.is_named:
        yield "named by the query"
        return
    yield f"sum {found.sum:.2f} x boost {found.boost:.2f}"
    sides = found.reasons.sides
    for side in sides:
        if len(sides) > 1 or side.name == "meaning":
            yield f"{side.name} {side.share:.2f} = weight {side.weight:.2f} x {side.score:.2f}"
        words = [word for word in found.reasons.words if word.side == side.name]
        yield from map(_word_line, words[:_MOST_WORDS])
        if rest := words[_MOST_WORDS:]:
            yield f"- {len(rest)} more words {sum(word.share for word in rest):.2f}"
    for name, share in (("operators", found.operators), ("learned", found.learned)):
        if share:
            yield f"{name} {share:.2f}"


def places(found: Mapping[FieldName, Iterable[str]]) -> str:
    """Words by field in one line."""
    return "; ".join(f"{field}: {', '.join(words)}" for field, words in found.items())


def _word_line(word: WordShare) -> str:
    fields = ", ".join(f"{field} {share:.2f}" for field, share in word.fields.items())
    instead = f" (as {', '.join(word.instead)})" if word.instead else ""
    return f"- {word.word}{instead} {word.share:.2f}: {fields}"


def _number(value: float) -> float:
    return round(value, 6)
