"""Cuts text in any language into the terms that an index holds.

One rule for definitions and queries: NFKC, then runs of letters and digits.
Identifiers are cut at camelCase, snake_case, hyphens, dots and digits, and
stay searchable whole and by neighbouring parts (`createGitHubIssue`: create,
git, hub, issue; github, creategithubissue). Chinese, Japanese and Korean runs
become single characters and bigrams, traditional ones as simplified. English and
Russian words are stemmed.

Source: Snowball stemmers, https://snowballstem.org/algorithms/; characters and
bigrams for Chinese: Nie, Gao, Zhang, Zhou, "On the use of words and n-grams for
Chinese information retrieval", IRAL 2000.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from sys import intern
from typing import NamedTuple

import Stemmer

from tool_search.search.chinese_script import simplified
from tool_search.search.function_words import (
    CHINESE_CHARACTERS,
    CHINESE_PHRASES,
    FUNCTION_WORDS,
)

__all__ = ["TEXT_END", "Piece", "Segmenter", "field_pieces", "folded", "pieces"]

Segmenter = Callable[[str], list[str]]
"""Cuts a run of Chinese characters into words, which may overlap."""

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3105-\u312f\u3130-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞЀ-Я", "a-zß-öø-ÿа-џ"
_CHUNK = re.compile(r"[^\W_]+(?:[-_.]{1,3}[^\W_]+)*")
_END_SIGN = "\x1d"
_CHUNK_OR_END = re.compile(rf"{_CHUNK.pattern}|{_END_SIGN}")
# The same for text that is ASCII alone, in half the time.
_ASCII_CHUNK = re.compile(r"[A-Za-z0-9]+(?:[-_.]{1,3}[A-Za-z0-9]+)*")
_ASCII_CHUNK_OR_END = re.compile(rf"{_ASCII_CHUNK.pattern}|{_END_SIGN}")
_SHORT_CODE = re.compile(r"[^\W_]{1,4}")
_HAS_CJK = re.compile(f"[{_CJK}]")
_SCRIPT_RUN = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_PART = re.compile(
    rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+|\d+|[^\W\d_]+"
)
_ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CONTRACTION = re.compile(r"['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_PHRASE = re.compile("|".join(CHINESE_PHRASES))
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_FIRST_HAN = "\u3400"
_CYRILLIC = re.compile("[Ѐ-ӿ]")
_LONGEST_NORMALIZED = 512
_NORMALIZED = re.compile(r".{1,512}(?=[\x00-\x7f]|\Z)|.{1,512}", re.DOTALL)

_LONGEST_WORD = 64
_MOST_PARTS = 12
_MOST_KNOWN = 20_000

# Snowball's own cache is off: whole chunks are cached here, with their stems.
_english = Stemmer.Stemmer("english", 0).stemWord
_english_stems = Stemmer.Stemmer("english", 0).stemWords
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
    text = text[:longest]
    pattern = _ASCII_CHUNK if text.isascii() else _CHUNK
    return _cut(pattern, text, segmenter)


def field_pieces(
    texts: Sequence[str], *, longest: int, segmenter: Segmenter | None = None
) -> list[Piece]:
    """The pieces of several texts together, `TEXT_END` between those of two texts."""
    text = _END_SIGN.join(texts)[:longest]
    pattern = _ASCII_CHUNK_OR_END if text.isascii() else _CHUNK_OR_END
    return _cut(pattern, text, segmenter)


def _compatible(text: str) -> str:
    """The text in NFKC, a long one in parts that end before an ASCII character if they can.

    The time of `normalize` is quadratic in the marks that one letter carries.
    """
    if len(text) <= _LONGEST_NORMALIZED:
        return unicodedata.normalize("NFKC", text)
    return "".join(unicodedata.normalize("NFKC", part) for part in _NORMALIZED.findall(text))


def _cut(pattern: re.Pattern[str], text: str, segmenter: Segmenter | None) -> list[Piece]:
    if text.isascii():
        if "'" in text:
            text = _CONTRACTION.sub("", text)
        return list(map(_known_words.__getitem__, pattern.findall(text)))
    text = _compatible(text)[: len(text)]
    if (" " in text or "\t" in text) and max(text) >= _FIRST_HAN:
        text = _spaced_han().sub("", text)
    found: list[Piece] = []
    for chunk in pattern.findall(_CONTRACTION.sub("", text)):
        if chunk.isascii() or not _HAS_CJK.search(chunk):
            found.append(_known_words[chunk])
        else:
            found.extend(_mixed_pieces(chunk, segmenter))
    return found


@cache
def _spaced_han() -> re.Pattern[str]:
    """What is left out so that 火 车 票 is 火车票; before a word of several a space stays.

    Compiled when first needed: large ranges of characters take a while.
    """
    return re.compile(rf"(?<=[{_HAN}])[ \t]+(?=[{_HAN}](?![{_HAN}]))")


class _KnownWords(dict[str, Piece]):
    """Pieces by chunk, made when they are asked for; forgets all when it is full."""

    def __missing__(self, chunk: str) -> Piece:
        if len(chunk) > _LONGEST_WORD:
            return _piece(chunk[:_LONGEST_WORD])
        piece = _piece(chunk)
        if len(self) >= _MOST_KNOWN:
            self.clear()
            self[_END_SIGN] = TEXT_END
        self[chunk] = piece
        return piece


TEXT_END = Piece("\n", ("\n",), (), is_function=True)
"""Stands between two texts; no term, as function words are none."""

_known_words = _KnownWords({_END_SIGN: TEXT_END})


def _mixed_pieces(chunk: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    for run in _SCRIPT_RUN.findall(chunk):
        if not _HAS_CJK.match(run):
            for part in _CHUNK.findall(run):
                yield _known_words[part]
            continue
        text = simplified(run)
        for start, end in _between_phrases(text):
            stretch = text[start:end]
            words = segmenter(stretch) if segmenter else _characters_and_bigrams(stretch)
            kept = tuple([intern(word) for word in words if word not in CHINESE_CHARACTERS])
            yield Piece(run[start:end], kept, kept, (), is_function=not kept, is_cjk=True)


def _between_phrases(text: str) -> Iterator[tuple[int, int]]:
    """Where the stretches of a text begin and end that are no function words."""
    place = 0
    for phrase in _PHRASE.finditer(text):
        if place < phrase.start():
            yield place, phrase.start()
        place = phrase.end()
    if place < len(text):
        yield place, len(text)


def _characters_and_bigrams(run: str) -> list[str]:
    return list(run) + [
        first + second
        for first, second in pairwise(run)
        if first not in CHINESE_CHARACTERS or second not in CHINESE_CHARACTERS
    ]


def _piece(chunk: str) -> Piece:
    # Most chunks are plain words: a shortcut, no other rule.
    if chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        form = intern(chunk.lower())
        return Piece(chunk, (intern(_english(form)),), (form,), (), form in FUNCTION_WORDS)
    parts = (_ASCII_PART if chunk.isascii() else _PART).findall(chunk)[:_MOST_PARTS]
    # s3, k8s, mp4 and IPv4 are words, not a letter beside a number.
    if len(parts) < 2 or _SHORT_CODE.fullmatch(chunk):
        form = _plain(chunk)
        return Piece(chunk, tuple(_stems([form])), (form,), (), form in FUNCTION_WORDS)
    plain = [_plain(part) for part in parts]
    forms = tuple([form for form in plain if len(form) > 1 or form.isdigit()])
    if all(form.isdigit() for form in plain):
        return Piece(chunk, tuple(_stems(forms)), forms)
    joined = [first + second for first, second in pairwise(plain)]
    stems = _stems([*forms, *joined, "".join(plain)])
    compounds = dict.fromkeys(stems[len(forms) :])
    return Piece(chunk, tuple(stems[: len(forms)]), forms, tuple(compounds))


def _plain(word: str) -> str:
    word = intern(word.lower())
    if word.isascii():
        return word
    if _CYRILLIC.search(word):
        return word.replace("ё", "е")
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _stems(words: Sequence[str]) -> list[str]:
    """The stem of each word; one of two letters is its own."""
    if all(map(str.isascii, words)):
        return list(map(intern, _english_stems(words)))
    return [
        intern(_russian(word) if len(word) > 2 and _CYRILLIC.search(word) else _english(word))
        for word in words
    ]
