"""Answers in which a model says that it has no tool for what the user wants."""

from __future__ import annotations

import re
from functools import cache

from tool_search.i18n import LANGUAGES, text

__all__ = ["says_tool_is_missing"]

# An answer may be long; what it cannot do comes first or last. Of hostile text 2,000 letters take
# 20 ms of the event loop.
_MAX_CHARS = 1_000
# The words that a gap of a phrase may have, within a sentence.
_GAP = r"[^.!?。！？\n]{0,40}?"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def says_tool_is_missing(answer: str) -> bool:
    """True if an answer has a phrase of some language that says so.

    The phrases are `phrases.no_tool` of each locale, with `|` between them; `…` is a gap of at
    most 40 characters in a sentence.

    >>> says_tool_is_missing("Sorry, I don’t have a tool for sending mail.")
    True
    >>> says_tool_is_missing("A screwdriver is a tool for screws.")
    False
    """
    parts = answer[:_MAX_CHARS], answer[_MAX_CHARS:][-_MAX_CHARS:]
    return any(_pattern().search(part.translate(_APOSTROPHES).lower()) for part in parts)


@cache
def _pattern() -> re.Pattern[str]:
    phrases = [
        phrase.strip() for name in LANGUAGES for phrase in text("phrases.no_tool", name).split("|")
    ]
    return re.compile("|".join(map(_phrase_pattern, phrases)))


def _phrase_pattern(phrase: str) -> str:
    pieces = (
        re.escape(piece.strip()).replace(r"\ ", r"\s+") for piece in phrase.lower().split("…")
    )
    # A phrase of letters begins at a word; Chinese has no spaces between words.
    start = r"\b" if phrase[0] < "\u2e80" else ""
    return start + _GAP.join(pieces)
