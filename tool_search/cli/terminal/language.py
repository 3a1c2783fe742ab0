"""The language of the person at the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar

from tool_search.errors import ConfigurationError
from tool_search.i18n import LANGUAGES, Language, language_of_locale, text

__all__ = [
    "choose_language",
    "clauses",
    "enumerated",
    "environment_language",
    "named_language",
    "number",
    "percent",
    "spoken",
    "spoken_language",
    "wrong_use",
]

# In the order in which POSIX reads them.
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_SEPARATORS: Mapping[Language, str] = {"ru-RU": "\u00a0"}
_SEMICOLONS: Mapping[Language, str] = {"zh-CN": "；"}
_COMMAS: Mapping[Language, str] = {"zh-CN": "、"}
_chosen: ContextVar[Language | None] = ContextVar("language", default=None)


def choose_language(name: str | None) -> None:
    """Set the language of what a person reads; None: that of the environment.

    Args:
        name: A language, such as `zh`, `zh-CN` or `zh_CN.UTF-8`.

    Raises:
        ConfigurationError: There is no such language.
    """
    # An unknown name is an error in the language of the environment.
    _chosen.set(None)
    if name is not None:
        _chosen.set(_require_known(name))


def named_language(environment: Mapping[str, str] = os.environ) -> Language | None:
    """Return the language that `--language` names, or an environment that is not English.

    Else None: many systems are in English whose people are not.
    """
    found = environment_language(environment)
    return _chosen.get() or (None if found == "en-US" else found)


def spoken_language() -> Language:
    """Return the language of `--language`, or that of the environment."""
    return _chosen.get() or environment_language()


def environment_language(environment: Mapping[str, str] = os.environ) -> Language:
    """Return the language of the first locale variable that is set; English if none is."""
    return language_of_locale(next(filter(None, map(environment.get, _VARIABLES)), ""))


def spoken(key: str, **values: object) -> str:
    """Return a sentence of `tool_search.i18n` in the person's language."""
    return text(key, spoken_language(), **values)


def wrong_use(key: str, **values: object) -> ConfigurationError:
    """Return an error of use whose message is in the person's language."""
    return ConfigurationError(spoken(key, **values))


def number(value: float) -> str:
    """Return a whole number with the language's separator of thousands."""
    return f"{value:,.0f}".replace(",", _SEPARATORS.get(spoken_language(), ","))


def clauses(*parts: str) -> str:
    """Return clauses as one line, with the semicolon of the language."""
    return _SEMICOLONS.get(spoken_language(), "; ").join(parts)


def enumerated(phrases: Iterable[str]) -> str:
    """Return phrases as one line, with the comma of the language."""
    return _COMMAS.get(spoken_language(), ", ").join(phrases)


def percent(share: float) -> str:
    """Return a share from 0 to 1 in percent."""
    return f"{share * 100:.0f} %"


def _require_known(name: str) -> Language:
    wanted = re.split(r"[-_.@]", name.strip().lower(), maxsplit=1)[0]
    found = language_of_locale(name.strip())
    # An unknown name is answered in English.
    if found.partition("-")[0] != wanted:
        raise wrong_use(
            "use.value", option="--language", value=repr(name), names=", ".join(LANGUAGES)
        )
    return found
