"""The searched text of a tool's definition, by field, and the terms in it.

No definition is trusted: schemas of any depth, schemas that refer to themselves and
descriptions of a megabyte are read up to fixed bounds, first and highest parts first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from tool_search.core.catalog.tool import Tool, schema_of
from tool_search.core.values.json import JSON
from tool_search.search.text.cache import BoundedCache
from tool_search.search.text.scripts import has_several, is_bilingual, script_of
from tool_search.search.text.stop_words import STOP_WORDS
from tool_search.search.text.tokenizer import (
    ASCII_PART,
    MAX_WORD_CHARS,
    Piece,
    Segmenter,
    chunk_terms,
    chunks_of,
    english_stem,
    has_cjk,
    mixed_pieces,
    pieces,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "FIELDS",
    "FIELD_SIGN",
    "FIELD_WEIGHTS",
    "MAX_PARTS",
    "MAX_TERMS",
    "CoveredWords",
    "FieldName",
    "FieldWeight",
    "ToolTerms",
    "Vocabulary",
    "ascii_text",
    "covered_words",
    "field_texts",
    "impact_of",
    "plain_word",
    "read_stretch",
    "sequence_of",
    "stretches_of",
    "tool_fields",
    "tool_impacts",
    "tool_terms",
]


FieldName = Literal[
    "name", "aliases", "server", "tags", "description", "parameters", "parameter_texts"
]
FIELDS: tuple[FieldName, ...] = get_args(FieldName)

_MAX_DEPTH = 8
_MAX_NODES = 400
_MAX_VALUES = 40
_NESTED = ("items", "additionalProperties", "not", "if", "then", "else")
_BRANCHES = ("anyOf", "oneOf", "allOf", "prefixItems")
_PARTS = frozenset((*_NESTED, *_BRANCHES))
_STRUCTURE = _PARTS | {"properties"}
_SELDOM = frozenset(("title", "const", "enum"))
# Languages, units and letters are no words: one tool's `de` would own a word of many requests.
_CODE = re.compile("[A-Za-z]{1,2}(?:[-_/][A-Za-z]{1,2})?")


def field_texts(tool: Tool) -> dict[FieldName, list[str]]:
    """Return the tool's texts by field, in the order in which the fields count.

    Fields: name; aliases and title; server; tags, category and namespace; description and, if
    it differs, summary; parameter names, nested ones too; parameter descriptions, titles and
    enum values.
    """
    found: dict[FieldName, list[str]] = {"name": [tool.name]}
    if tool.aliases or tool.title:
        found["aliases"] = _present(*tool.aliases, tool.title)
    if tool.server:
        found["server"] = [tool.server]
    if tool.tags or tool.category or tool.namespace:
        found["tags"] = _present(*tool.tags, tool.category, tool.namespace)
    if tool.description:
        found["description"] = [tool.description]
    if tool.summary and tool.summary not in tool.description:
        found["description"] = _present(tool.description, tool.summary)
    names, texts = _parameter_texts(schema_of(tool))
    if names:
        found["parameters"] = names
    if texts:
        found["parameter_texts"] = texts
    return found


def _present(*texts: str | None) -> list[str]:
    return [text for text in texts if text]


def _parameter_texts(schema: JSON) -> tuple[list[str], list[str]]:
    """Return the names and the texts of a schema's properties, level by level."""
    names: list[str] = []
    texts: list[str] = []
    seen: set[int] = set()
    level: Iterable[Any] = (schema,)
    for depth in range(_MAX_DEPTH + 1):
        below: list[Any] = []
        for part in level:
            node = part
            if isinstance(node, dict) and "$ref" in node:
                node = _target(schema, node["$ref"])
            if not isinstance(node, dict) or id(node) in seen:
                continue
            if len(seen) == _MAX_NODES:
                return names, texts
            seen.add(id(node))
            if depth:
                texts += _own_texts(node)
            # Most nodes are those of a parameter that has no parts.
            if not _STRUCTURE.isdisjoint(node):
                below += _children(node, names)
        level = below
    return [name for name in names if name], texts


