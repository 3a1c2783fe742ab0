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
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import concat
from string import ascii_letters, digits
from sys import intern
from typing import NamedTuple

import Stemmer

from tool_search.search.chinese_script import simplified
from tool_search.search.cjk import (
    between_phrases,
    characters_and_bigrams,
    has_cjk,
    script_runs,
    unspaced,
)
from tool_search.search.function_words import CHINESE_CHARACTERS, FUNCTION_WORDS

__all__ = ["TEXT_END", "Piece", "Segmenter", "field_pieces", "folded", "pieces"]

Segmenter = Callable[[str], list[str]]
"""Cuts a run of Chinese characters into words, which may overlap."""

_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞЀ-Я", "a-zß-öø-ÿа-џ"
_CHUNK = re.compile(r"[^\W_]+(?:[-_.]{1,3}[^\W_]+)*")
_END_SIGN = "\x01"
_CHUNK_OR_END = re.compile(rf"{_CHUNK.pattern}|{_END_SIGN}")
# What can stand in no chunk of ASCII text, nor in a contraction.
_IN_CHUNKS = f"{ascii_letters}{digits}-_.'"
_SPACED, _SPACED_BUT_END = (
    bytes(code if chr(code) in kept else ord(" ") for code in range(256))
    for kept in (_IN_CHUNKS, _IN_CHUNKS + _END_SIGN)
)
_SHORT_CODE = re.compile(r"[^\W_]{1,4}")
_ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CONTRACTION = re.compile(r"['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_CYRILLIC = re.compile("[Ѐ-ӿ]")
_LONGEST_NORMALIZED = 512
_NORMALIZED = re.compile(r".{1,512}(?=[\x00-\x7f]|\Z)|.{1,512}", re.DOTALL)

_LONGEST_WORD = 64
_MOST_PARTS = 12
_MOST_KNOWN = 40_000
# Characters and bigrams together are about four terms for each Chinese word of two
# characters; half of that is taken, as Chinese says the same in fewer words.
_CJK_LENGTH = 0.5

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
        counted: The terms that an index counts: words and compounds; of a function
            word none.
        length: How much longer it makes its field, in words.
        sequence: Its words in their order with a space between, Chinese by characters.
    """

    original: str
    words: tuple[str, ...]
    forms: tuple[str, ...]
    compounds: tuple[str, ...]
    is_function: bool
    is_cjk: bool
    counted: tuple[str, ...]
    length: float
    sequence: str


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
    if text.isascii():
        return _cut_ascii(text, _SPACED)
    return _cut(_CHUNK, text, segmenter)


def field_pieces(
    texts: Sequence[str], *, longest: int, segmenter: Segmenter | None = None
) -> list[Piece]:
    """The pieces of several texts together, `TEXT_END` between those of two texts."""
    text = f" {_END_SIGN} ".join(texts)[:longest]
    if text.isascii():
        return _cut_ascii(text, _SPACED_BUT_END)
    return _cut(_CHUNK_OR_END, text, segmenter)


def _compatible(text: str) -> str:
    """The text in NFKC, a long one in parts that end before an ASCII character if they can.

    The time of `normalize` is quadratic in the marks that one letter carries.
    """
    if len(text) <= _LONGEST_NORMALIZED:
        return unicodedata.normalize("NFKC", text)
    return "".join(unicodedata.normalize("NFKC", part) for part in _NORMALIZED.findall(text))


def _cut_ascii(text: str, spaced: bytes) -> list[Piece]:
    """The pieces of what stands between spaces; most of it was seen before."""
    stretches = text.encode("ascii").translate(spaced).decode("ascii").split()
    return list(chain.from_iterable(map(_known.__getitem__, stretches)))


def _cut(pattern: re.Pattern[str], text: str, segmenter: Segmenter | None) -> list[Piece]:
    text = _compatible(text)[: len(text)]
    found: list[Piece] = []
    for chunk in pattern.findall(_CONTRACTION.sub("", unspaced(text))):
        if chunk.isascii() or not has_cjk(chunk):
            found.extend(_known[chunk])
        else:
            found.extend(_mixed_pieces(chunk, segmenter))
    return found


class _KnownPieces(dict[str, tuple[Piece, ...]]):
    """The pieces of a stretch without spaces, made when asked for; forgets all when full."""

    def __missing__(self, stretch: str) -> tuple[Piece, ...]:
        chunks = _CHUNK.findall(_CONTRACTION.sub("", stretch))
        if chunks != [stretch]:
            found = tuple(chain.from_iterable(map(self.__getitem__, chunks)))
        else:
            found = (_piece(stretch[:_LONGEST_WORD]),)
        if len(stretch) <= _LONGEST_WORD:
            if len(self) >= _MOST_KNOWN:
                self.clear()
                self[_END_SIGN] = (TEXT_END,)
            self[stretch] = found
        return found


def _word(original: str, form: str, stem: str) -> Piece:
    """The piece of one word."""
    own = (stem,)
    if form in FUNCTION_WORDS:
        return Piece(original, own, (form,), (), True, False, (), 0, stem)
    return Piece(original, own, (form,), (), False, False, own, 1, stem)


TEXT_END = Piece("\n", ("\n",), (), (), True, False, (), 0, "\n")
"""Stands between two texts; no term, as function words are none."""

_known = _KnownPieces({_END_SIGN: (TEXT_END,)})


def _mixed_pieces(chunk: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    for run, is_cjk in script_runs(chunk):
        if is_cjk:
            yield from _cjk_pieces(run, segmenter)
        else:
            for part in _CHUNK.findall(run):
                yield from _known[part]


def _cjk_pieces(run: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    text = simplified(run)
    for start, end in between_phrases(text):
        stretch = text[start:end]
        words = segmenter(stretch) if segmenter else characters_and_bigrams(stretch)
        kept = tuple([intern(word) for word in words if word not in CHINESE_CHARACTERS])
        length, sequence = len(kept) * _CJK_LENGTH, " ".join(stretch)
        yield Piece(run[start:end], kept, kept, (), not kept, True, kept, length, sequence)


def _piece(chunk: str) -> Piece:
    # Most chunks are plain words: a shortcut, no other rule.
    if chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        form = intern(chunk.lower())
        return _word(chunk, form, intern(_english(form)))
    parts = (_ASCII_PART if chunk.isascii() else _part()).findall(chunk)[:_MOST_PARTS]
    # s3, k8s, mp4 and IPv4 are words, not a letter beside a number.
    if len(parts) < 2 or _SHORT_CODE.fullmatch(chunk):
        form = _plain(chunk)
        return _word(chunk, form, _stems([form])[0])
    plain = list(map(_plain, parts))
    forms = tuple([form for form in plain if len(form) > 1 or form.isdigit()])
    joined: list[str] = []
    if not all(map(str.isdigit, plain)):
        joined = list(map(concat, plain, plain[1:]))
        if len(plain) > 2:
            joined.append("".join(plain))
    stems = _stems([*forms, *joined])
    words, compounds = tuple(stems[: len(forms)]), tuple(dict.fromkeys(stems[len(forms) :]))
    sequence = " ".join(words)
    return Piece(
        chunk, words, forms, compounds, False, False, words + compounds, len(words), sequence
    )


@cache
def _part() -> re.Pattern[str]:
    """What an identifier is made of, in any script."""
    return re.compile(
        rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+|\d+|[^\W\d_]+"
    )


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
