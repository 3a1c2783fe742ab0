"""The searched text of a tool's definition, by field, and the terms in it.

No definition is trusted: schemas of any depth, schemas that refer to themselves and
descriptions of a megabyte are read up to fixed bounds, first and highest parts first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from string import ascii_letters, digits
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from tool_search.catalog.tool import Tool, schema_of
from tool_search.search.text.cache import BoundedCache
from tool_search.search.text.tokenizer import (
    MAX_WORD_CHARS,
    Piece,
    Segmenter,
    chunks_of,
    has_cjk,
    mixed_pieces,
    piece_of,
    pieces,
)
from tool_search.values.json import JSON

__all__ = [
    "FIELDS",
    "FIELD_WEIGHTS",
    "FieldName",
    "FieldWeight",
    "ToolTerms",
    "Words",
    "field_texts",
    "field_words",
    "name_words",
    "sequence_of",
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
                names += _own_names(node)
                below += _children(node)
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
        texts += values[:_MAX_VALUES]
    return [text for text in texts if text and isinstance(text, str)]


def _own_names(node: JSON) -> list[str]:
    properties = node.get("properties")
    return list(properties)[:_MAX_NODES] if isinstance(properties, dict) else []


def _children(node: JSON) -> list[Any]:
    properties = node.get("properties")
    found = list(properties.values())[:_MAX_NODES] if isinstance(properties, dict) else []
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
# The characters of a chunk of ASCII text, and of a contraction.
_KEPT = f"{ascii_letters}{digits}-_.'{_END_SIGN}"
_SPACED = bytes(code if chr(code) in _KEPT else ord(" ") for code in range(256))
_MAX_KNOWN = 40_000
# Characters and bigrams together are about four terms for each Chinese word of two
# characters; half of that is taken, as Chinese says the same in fewer words.
_CJK_LENGTH = 0.5


Words: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], float, str]
"""The words of a stretch of text; a plain tuple, because catalogs have tens of thousands.

1. The terms that are counted: words, and compounds that join several; no stop words.
2. The same words before stemming, without compounds.
3. The length that it adds to its field, in words.
4. All words in order with a space between, Chinese by characters.
"""

_TEXT_END: Words = ((), (), 0, "\n")


def field_words(
    texts: Sequence[str], *, max_chars: int, segmenter: Segmenter | None = None
) -> list[Words]:
    """Return the words of several texts, with an end of line between two texts.

    Args:
        texts: Texts in any language and script.
        max_chars: Number of characters that are read; the rest is ignored.
        segmenter: Cuts Chinese; None for characters and bigrams.
    """
    text = f" {_END_SIGN} ".join(texts)[:max_chars]
    if text.isascii():
        stretches = text.encode("ascii").translate(_SPACED).decode("ascii").split()
        return list(map(_known.__getitem__, stretches))
    return list(_cut(text, segmenter))


def name_words(name: str, *, max_chars: int, segmenter: Segmenter | None = None) -> list[Words]:
    """Return the words of a tool's name, with stop words.

    A name may have no other words, as `What to do`.
    """
    return [
        _words(piece._replace(is_stop_word=False))
        for piece in pieces(name, max_chars=max_chars, segmenter=segmenter)
    ]


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
    _, words, forms, compounds, is_stop_word, is_cjk = piece
    sequence = words[0] if len(words) == 1 and not is_cjk else piece.sequence
    if is_stop_word:
        return (), (), 0, sequence
    length = len(words) * (_CJK_LENGTH if is_cjk else 1)
    return words + compounds, forms, length, sequence


def _read(stretch: str) -> Words:
    """Return the words of a stretch without spaces.

    A stretch of ASCII may have several words, or a dot at its end; any other is a chunk
    without Chinese, as `chunks_of` cuts them.
    """
    if not stretch.isascii() or stretch.isalpha():
        return _words(piece_of(stretch))
    if stretch == _END_SIGN:
        return _TEXT_END
    chunks = chunks_of(stretch)
    if len(chunks) == 1:
        chunk = chunks[0]
        return _words(piece_of(chunk)) if chunk == stretch else _known[chunk]
    found = [_known[chunk] for chunk in chunks]
    return (
        tuple([term for words in found for term in words[0]]),
        tuple([form for words in found for form in words[1]]),
        sum([words[2] for words in found]),
        " ".join([words[3] for words in found if words[3]]),
    )


_known = BoundedCache(_read, max_values=_MAX_KNOWN, max_chars=MAX_WORD_CHARS)


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

_K1 = 2.0
_MAX_FIELD_CHARS = 20_000
_MAX_TERMS = 2_000
_MAX_FORMS = 128
_terms = itemgetter(0)


class ToolTerms(NamedTuple):
    """The terms of a definition, as an index stores them.

    Attributes:
        impacts: The impact of each term: tf / (tf + k1), below 1, with tf as the sum over
            fields of weight * count / (1 - b + b * length / typical length).
        name: The different words of the name, before stemming.
        text: The different words of name and description, before stemming.
        sequence: All words in order, a tab between the fields; see `sequence_of`.
    """

    impacts: dict[str, float]
    name: tuple[str, ...]
    text: tuple[str, ...]
    sequence: str


def tool_terms(tool: Tool, segmenter: Segmenter | None = None) -> ToolTerms:
    """Return the terms of a tool, which do not depend on the rest of the catalog."""
    frequencies: dict[str, float] = {}
    frequency = frequencies.get
    name: list[str] = []
    text: list[str] = []
    sequences = dict.fromkeys(FIELDS, "")
    for field, texts in field_texts(tool).items():
        words = field_words(texts, max_chars=_MAX_FIELD_CHARS, segmenter=segmenter)
        if field == "name" and not all(map(_terms, words)):
            words = name_words(texts[0], max_chars=_MAX_FIELD_CHARS, segmenter=segmenter)
        if not words:
            sequences[field] = _line(())
            continue
        # One column at a time, so that the loops over the words run in C.
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
        name=tuple(dict.fromkeys(name))[:_MAX_FORMS],
        text=tuple(dict.fromkeys(name + text))[:_MAX_FORMS],
        sequence="\t".join(sequences.values()),
    )


def _bounded(terms: list[str]) -> list[str]:
    """Return the terms; of a very long field, those that repeat its first 2,000."""
    if len(terms) <= _MAX_TERMS:
        return terms
    most = frozenset(islice(dict.fromkeys(terms), _MAX_TERMS))
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