def _target(root: JSON, reference: object) -> object:
    """Return the target of a local reference, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/")[:_MAX_DEPTH]:
        target = target.get(step) if isinstance(target, dict) else None
    return target


def _own_texts(node: JSON) -> list[str]:
    description = node.get("description")
    if _SELDOM.isdisjoint(node):
        return [description] if description and isinstance(description, str) else []
    texts = [node.get("title"), description, node.get("const")]
    values = node.get("enum")
    if isinstance(values, list):
        strings = [text for text in values[:_MAX_VALUES] if isinstance(text, str)]
        texts += [text for text in strings if not _CODE.fullmatch(text)]
    return [text for text in texts if text and isinstance(text, str)]


def _children(node: JSON, names: list[str]) -> list[Any]:
    """Return the parts of a node, and add the names of its parameters to the others."""
    properties = node.get("properties")
    found = list(properties.values())[:_MAX_NODES] if isinstance(properties, dict) else []
    names += list(node["properties"])[:_MAX_NODES] if found else []
    if _PARTS.isdisjoint(node):
        return found
    found += [node[key] for key in _NESTED if key in node]
    for key in _BRANCHES:
        branches = node.get(key)
        if isinstance(branches, list):
            found += branches[:_MAX_VALUES]
    return found


# Whole catalogs are read here, and most of their words are repeated. So ASCII text is split
# in C at characters that no word has, and the words of each stretch are computed once.

_END_SIGN = "\x01"
FIELD_SIGN = "\x02"
"""The end of a field."""
# The characters of a chunk of ASCII text; an apostrophe joins nothing, as in `chunks_of`.
_SIGNS = "-_.'"
_KEPT = f"{ascii_letters}{digits}{_SIGNS}{_END_SIGN}{FIELD_SIGN}"
_SPACED = bytes(code if chr(code) in _KEPT else ord(" ") for code in range(256))
_RUNS = bytes(code if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))
_MAX_KNOWN = 40_000
# Characters and bigrams together are about four terms for each Chinese word of two
# characters; half of that is taken, as Chinese says the same in fewer words.
_CJK_LENGTH = 0.5


Words: TypeAlias = tuple[tuple[str, ...], float, str]
"""The words of a stretch of text; a plain tuple, because catalogs have tens of thousands.

