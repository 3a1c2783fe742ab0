"""What each term of a tool's definition is worth, whatever else is in the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

from tool_search.catalog.catalog import Tool
from tool_search.search.text.documents import FIELDS, FieldName, field_texts
from tool_search.search.text.field_words import field_words, name_words
from tool_search.search.text.tokenizer import Piece, Segmenter

__all__ = ["FIELD_WEIGHTS", "FieldWeight", "ToolTerms", "sequence_of", "tool_terms"]


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
_terms = itemgetter(0)


class ToolTerms(NamedTuple):
    """What an index keeps of a definition.

    Attributes:
        impacts: What each term is worth: tf / (tf + k1), below 1, where tf is the sum
            over fields of weight * count / (1 - b + b * length / typical length).
        name: The different words of the name, before stemming.
        text: The different words of name and description, before stemming.
        sequence: All words in their order, a tab between the fields; see `sequence_of`.
    """

    impacts: dict[str, float]
    name: tuple[str, ...]
    text: tuple[str, ...]
    sequence: str


def tool_terms(tool: Tool, segmenter: Segmenter | None = None) -> ToolTerms:
    """The terms of a tool, whatever else is in the catalog."""
    frequencies: dict[str, float] = {}
    frequency = frequencies.get
    name: list[str] = []
    text: list[str] = []
    sequences = dict.fromkeys(FIELDS, "")
    for field, texts in field_texts(tool).items():
        words = field_words(texts, longest=_LONGEST_FIELD, segmenter=segmenter)
        if field == "name" and not all(map(_terms, words)):
            words = name_words(texts[0], longest=_LONGEST_FIELD, segmenter=segmenter)
        if not words:
            sequences[field] = _line(())
            continue
        # All of a kind together: what loops over a catalog's words is C.
        terms, forms, lengths, sequence = zip(*words, strict=True)
        if field == "name":
            name = list(chain.from_iterable(forms))
        elif field == "description":
            text = list(chain.from_iterable(forms))
        sequences[field] = _line(sequence)
        how = FIELD_WEIGHTS[field]
        one = how.weight / (1.0 - how.b + how.b * sum(lengths) / how.typical_length)
        for term in _bounded(list(chain.from_iterable(terms))):
            frequencies[term] = frequency(term, 0.0) + one
    return ToolTerms(
        impacts={term: tf / (tf + _K1) for term, tf in frequencies.items()},
        name=tuple(dict.fromkeys(name))[:_MOST_FORMS],
        text=tuple(dict.fromkeys(name + text))[:_MOST_FORMS],
        sequence="\t".join(sequences.values()),
    )


def _bounded(terms: list[str]) -> list[str]:
    """The terms; of those of a very long field, the different ones that come first."""
    if len(terms) <= _MOST_TERMS:
        return terms
    most = frozenset(islice(dict.fromkeys(terms), _MOST_TERMS))
    return [term for term in terms if term in most]


def sequence_of(found: Sequence[Piece]) -> str:
    r"""The words of pieces in their order: a space around each, a line for each text.

    Chinese stands in it by characters. In it ` git hub ` is a phrase, and so is
    ` github `: a space may stand between any two letters of one.

    >>> from tool_search.search.text.tokenizer import pieces
    >>> sequence_of(pieces("createIssue in a now", longest=99))
    ' creat issu in a now \n'
    """
    return _line([piece.sequence for piece in found])


def _line(sequences: Sequence[str]) -> str:
    # Of single letters there is no word, and so no sequence.
    return f" {' '.join(sequences if all(sequences) else filter(None, sequences))} \n"
