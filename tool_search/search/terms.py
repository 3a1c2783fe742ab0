"""What each term of a tool's definition is worth, whatever else is in the catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from tool_search.catalog import Tool
from tool_search.search.documents import FieldName, field_texts
from tool_search.search.postings import exact_impact
from tool_search.search.tokenizer import Piece, Segmenter, chunk_pieces, chunks

__all__ = ["FIELD_WEIGHTS", "FieldWeight", "ToolTerms", "tool_terms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWeight:
    """How a field counts.

    Attributes:
        weight: What one occurrence is worth.
        b: How much a long field is held against its terms, from 0 to 1.
        typical_length: The length, in words, at which `b` changes nothing.
    """

    weight: float
    b: float = 0.5
    typical_length: float


# The lengths are constants and not the catalog's averages, so that a tool's impacts
# depend on the tool alone: a catalog that changes keeps every posting it has.
FIELD_WEIGHTS: Mapping[FieldName, FieldWeight] = {
    "name": FieldWeight(weight=2.5, typical_length=3),
    "aliases": FieldWeight(weight=2.0, typical_length=3),
    "server": FieldWeight(weight=0.5, typical_length=1),
    "tags": FieldWeight(weight=1.0, typical_length=3),
    "description": FieldWeight(weight=1.0, typical_length=15),
    "parameters": FieldWeight(weight=0.5, typical_length=5),
    "parameter_texts": FieldWeight(weight=0.7, b=0.2, typical_length=20),
}

_K1 = 2.0
_LONGEST_FIELD = 20_000
_MOST_TERMS = 2_000
_MOST_FORMS = 128
# Characters and bigrams together are about four terms for each Chinese word of two
# characters; half of that is taken, as Chinese says the same in fewer words.
_CJK_LENGTH = 0.5


class ToolTerms(NamedTuple):
    """What an index keeps of a definition.

    Attributes:
        impacts: What each term is worth: tf / (tf + k1), below 1, where tf is the sum
            over fields of weight * count / (1 - b + b * length / typical length).
        name: The different words of the name, before stemming.
        text: The different words of name and description, before stemming.
    """

    impacts: dict[str, float]
    name: tuple[str, ...]
    text: tuple[str, ...]


def tool_terms(tool: Tool, segmenter: Segmenter | None = None) -> ToolTerms:
    """The terms of a tool, whatever else is in the catalog."""
    frequencies: dict[str, float] = {}
    forms: dict[FieldName, tuple[str, ...]] = {}
    for field, texts in field_texts(tool).items():
        found = _field_pieces(field, texts, segmenter)
        how = FIELD_WEIGHTS[field]
        one = how.weight / (1.0 - how.b + how.b * _length(found) / how.typical_length)
        for term, count in islice(_counted(found).items(), _MOST_TERMS):
            frequencies[term] = frequencies.get(term, 0.0) + one * count
        if field in ("name", "description"):
            forms[field] = tuple(chain.from_iterable(piece.forms for piece, _ in found))
    name, text = forms["name"], forms.get("description", ())
    return ToolTerms(
        impacts={term: exact_impact(tf / (tf + _K1)) for term, tf in frequencies.items()},
        name=tuple(islice(dict.fromkeys(name), _MOST_FORMS)),
        text=tuple(islice(dict.fromkeys(name + text), _MOST_FORMS)),
    )


def _field_pieces(
    field: FieldName, texts: Sequence[str], segmenter: Segmenter | None
) -> list[tuple[Piece, int]]:
    """The different pieces of a field, and how often each occurs."""
    found = Counter(chunks("\n".join(texts), longest=_LONGEST_FIELD))
    return [
        (piece, count)
        for chunk, count in found.items()
        for piece in chunk_pieces(chunk, segmenter)
        # A name may be nothing but function words: what_to_do.
        if not piece.is_function or field == "name"
    ]


def _length(found: list[tuple[Piece, int]]) -> float:
    return sum(
        len(piece.words) * count * (_CJK_LENGTH if piece.is_cjk else 1.0) for piece, count in found
    )


def _counted(found: list[tuple[Piece, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece, count in found:
        for term in piece.words:
            counts[term] = counts.get(term, 0) + count
        for term in piece.compounds:
            counts[term] = counts.get(term, 0) + count
    return counts