1. The terms that are counted: words, and compounds that join several; no stop words.
2. The length that it adds to its field, in words.
3. All words in order with a space between, Chinese by characters.
"""

_TEXT_END: Words = ((), 0, "\n")
_FIELD_END: Words = ((), 0, "\n\t")


def _join(texts: Sequence[str], max_chars: int) -> str:
    text = texts[0] if len(texts) == 1 else f" {_END_SIGN} ".join(texts)
    text = text[:max_chars]
    return text.replace(FIELD_SIGN, " ") if FIELD_SIGN in text else text


def stretches_of(text: str) -> list[str]:
    """Return the stretches of ASCII text between characters that no word has."""
    return text.encode("ascii").translate(_SPACED).decode("ascii").split()


def _cut(text: str, segmenter: Segmenter | None) -> Iterator[Words]:
    for number, part in enumerate(text.split(_END_SIGN)):
        if number:
            yield _TEXT_END
        for chunk in chunks_of(part):
            if has_cjk(chunk):
                yield from map(_words, mixed_pieces(chunk, segmenter))
            else:
                yield _known[chunk]


def _words(piece: Piece) -> Words:
    if piece.is_stop_word:
        return (), 0, piece.sequence
    length = len(piece.words) * (_CJK_LENGTH if piece.is_cjk else 1)
    return piece.words + piece.compounds, length, piece.sequence


def _chunk_words(chunk: str) -> Words:
    """Return the words of a chunk without Chinese, as `_words` does, in less time."""
    words, _, compounds, is_stop_word = chunk_terms(chunk)
    if is_stop_word:
        return (), 0, words[0]
    return words + compounds, len(words), " ".join(words)


def _read(stretch: str) -> Words:
    """Return the words of a stretch without spaces.

    A stretch of ASCII may have several words, or a dot at its end; any other is a chunk
    without Chinese, as `chunks_of` cuts them.
    """
    if not stretch.isascii() or stretch.isalpha():
        return _chunk_words(stretch)
    if stretch == _END_SIGN:
        return _TEXT_END
    if stretch == FIELD_SIGN:
        return _FIELD_END
    chunks = chunks_of(stretch)
    if len(chunks) == 1:
        chunk = chunks[0]
        return _chunk_words(chunk) if chunk == stretch else _known[chunk]
    found = [_known[chunk] for chunk in chunks]
    return (
        tuple([term for words in found for term in words[0]]),
        sum([words[1] for words in found]),
        " ".join([words[2] for words in found if words[2]]),
    )


_known = BoundedCache(_read, max_values=_MAX_KNOWN, max_chars=MAX_WORD_CHARS)


class Vocabulary(dict[str, Words]):
    """The words of all stretches of a catalog, while it is read.

    A catalog of 10,000 tools has more words than are kept between readings, and a miss costs
    ten times as much as a hit.
    """

    def __missing__(self, stretch: str) -> Words:
        word = plain_word(stretch)
        words = read_stretch(stretch, word) if word in (None, stretch) else self[word]
        if len(stretch) <= MAX_WORD_CHARS:
            self[stretch] = words
        return words


def plain_word(stretch: str) -> str | None:
    """Return the word in lower case if a stretch is one of ASCII letters; None for any other.

    With a sign at its end or a capital at its beginning it is the same word.
    """
    core = stretch.strip(_SIGNS)
    if not core.isalpha() or not core.isascii() or len(core) > MAX_WORD_CHARS:
        return None
    if core.islower():
        return core
    return core.lower() if core[1:].islower() else None


def read_stretch(stretch: str, word: str | None) -> Words:
    """Return the words of a stretch that was not read before.

    Not kept between readings: a catalog has too many words that no other has.

    Args:
        stretch: The stretch.
        word: Its `plain_word`.
    """
    if word is not None:
        term = english_stem(word)
        return ((), 0, term) if word in STOP_WORDS else ((term,), 1, term)
    return _known.get(stretch) or _read(stretch)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWeight:
    """The weight of a field.

    Attributes:
        weight: The weight of one occurrence.
        b: How much a long field lowers the weight of its terms, from 0 to 1.
        typical_length: The length, in words, at which `b` changes nothing.
    """

    weight: float
    b: float = 0.5
    typical_length: float


# The lengths are constants and not averages of the catalog, so that impacts depend on the
# tool alone: a catalog that changes keeps all its postings.
FIELD_WEIGHTS: Mapping[FieldName, FieldWeight] = {
    "name": FieldWeight(weight=2.5, typical_length=3),
    "aliases": FieldWeight(weight=2.0, typical_length=3),
    "server": FieldWeight(weight=0.5, typical_length=1),
    "tags": FieldWeight(weight=1.0, typical_length=3),
    "description": FieldWeight(weight=1.0, typical_length=15),
    "parameters": FieldWeight(weight=0.5, typical_length=5),
    "parameter_texts": FieldWeight(weight=0.7, b=0.2, typical_length=20),
}

# By field: the weight, and the factor and the typical length of its norm.
_NORMS = tuple(
    (each.weight, each.b, each.typical_length) for each in map(FIELD_WEIGHTS.__getitem__, FIELDS)
)
_K1 = 2.0
# The share of a text that is in a language, at least, if it is a translation.
_MIN_TRANSLATED = 0.2
_MAX_FIELD_CHARS = 20_000
MAX_PARTS = 3 * len(FIELDS)
"""The number of fields, each in several languages."""
MAX_TERMS = 2_000
"""The number of different terms of a field that are read."""
_MAX_FORMS = 128
_MAX_COVERED_CHARS = 1_500
_terms = itemgetter(0)
_length = itemgetter(1)


class ToolTerms(NamedTuple):
    """The terms of a definition, as an index stores them.

    Attributes:
        impacts: The impact of each term: tf / (tf + k1), below 1, with tf as the sum over
            fields of weight * count / (1 - b + b * length / typical length).
        sequence: All words in order, a line and a tab for each field; see `sequence_of`.
    """

    impacts: dict[str, float]
    sequence: str


def tool_terms(tool: Tool, segmenter: Segmenter | None = None) -> ToolTerms:
    """Return the terms of a tool, which do not depend on the rest of the catalog."""
    words, ends, bilingual = _tool_words(field_texts(tool), segmenter, _known)
    # One column at a time, so that the loops over the words run in C.
    terms, lengths, sequences = zip(*words, strict=True)
    return ToolTerms(_impacts(_field_terms(terms, lengths, ends, bilingual)), _line(sequences))


class CoveredWords(NamedTuple):
    """The words of a definition that a query may cover, before stemming.

    Attributes:
        name: The words of the name.
        texts: The words of name and description, in each of the tool's scripts.
    """

    name: frozenset[str]
    texts: tuple[frozenset[str], ...]


def covered_words(tool: Tool, scripts: int, segmenter: Segmenter | None = None) -> CoveredWords:
    """Return the words of a tool that a query may cover.

    Args:
        tool: The tool.
        scripts: The scripts of the tool.
        segmenter: Cuts Chinese; None for characters and bigrams.
    """
    name = _forms(tool.name, segmenter)
    text = " ".join(filter(None, (tool.description, tool.summary)))
    forms = _forms(text, segmenter)
    words = frozenset(name).union(frozenset(forms) - STOP_WORDS)
    if len(words) > _MAX_FORMS:
        first = dict.fromkeys(form for form in (*name, *forms) if form in words)
        words = frozenset(islice(first, _MAX_FORMS))
    texts = [words]
    if has_several(scripts):
        kinds = {word: script_of(word) for word in words}
        texts = [
            frozenset(word for word in words if kinds[word] == kind)
            for kind in frozenset(kinds.values())
        ]
    return CoveredWords(frozenset(name[:_MAX_FORMS]), tuple(filter(None, texts)))


def _forms(text: str, segmenter: Segmenter | None) -> list[str]:
    """Return the words of a text before stemming; for ASCII mostly without a pattern."""
    text = text[:_MAX_COVERED_CHARS]
    if text.isascii():
        forms: list[str] = []
        for run in text.encode("ascii").translate(_RUNS).decode("ascii").split():
            is_word = run.isalpha() and (run.islower() or run[1:].islower())
            forms += (run.lower(),) if is_word else map(str.lower, ASCII_PART.findall(run))
        return [form for form in forms if len(form) > 1]
    found = pieces(text, max_chars=_MAX_COVERED_CHARS, segmenter=segmenter)
    return [form for piece in found for form in piece.forms]


def tool_impacts(
    tool: Tool, segmenter: Segmenter | None, vocabulary: Vocabulary
) -> dict[str, float]:
    """Return the impacts of a tool's terms alone; see `ToolTerms`.

    Args:
        tool: The tool.
        segmenter: Cuts Chinese; None for characters and bigrams.
        vocabulary: The words of the catalog's tools that were read before.
    """
    return _impacts(tool_fields(tool, segmenter, vocabulary))


FieldTerms: TypeAlias = tuple[FieldName, float, Sequence[str]]
"""A field, what one occurrence adds to a term's frequency in it, and its terms.

