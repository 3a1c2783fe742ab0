"""What each term of a tool's definition is worth, whatever else is in the catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from tool_search.catalog import Tool
from tool_search.search.chinese_script import simplified
from tool_search.search.documents import FIELDS, FieldName, field_texts
from tool_search.search.tokenizer import Piece, Segmenter, field_pieces

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
        sequence: All words in their order, a tab between the fields; see `sequence_of`.
    """

    impacts: dict[str, float]
    name: tuple[str, ...]
    text: tuple[str, ...]
    sequence: str


def tool_terms(tool: Tool, segmenter: Segmenter | None = None) -> ToolTerms:
    """The terms of a tool, whatever else is in the catalog."""
    frequencies: defaultdict[str, float] = defaultdict(float)
    forms: dict[FieldName, list[str]] = {}
    sequences = dict.fromkeys(FIELDS, "")
    for field, texts in field_texts(tool).items():
        found = field_pieces(texts, longest=_LONGEST_FIELD, segmenter=segmenter)
        is_name = field == "name"
        terms, length, sequences[field] = _read(found, is_name=is_name)
        if is_name or field == "description":
            forms[field] = [f for p in found if is_name or not p.is_function for f in p.forms]
        how = FIELD_WEIGHTS[field]
        one = how.weight / (1.0 - how.b + how.b * length / how.typical_length)
        for term in terms:
            frequencies[term] += one
    name, text = forms["name"], forms.get("description", [])
    return ToolTerms(
        impacts={term: tf / (tf + _K1) for term, tf in frequencies.items()},
        name=tuple(dict.fromkeys(name))[:_MOST_FORMS],
        text=tuple(dict.fromkeys(name + text))[:_MOST_FORMS],
        sequence="\t".join(sequences.values()),
    )


def _read(found: Sequence[Piece], *, is_name: bool) -> tuple[list[str], float, str]:
    """A field's terms as often as they occur, its length, and its sequence."""
    ordered: list[str] = []
    words: list[str] = []
    compounds: list[str] = []
    length = 0.0
    for original, own, _, joined, is_function, is_cjk in found:
        ordered += simplified(original) if is_cjk else own
        # A name may be nothing but function words: what_to_do.
        if is_function and not is_name:
            continue
        words += own
        if joined:
            compounds += joined
        if is_cjk:
            length -= len(own) * (1.0 - _CJK_LENGTH)
    length += len(words)
    words += compounds
    if len(words) > _MOST_TERMS:
        most = frozenset(islice(dict.fromkeys(words), _MOST_TERMS))
        words = [term for term in words if term in most]
    return words, length, f" {' '.join(ordered)} \n"


def sequence_of(found: Sequence[Piece]) -> str:
    r"""The words of pieces in their order: a space around each, a line for each text.

    Chinese stands in it by characters. In it ` git hub ` is a phrase, and so is
    ` github `: a space may stand between any two letters of one.

    >>> sequence_of(field_pieces(["createIssue", "in a now"], longest=99))
    ' creat issu \n in a now \n'
    """
    return _read(found, is_name=True)[2]
