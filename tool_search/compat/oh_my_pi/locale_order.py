"""Names in the order of JavaScript's `localeCompare`.

White space, `_`, `-` and other signs come before digits and these before letters.
Accents count only between names that are equal without them, then case, lower
first. Exact for ASCII names; other scripts follow the order of their letters in
Unicode, which is close to the standard's.

Source: Unicode Technical Standard 10, root collation of CLDR, as ICU's default.
"""

from __future__ import annotations

import unicodedata

__all__ = ["locale_key"]

_SIGNS = {sign: place for place, sign in enumerate("\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$")}
_SIGN, _DIGIT, _LETTER = range(3)
# Its own letter in the standard, not an и with an accent.
_SHORT_I = "и\u0306"

LocaleKey = tuple[tuple[tuple[int, int, str], ...], tuple[str, ...], tuple[bool, ...]]


def locale_key(name: str) -> LocaleKey:
    """What sorts a name as `localeCompare` does.

    >>> sorted(["a2", "b", "aB", "A1", "ab", "a-b", "a_b"], key=locale_key)
    ['a_b', 'a-b', 'A1', 'a2', 'ab', 'aB', 'b']
    """
    letters: list[tuple[int, int, str]] = []
    accents: list[str] = []
    capitals: list[bool] = []
    for char in unicodedata.normalize("NFD", name):
        category = unicodedata.category(char)
        if category.startswith("M"):
            if letters and letters[-1][2] + char == _SHORT_I:
                letters[-1] = (_LETTER, 0, "й")
            elif letters:
                accents[-1] += char
        elif char in _SIGNS or not category.startswith("C"):
            letters.append(_primary(char, category))
            accents.append("")
            capitals.append(category == "Lu")
    return tuple(letters), tuple(accents), tuple(capitals)


def _primary(char: str, category: str) -> tuple[int, int, str]:
    if char in _SIGNS:
        return _SIGN, _SIGNS[char], ""
    if category == "Nd":
        return _DIGIT, unicodedata.decimal(char), ""
    if category.startswith(("L", "N")):
        return _LETTER, 0, char.lower()
    return _SIGN, len(_SIGNS), char