A field in several languages is as many fields.
"""


def tool_fields(
    tool: Tool, segmenter: Segmenter | None, vocabulary: Vocabulary
) -> list[FieldTerms]:
    """Return the terms of a tool's fields, at most `MAX_PARTS`; see `tool_impacts`."""
    words, ends, bilingual = _tool_words(field_texts(tool), segmenter, vocabulary)
    return _field_terms(list(map(_terms, words)), list(map(_length, words)), ends, bilingual)


def _field_terms(
    terms: Sequence[tuple[str, ...]],
    lengths: Sequence[float],
    ends: Sequence[int],
    bilingual: Sequence[int],
) -> list[FieldTerms]:
    is_short = sum(map(len, terms)) <= MAX_TERMS
    found: list[FieldTerms] = []
    start = 0
    for number, ((weight, b, typical), end) in enumerate(zip(_NORMS, ends, strict=True)):
        parts: Iterable[tuple[Iterable[tuple[str, ...]], float]] = ()
        if number in bilingual:
            parts = _parts_by_script(terms[start:end], lengths[start:end])
        elif start < end:
            parts = ((terms[start:end], sum(lengths[start:end])),)
        for part, length in parts:
            one = weight / (1.0 - b + b * length / typical)
            own = list(chain.from_iterable(part))
            found.append((FIELDS[number], one, own if is_short else _bound(own)))
        start = end + 1
    return found


def _impacts(fields: Iterable[FieldTerms]) -> dict[str, float]:
    frequencies: dict[str, float] = {}
    frequency = frequencies.get
    for _, one, terms in fields:
        for term in terms:
            frequencies[term] = frequency(term, 0.0) + one
    return {term: impact_of(tf) for term, tf in frequencies.items()}


_Frequency = TypeVar("_Frequency", float, "NDArray[np.float64]")


