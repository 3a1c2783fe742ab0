"""Cuts text in any language into the terms that an index holds.

One rule for definitions and queries: NFKC, then runs of letters and digits.
Identifiers are cut at camelCase, snake_case, hyphens, dots and digits, and
stay searchable whole and by neighbouring parts (`createGitHubIssue`: create,
git, hub, issue; github, creategithubissue). Chinese, Japanese and Korean runs
become single characters and bigrams, traditional ones as simplified. English and
Russian words are stemmed.

Source: Snowball stemmers, https://snowballstem.org/algorithms/.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from operator import add
from sys import intern
from typing import NamedTuple

import Stemmer

from tool_search.search.text.cache import RecentValues
from tool_search.search.text.chinese_script import simplified
from tool_search.search.text.cjk import (
    between_phrases,
    characters_and_bigrams,
    has_cjk,
    script_runs,
    unspaced,
)
from tool_search.search.text.stop_words import CHINESE_CHARACTERS, FUNCTION_WORDS

__all__ = [
    "LONGEST_WORD",
    "Piece",
    "Segmenter",
    "chunks_of",
    "folded",
    "mixed_pieces",
    "piece_of",
    "pieces",
]

Segmenter = Callable[[str], list[str]]
"""Cuts a run of Chinese characters into words, which may overlap."""

_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞЀ-Я", "a-zß-öø-ÿа-џ"
_CHUNK = re.compile(r"[^\W_]+(?:[-_.]{1,3}[^\W_]+)*")
# The same for text that is ASCII alone, in half the time.
_ASCII_CHUNK = re.compile(r"[A-Za-z0-9]+(?:[-_.]{1,3}[A-Za-z0-9]+)*")
_SHORT_CODE = re.compile(r"[^\W_]{1,4}")
_ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CONTRACTION = re.compile(r"['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_CYRILLIC = re.compile("[Ѐ-ӿ]")
_LONGEST_NORMALIZED = 512
_NORMALIZED = re.compile(r".{1,512}(?=[\x00-\x7f]|\Z)|.{1,512}", re.DOTALL)

LONGEST_WORD = 64
"""How many letters of a word or identifier are looked at."""
_MOST_PARTS = 12
_MOST_KNOWN = 40_000

# Snowball's own cache is off: words are kept here, with their stems.
_english = Stemmer.Stemmer("english", 0).stemWord
_english_all = Stemmer.Stemmer("english", 0).stemWords
_russian = Stemmer.Stemmer("russian", 0).stemWord


class Piece(NamedTuple):
    """One word, identifier or run of Chinese as it stands in a text.

    Attributes:
        original: As it was written, for people.
        words: Its terms; a run of Chinese has characters and bigrams.
        forms: The same words before stemming.
        compounds: Terms that repeat several of the words as one.
        is_function: Whether it is a function word.
        is_cjk: Whether it is a run of Chinese, Japanese or Korean characters.
    """

    original: str
    words: tuple[str, ...]
    forms: tuple[str, ...]
    compounds: tuple[str, ...] = ()
    is_function: bool = False
    is_cjk: bool = False

    @property
    def sequence(self) -> str:
        """Its words in their order with a space between, Chinese by characters."""
        words = self.words
        if self.is_cjk:
            return " ".join(simplified(self.original))
        return words[0] if len(words) == 1 else " ".join(words)


def folded(text: str) -> str:
    """The text as names are compared: NFKC, case folded, no space at an end."""
    return _compatible(text).casefold().strip()


def pieces(text: str, *, longest: int, segmenter: Segmenter | None = None) -> list[Piece]:
    """The pieces of a text in their order: identifiers whole, mixed scripts apart.

    Args:
        text: In any language and script; lone surrogates separate pieces.
        longest: How many characters are looked at; the rest is passed over.
        segmenter: Cuts Chinese; without one it becomes characters and bigrams.
    """
    found: list[Piece] = []
    for chunk in chunks_of(text[:longest]):
        if has_cjk(chunk):
            found += mixed_pieces(chunk, segmenter)
        else:
            found.append(_known[chunk])
    return found


def chunks_of(text: str) -> list[str]:
    """The words, identifiers and runs of Chinese of a text, of mixed scripts too."""
    if not text.isascii():
        text = unspaced(_compatible(text)[: len(text)])
        return _CHUNK.findall(_CONTRACTION.sub("", text))
    if text.isalpha():
        return [text]
    return _ASCII_CHUNK.findall(_CONTRACTION.sub("", text) if "'" in text else text)


def _compatible(text: str) -> str:
    """The text in NFKC, a long one in parts that end before an ASCII character if they can.

    The time of `normalize` is quadratic in the marks that one letter carries.
    """
    if len(text) <= _LONGEST_NORMALIZED:
        return unicodedata.normalize("NFKC", text)
    return "".join(unicodedata.normalize("NFKC", part) for part in _NORMALIZED.findall(text))


def mixed_pieces(chunk: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    """The pieces of a chunk that has Chinese in it, and perhaps other scripts."""
    for run, is_cjk in script_runs(chunk):
        if is_cjk:
            yield from _cjk_pieces(run, segmenter)
        else:
            yield from map(_known.__getitem__, _CHUNK.findall(run))


def _cjk_pieces(run: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    text = simplified(run)
    for start, end in between_phrases(text):
        stretch = text[start:end]
        words = segmenter(stretch) if segmenter else characters_and_bigrams(stretch)
        kept = tuple([intern(word) for word in words if word not in CHINESE_CHARACTERS])
        yield Piece(run[start:end], kept, kept, (), is_function=not kept, is_cjk=True)


def piece_of(chunk: str) -> Piece:
    """The piece of a word or an identifier without Chinese; of a very long one, its beginning."""
    chunk = chunk[:LONGEST_WORD]
    is_ascii = chunk.isascii()
    # Most chunks are plain words: a shortcut, no other rule.
    if is_ascii and chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        form = chunk.lower()
        return Piece(chunk, (_english_stems[form],), (form,), (), form in FUNCTION_WORDS)
    if is_ascii:
        stem: Callable[[str], str] = _english_stems.__getitem__
        plain = [part.lower() for part in _ASCII_PART.findall(chunk)[:_MOST_PARTS]]
    else:
        stem = _stem
        plain = [_plain(part) for part in _part().findall(chunk)[:_MOST_PARTS]]
    # s3, k8s, mp4 and IPv4 are words, not a letter beside a number.
    if len(plain) < 2 or _SHORT_CODE.fullmatch(chunk):
        form = _plain(chunk)
        return Piece(chunk, (stem(form),), (form,), (), form in FUNCTION_WORDS)
    forms = tuple([form for form in plain if len(form) > 1 or form.isdigit()])
    words = tuple(map(stem, forms))
    if plain[0].isdigit() and all(map(str.isdigit, plain)):
        return Piece(chunk, words, forms)
    joined = list(map(add, plain, plain[1:]))
    if len(plain) > 2:
        joined.append("".join(plain))
    # Joined words are seldom seen again: their stems are not kept.
    stems = map(intern, _english_all(joined)) if is_ascii else map(_stem, joined)
    return Piece(chunk, words, forms, tuple(dict.fromkeys(stems)))


_known = RecentValues(piece_of, most=_MOST_KNOWN, longest=LONGEST_WORD)


@cache
def _part() -> re.Pattern[str]:
    """What an identifier is made of, in any script."""
    return re.compile(
        rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+|\d+|[^\W\d_]+"
    )


def _plain(word: str) -> str:
    word = word.lower()
    if word.isascii():
        return word
    if _CYRILLIC.search(word):
        return word.replace("ё", "е")
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


_english_stems = RecentValues(
    lambda word: intern(_english(word)), most=_MOST_KNOWN, longest=LONGEST_WORD
)


def _stem(word: str) -> str:
    """The stem of a word; one of two letters is its own."""
    if word.isascii():
        return _english_stems[word]
    return intern(_russian(word) if len(word) > 2 and _CYRILLIC.search(word) else _english(word))
