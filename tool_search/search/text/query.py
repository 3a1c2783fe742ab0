"""The terms of a query and their weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tool_search.search.text.scripts import foreign_language, stop_words_of
from tool_search.search.text.tokenizer import (
    Piece,
    Segmenter,
    pieces,
    stems_in,
    to_simplified,
)

__all__ = ["QUOTATION", "QueryTerms", "one_letter_off", "query_sentences", "query_terms"]

_MAX_QUERY_CHARS = 24_000
_MAX_TERMS = 512
_MAX_SENTENCES = 24
_MAX_LOOKED_AT = 96
_OUTER_SENTENCES = 6
# How a request is told from the text around it, in three languages.
_ASKS = re.compile(
    r"[?？]|\b(?:[Pp]lease|[Cc]an|[Cc]ould|[Ww]ould|want|need|[Hh]elp|[Ll]et)\b"
    r"|[请請帮幫想]|需要|能不能|可以"
    r"|[Пп]ожалуйста|[Пп]омоги|[Мм]ожешь|[Мм]ожете|[Нн]уж[нео]|[Нн]адо|[Хх]о[чт]"
)
_MIN_SENTENCE_TERMS = 3
# The letters and the vowels of a script.
_ALPHABETS = (
    (frozenset("abcdefghijklmnopqrstuvwxyz"), frozenset("aeiouy")),
    (frozenset("абвгдежзийклмнопрстуфхцчшщъыьэюя"), frozenset("аеиоуыэюя")),
)
_MIN_WRONG, _LONG, _MAX_WRONG = 5, 8, 16
# A full stop between letters is part of a name, as in `app.py` or `v1.2`.
# It begins with one set of characters: so it is found in a sixth of the time.
_SENTENCE_END = re.compile(
    r"[.!?;…。！？；\r\n](?:(?<=[.!?;…])[\"'”’»)]*\s+|(?<=[。！？；\r\n])[。！？；\r\n]*)"
)
_QUOTED = 0.6
_NUMBER = 0.3
_QUOTE = re.compile("[\"'`“‘「《«]")
QUOTATION = re.compile(
    r"\"[^\"]{1,400}\"|“[^”]{1,400}”|‘[^’]{2,400}’|「[^」]{1,400}」|《[^》]{1,100}》"
    r"|«[^»]{1,400}»|`[^`]{1,400}`|(?<!\w)'[^']{3,400}'(?!\w)"
)
"""Matches text in quotation marks, which is a value and not a wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """The terms of a query.

    Attributes:
        pieces: Its words without stop words, or all words if it has no others.
        weights: The weight of each term, in the order of the query.
        compounds: Terms that only join others; a missing one is not reported.
        forms: Its words before stemming.
        characters: Its terms that are one Chinese character.
        stop_words: Its stop words, if it has other words.
        language: Its language, if it is neither English nor Russian or Chinese.
        stems: The stems of its terms in that language.
    """

    pieces: tuple[Piece, ...]
    weights: dict[str, float]
    compounds: frozenset[str]
    forms: frozenset[str]
    characters: frozenset[str]
    stop_words: frozenset[str]
    language: str
    stems: Mapping[str, str]

    def unmatched(self, known: Callable[[str], bool]) -> list[str]:
        """Return the words of which no term is known, as written, in order."""
        words: dict[str, None] = {}
        unsure = [one for one in self.pieces if one.is_cjk or not any(map(known, one.words))]
        for piece in dict.fromkeys(unsure):
            if piece.is_cjk:
                words.update(dict.fromkeys(_unknown_stretches(piece, known)))
            elif not any(map(known, piece.compounds)):
                words[piece.original] = None
        return list(words)


@lru_cache(maxsize=64)
def query_terms(query: str, segmenter: Segmenter | None = None) -> QueryTerms:
    """Return the terms of a query; of a very long one, those of its beginning and its end."""
    query = _read_part(query)
    everything = pieces(query, max_chars=_MAX_QUERY_CHARS, segmenter=segmenter)
    language = foreign_language(query)
    foreign = stop_words_of(language)
    chosen = [
        piece
        for piece in everything
        if not (piece.is_stop_word or (foreign and foreign.issuperset(piece.forms)))
    ] or everything
    words = dict.fromkeys([word for piece in chosen for word in piece.words])
    compounds = dict.fromkeys([word for piece in chosen for word in piece.compounds])
    values = _values_alone(query, chosen, segmenter)
    plain = {
        word: form
        for piece in chosen
        if language and not piece.is_cjk
        for word, form in zip(piece.words, piece.forms, strict=True)
    }
    return QueryTerms(
        language=language,
        stems=dict(zip(plain, stems_in(language, plain.values()) if plain else (), strict=True)),
        pieces=tuple(chosen),
        weights={
            term: (_QUOTED if term in values else 1.0) * (_NUMBER if term.isdigit() else 1.0)
            for term in _first_and_last(list({**words, **compounds}), _MAX_TERMS)
        },
        compounds=frozenset(compounds.keys() - words.keys()),
        forms=frozenset([form for piece in chosen for form in piece.forms]),
        characters=frozenset(
            [word for piece in chosen if piece.is_cjk for word in piece.words if len(word) == 1]
        ),
        stop_words=frozenset(
            [
                form
                for piece in everything
                if piece.is_stop_word and chosen is not everything
                for form in piece.forms
            ]
        ),
    )