def impact_of(frequency: _Frequency) -> _Frequency:
    """Return the impact of a term, or of several in an array, by weighted frequency."""
    return frequency / (frequency + _K1)


def ascii_text(tool: Tool) -> str | None:
    """Return the texts of all fields, each with `FIELD_SIGN` at its end.

    None if a field is not ASCII.
    """
    joined = f" {FIELD_SIGN} ".join((*_joined_fields(field_texts(tool)), ""))
    return joined if joined.isascii() else None


def _joined_fields(fields: Mapping[FieldName, list[str]]) -> list[str]:
    return [_join(fields[field], _MAX_FIELD_CHARS) if field in fields else "" for field in FIELDS]


# A text in two languages says everything twice: a word of it is as weighty as in a text of
# its own language alone. A few words that nobody translated are no second text.


def _parts_by_script(
    terms: Sequence[tuple[str, ...]], lengths: Sequence[float]
) -> list[tuple[list[tuple[str, ...]], float]]:
    """Return the terms of a field's words in each script, with the length of these words."""
    found: dict[int, list[int]] = {}
    for place, own in enumerate(terms):
        if own:
            found.setdefault(script_of(own[0]), []).append(place)
    parts = [
        ([terms[place] for place in places], sum(lengths[place] for place in places))
        for places in found.values()
    ]
    whole = sum(length for _, length in parts)
    if all(length >= _MIN_TRANSLATED * whole for _, length in parts):
        return parts
    return [(list(terms), whole)]


def _tool_words(
    fields: Mapping[FieldName, list[str]], segmenter: Segmenter | None, known: dict[str, Words]
) -> tuple[list[Words], list[int], list[int]]:
    """Return the words of all fields, and the place after the last word of each.

    A field's end is at that place; each field has one. Third, the fields in two languages.
    """
    texts = _joined_fields(fields)
    joined = f" {FIELD_SIGN} ".join(texts)
    if not joined.isascii():
        return _words_of_fields(texts, segmenter)
    stretches = stretches_of(joined)
    words = list(map(known.__getitem__, stretches))
    ends: list[int] = []
    place = -1
    for _ in range(len(FIELDS) - 1):
        place = stretches.index(FIELD_SIGN, place + 1)
        ends.append(place)
    ends.append(len(words))
    if not all(map(_terms, words[: ends[0]])):
        return _words_of_fields(texts, segmenter)
    return words, ends, []


def _words_of_fields(
    texts: Sequence[str], segmenter: Segmenter | None
) -> tuple[list[Words], list[int], list[int]]:
    """Return `_tool_words` field by field: text with Chinese, or a name with stop words."""
    words: list[Words] = []
    ends: list[int] = []
    for field, text in zip(FIELDS, texts, strict=True):
        if ends:
            words.append(_FIELD_END)
        is_ascii = text.isascii()
        own = (
            [_known[part] for part in stretches_of(text)]
            if is_ascii
            else list(_cut(text, segmenter))
        )
        if field == "name" and not all(map(_terms, own)):
            # A name may have no other words, as `What to do`.
            found = pieces(text, max_chars=_MAX_FIELD_CHARS, segmenter=segmenter)
            own = [_words(piece._replace(is_stop_word=False)) for piece in found]
        words += own
        ends.append(len(words))
    return words, ends, [number for number, text in enumerate(texts) if is_bilingual(text)]


def _bound(terms: list[str]) -> list[str]:
    """Return the terms; of a very long field, those that repeat its first 2,000."""
    if len(terms) <= MAX_TERMS:
        return terms
    most = frozenset(islice(dict.fromkeys(terms), MAX_TERMS))
    return [term for term in terms if term in most]


def sequence_of(found: Sequence[Piece]) -> str:
    r"""Return the words of pieces in order: a space around each, a line for each text.

    Chinese is written by characters. ` git hub ` and ` github ` are the same phrase to a
    reader of the line, since a space may be between any two letters of one.

    >>> from tool_search.search.text.tokenizer import pieces
    >>> sequence_of(pieces("createIssue in a now", max_chars=99))
    ' creat issu in a now \n'
    """
    return _line([piece.sequence for piece in found])


def _line(sequences: Sequence[str]) -> str:
    # A single letter is not a word, so its sequence is empty.
    return f" {' '.join(sequences if all(sequences) else filter(None, sequences))} \n"
