"""Everything that a model or a person reads, in three languages.

`text("search.no_match", "zh-CN")` looks a sentence up. Logs and errors are
English and are not here.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

__all__ = ["LANGUAGES", "Language", "language_of", "locale", "text"]

Language = Literal["zh-CN", "en-US", "ru-RU"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@cache
def locale(language: Language) -> dict[str, str]:
    """Every sentence of one language, by key; read from the package once."""
    content = files("tool_search.i18n").joinpath("locales", f"{language}.json")
    sentences: dict[str, str] = json.loads(content.read_text(encoding="utf-8"))
    return sentences


def text(key: str, language: Language, **values: object) -> str:
    """One sentence, its `{placeholders}` filled.

    Raises:
        KeyError: No such key, or a placeholder has no value: a mistake of ours.
    """
    return locale(language)[key].format(**values)


def language_of(sample: str) -> Language:
    """The language a text is answered in, by its script.

    Chinese where it has at least as many Han characters as words in Cyrillic and
    Latin, Russian where Cyrillic words are no fewer than Latin ones; kana and
    Hangul, having no locale here, give English.

    >>> language_of("帮我查天气"), language_of("Какая погода?"), language_of("hi")
    ('zh-CN', 'ru-RU', 'en-US')
    """
    if any("\u3040" <= char <= "\u30ff" or "\uac00" <= char <= "\ud7af" for char in sample):
        return "en-US"
    han = sum("\u4e00" <= char <= "\u9fff" or "\u3400" <= char <= "\u4dbf" for char in sample)
    words = sample.split()
    cyrillic = sum(any("\u0400" <= char <= "\u04ff" for char in word) for word in words)
    latin = sum(any(char.isascii() and char.isalpha() for char in word) for word in words)
    if han and han >= cyrillic + latin:
        return "zh-CN"
    return "ru-RU" if cyrillic and cyrillic >= latin else "en-US"
