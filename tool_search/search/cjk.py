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

from tool_search.search.function_words import CHINESE_CHARACTERS, CHINESE_PHRASES

__all__ = ["between_phrases", "characters_and_bigrams", "has_cjk", "script_runs", "unspaced"]

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3105-\u312f\u3130-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_FIRST_CJK = "\u1100"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_FIRST_HAN = "\u3400"


@cache
def _run() -> re.Pattern[str]:
    return re.compile(f"([{_CJK}]+)")


@cache
def _phrase() -> re.Pattern[str]:
    return re.compile("|".join(CHINESE_PHRASES))


@cache
def _space_in_han() -> re.Pattern[str]:
    return re.compile(rf"(?<=[{_HAN}])[ \t]+(?=[{_HAN}](?![{_HAN}]))")


def has_cjk(text: str) -> bool:
    """Whether a text that is not empty has a Chinese, Japanese or Korean character."""
    return max(text) >= _FIRST_CJK and _run().search(text) is not None


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
    return _space_in_han().sub("", text)


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
