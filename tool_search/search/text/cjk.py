"""Runs of Chinese, Japanese and Korean characters in a text, and what they are cut into.

Patterns are compiled when first needed: large ranges of characters take milliseconds,
and most catalogs have none of them.

Source: characters and bigrams for Chinese: Nie, Gao, Zhang, Zhou, "On the use of words
and n-grams for Chinese information retrieval", IRAL 2000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from tool_search.search.text.stop_words import CHINESE_CHARACTERS, CHINESE_PHRASES

__all__ = ["between_phrases", "characters_and_bigrams", "has_cjk", "script_runs", "unspaced"]

# Letters that are not Chinese, Japanese or Korean ones, and what lies between. Their ranges
# are the shorter ones, and a pattern's ranges are compiled one character after the other.
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
    return re.compile("|".join(CHINESE_PHRASES))


def _is_han(char: str) -> bool:
    return "\u3400" <= char <= "\u4dbf" or "\u4e00" <= char <= "\u9fff"


def has_cjk(text: str) -> bool:
    """Whether a text that is not empty has a Chinese, Japanese or Korean character."""
    return not text.isascii() and max(text) >= _FIRST_CJK and _run().search(text) is not None


def script_runs(text: str) -> Iterator[tuple[str, bool]]:
    """The runs of a text in their order, and of each whether it is of such characters.

    >>> list(script_runs("用git提交"))
    [('用', True), ('git', False), ('提交', True)]
    """
    for number, run in enumerate(_run().split(text)):
        if run:
            yield run, bool(number % 2)


def unspaced(text: str) -> str:
    """The text with 火 车 票 written 火车票; before a word of several characters a space stays.

    >>> unspaced("订 火 车 票 火车 站")
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
    """Where the stretches of a run begin and end that are no function words."""
    place = 0
    for phrase in _phrase().finditer(text):
        if place < phrase.start():
            yield place, phrase.start()
        place = phrase.end()
    if place < len(text):
        yield place, len(text)


def characters_and_bigrams(run: str) -> list[str]:
    """Each character of a run, then its pairs but those of two function words."""
    return list(run) + [
        first + second
        for first, second in pairwise(run)
        if first not in CHINESE_CHARACTERS or second not in CHINESE_CHARACTERS
    ]