@lru_cache(maxsize=64)
def query_sentences(query: str, segmenter: Segmenter | None = None) -> tuple[str, ...]:
    """Return the sentences of a query that have at least three terms.

    Empty if there is only one: it is the query. Of more than 24, the outermost, then those
    that ask for something.
    """
    different = list(dict.fromkeys(filter(None, _parts(_read_part(query)))))
    if len(different) < 2:
        return ()
    long = (
        place
        for place in islice(_most_telling_first(different), _MAX_LOOKED_AT)
        if len(query_terms(different[place], segmenter).weights) >= _MIN_SENTENCE_TERMS
    )
    places = sorted(islice(long, _MAX_SENTENCES))
    return tuple(different[place] for place in places) if len(places) > 1 else ()


def one_letter_off(word: str) -> set[str]:
    """Return the words that a word in small letters may be a typing error of.

    The first letter stays, and a long word has other vowels too. None for words of fewer than
    five letters or more than 16, and of scripts that are neither Latin nor Cyrillic.

    Source: P. Norvig, "How to Write a Spelling Corrector", 2007.
    """
    alphabet = next((each for each in _ALPHABETS if each[0].issuperset(word)), None)
    if alphabet is None or not _MIN_WRONG <= len(word) <= _MAX_WRONG:
        return set()
    letters, vowels = alphabet
    splits = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    found = {before + letter + after for before, after in splits for letter in letters}
    found.update(before + after[1:] for before, after in splits)
    found.update(b + a[1] + a[0] + a[2:] for b, a in splits if len(a) > 1)
    if len(word) >= _LONG:
        found.update(b + vowel + a[1:] for b, a in splits if a[:1] in vowels for vowel in vowels)
    return found - {word}


def _parts(text: str) -> Iterator[str]:
    """Yield the sentences of a text; a sign that no space need follow is no part of one."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[start : end.start() + (end[0][0] in ".!?;…")].strip()
        start = end.end()
    yield text[start:].strip()


def _most_telling_first(sentences: Sequence[str]) -> Iterator[int]:
    """Yield the places of sentences, outermost first, then those that ask for something."""
    places = range(len(sentences))
    if len(sentences) <= _MAX_SENTENCES:
        yield from places
        return
    seen = {*places[:_OUTER_SENTENCES], *places[-_OUTER_SENTENCES:]}
    yield from sorted(seen)
    for place in places:
        if place not in seen and _ASKS.search(sentences[place]):
            seen.add(place)
            yield place
    yield from (place for place in places if place not in seen)


def _read_part(query: str) -> str:
    """Return a query, or the beginning and the end of a very long one.

    What people want of a text that they paste comes before it or after it.
    """
    if len(query) <= _MAX_QUERY_CHARS:
        return query
    half = _MAX_QUERY_CHARS // 2
    return f"{query[: half - 1]}\n{query[-half:]}"


def _first_and_last(terms: Sequence[str], most: int) -> Sequence[str]:
    """Return the terms, or of too many the first and the last."""
    return terms if len(terms) <= most else [*terms[: most // 2], *terms[-(most // 2) :]]


def _values_alone(
    query: str, found: Iterable[Piece], segmenter: Segmenter | None
) -> Collection[str]:
    """Return the terms that are in quotation marks alone, where they are values and no wishes."""
    quotations = QUOTATION.findall(query) if _QUOTE.search(query) else ()
    if not quotations:
        return ()
    quoted = Counter(
        term
        for quotation in quotations
        for piece in pieces(quotation, max_chars=_MAX_QUERY_CHARS, segmenter=segmenter)
        for term in (*piece.words, *piece.compounds)
    )
    counts = Counter(term for piece in found for term in (*piece.words, *piece.compounds))
    return frozenset(term for term, count in quoted.items() if counts[term] <= count)


def _unknown_stretches(piece: Piece, known: Callable[[str], bool]) -> list[str]:
    """Return the stretches of a run of Chinese that no known word covers.

    Single characters occur everywhere and explain nothing, unless the run is one character.
    """
    run = to_simplified(piece.original)
    explain = dict.fromkeys(word for word in piece.words if len(word) > 1 or len(run) == 1)
    covered = [False] * len(run)
    for word in filter(known, explain):
        place = run.find(word)
        while place >= 0:
            covered[place : place + len(word)] = [True] * len(word)
            place = run.find(word, place + 1)
    marked = "".join(
        " " if hit else char for char, hit in zip(piece.original, covered, strict=True)
    )
    return [stretch for stretch in marked.split() if len(stretch) > 1 or len(run) == 1]
