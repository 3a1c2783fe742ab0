"""Everything that a model or a person reads, in each language of `LANGUAGES`.

`text("search.no_match", "zh-CN")` looks a sentence up. Logs and errors are
English and are not here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Literal

from tool_search.errors import ConfigurationError

__all__ = [
    "LANGUAGES",
    "Language",
    "Sentence",
    "language_of",
    "language_of_locale",
    "locale",
    "script_of",
    "text",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """The letters by which a text is known to be in a language.

    Attributes:
        letter: A character class of the language's own letters.
        has_spaces: True if words are counted; False if each letter is.
    """

    letter: str
    has_spaces: bool = True

    def count(self, sample: str) -> int:
        """Return the words of a text that have such a letter, or the letters."""
        units = sample.split() if self.has_spaces else sample
        return sum(re.search(self.letter, unit) is not None for unit in units)


# The languages, a row for each: with `locales/{name}.json`, a row is all that a language
# needs. None for a language whose letters another one has too: only a setting chooses it.
_SCRIPTS: Mapping[str, _Script | None] = {
    "zh-CN": _Script(letter=r"[\u3400-\u4dbf\u4e00-\u9fff]", has_spaces=False),
    "en-US": _Script(letter=r"[a-zA-Z]"),
    "ru-RU": _Script(letter=r"[\u0400-\u04ff]"),
}
_DEFAULT = "en-US"
# Kana and Hangul: Japanese has Han characters too, and is not Chinese.
_OTHER_LETTER = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")

LANGUAGES: tuple[Language, ...] = tuple(_SCRIPTS)
"""The names of the languages, as settings have them."""

if TYPE_CHECKING:
    Language = str
else:
    Language = Literal[LANGUAGES]


@cache
def locale(language: Language) -> dict[str, str]:
    """Return every sentence of one language, by key; reads the package once.

    Raises:
        ConfigurationError: There is no such language.
    """
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise ConfigurationError(f"there is no language {language!r}; known are {known}")
    # By this package's own name and loader: an AstrBot plugin has it under another one.
    sentences: dict[str, str] = json.loads(get_data(__name__, f"locales/{language}.json") or "")
    return sentences


def text(key: str, language: Language, **values: object) -> str:
    """Return one sentence with its `{placeholders}` filled.

    Raises:
        KeyError: The key is unknown, or a placeholder has no value: a mistake of ours.
        ConfigurationError: There is no such language.
    """
    return locale(language)[key].format(**values)


class Sentence:
    """A sentence that is said later, in the language of its reader; `str` is English.

    Args:
        key: Its key.
        values: Its placeholders.
    """

    def __init__(self, key: str, **values: object) -> None:
        self._key = key
        self._values = values

    def in_language(self, language: Language) -> str:
        """Return the sentence in a language."""
        return text(self._key, language, **self._values)

    def __str__(self) -> str:
        return self.in_language("en-US")

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def script_of(language: Language) -> str | None:
    """Return the pattern of a letter of a language; None if it has none of its own."""
    script = _SCRIPTS[language]
    return None if script is None else script.letter


def language_of(sample: str) -> Language:
    """Return the language in which to answer a text, by its script.

    Chinese if the text has at least as many Han characters as words in Cyrillic and
    Latin, Russian if Cyrillic words are no fewer than Latin ones. Kana and Hangul are
    of languages without a locale, and give English.

    >>> language_of("帮我查天气"), language_of("Какая погода?"), language_of("hi")
    ('zh-CN', 'ru-RU', 'en-US')
    """
    if any(_is_foreign(letter) for letter in _OTHER_LETTER.findall(sample)):
        return _DEFAULT
    counts = {name: script.count(sample) for name, script in _SCRIPTS.items() if script}
    rest = sum(counts.values())
    for name, count in counts.items():
        if name == _DEFAULT:
            continue
        rest -= count
        if count and count >= rest:
            return name
    return _DEFAULT


def language_of_locale(name: str) -> Language:
    """Return the language for a locale's name, such as `zh_CN.UTF-8`; English if none fits.

    >>> language_of_locale("ru_RU.UTF-8"), language_of_locale("C.UTF-8")
    ('ru-RU', 'en-US')
    """
    wanted = re.split(r"[-_.@]", name.lower(), maxsplit=1)[0]
    same = (each for each in LANGUAGES if each.partition("-")[0] == wanted)
    return next(same, _DEFAULT)


def _is_foreign(letter: str) -> bool:
    return not any(script and re.match(script.letter, letter) for script in _SCRIPTS.values())
