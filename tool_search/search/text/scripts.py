"""The scripts that tools and terms are written in.

Words match within a script: no Chinese word of a query is in an English description. So
what the words of a query explain is worked out for the tools of each script.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import compress, groupby
from typing import TYPE_CHECKING

from tool_search.core.catalog.tool import Tool
from tool_search.search.text.stop_words import ALSO_ENGLISH, STOP_WORDS_OF
from tool_search.search.text.tokenizer import folded, has_cjk, script_runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ALL_SCRIPTS",
    "CJK",
    "CYRILLIC",
    "OTHER",
    "ToolScripts",
    "by_script",
    "foreign_language",
    "has_several",
    "is_bilingual",
    "language_of",
    "languages_with",
    "script_of",
    "scripts_in",
    "scripts_of",
    "stop_words_of",
]

CJK, CYRILLIC, OTHER = 1, 2, 4
"""Chinese, Japanese and Korean; Cyrillic; any other script, which is mostly Latin."""
_JAPANESE, _FOREIGN, _LATIN = 8, 16, 32
_LANGUAGES = {"english": OTHER, "arabic": _FOREIGN} | {
    name: 64 << place
    for place, name in enumerate(
        ("spanish", "french", "german", "portuguese", "italian", "dutch", "turkish")
    )
}
_LETTERS_OF = {
    letter: _LANGUAGES[name]
    for name, letters in (
        ("spanish", "ñ¿¡"),
        ("french", "œù"),
        ("german", "ßä"),
        ("portuguese", "ãõ"),
        ("italian", "ìò"),
        ("turkish", "ığş"),
    )
    for letter in letters
}
ALL_SCRIPTS = 0xFFFF
_GROUPS = tuple(1 << place for place in range(16))
_SCRIPTS = CJK | CYRILLIC | OTHER
# Fewer tools, or a smaller share, are no language of the catalog: each group takes time.
_MIN_TOOLS, _MIN_SHARE = 8, 0.005

_MAX_CHARS = 2_000
_MAX_LANGUAGE_CHARS = 400
_LETTERS = re.compile(r"[^\W\d_]+")
# Greek, Armenian, Hebrew, Arabic, Indic and the others up to Georgian, then to Latin again.
_FOREIGN_LETTER = re.compile("[\u0370-\u03ff\u0530-\u10ff\u1200-\u1dff]")
_KANA = re.compile("[\u3041-\u30ff]")
# One character may be a unit or an emoticon.
_MIN_CJK_CHARS = 2
_CYRILLIC_WORD = re.compile("[Ѐ-ӿ]{2,}")
# Names of products (GitHub, API, v3) are written so in every language.
_PLAIN_WORD = re.compile(r"(?<![^\W_])[A-Za-z]?[a-z]+(?![^\W_])")
_MIN_PLAIN_WORDS = 2
# Chinese has no space between sentences, nor before an English one.
_WORD = re.compile(r"\S+?(?:(?<=[.!?;|])(?=[^\x00-\x7f])|(?<=[。！？；])|(?=\s)|\Z)\s*|\s+")
_CJK_MARK = re.compile("[。！？；，、：]")
_CJK_CHARS_A_WORD = 2


@cache
def _marks() -> dict[str, int]:
    """Return the languages of each stop word, as written and without accents."""
    found: dict[str, int] = {}
    for name, words in STOP_WORDS_OF.items():
        for word in words | set(map(folded, words)):
            if word not in ALSO_ENGLISH:
                found[word] = found.get(word, 0) | _LANGUAGES[name]
    return found


_NAMES = {language: name for name, language in _LANGUAGES.items() if language != OTHER}


def foreign_language(text: str) -> str:
    """Return the name of a text's language; empty for English, Russian and CJK."""
    return _NAMES.get(language_of(text), "")


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """Return the stop words of a `foreign_language` without accents."""
    return frozenset(map(folded, STOP_WORDS_OF.get(language, ())))


def language_of(text: str) -> int:
    """Return the language of a text with spaces between words: that of most stop words."""
    text = text[:_MAX_LANGUAGE_CHARS].lower()
    is_ascii = text.isascii()
    words = set(text.replace("'", " ").split() if is_ascii else _LETTERS.findall(text))
    if not is_ascii and 2 * sum(map(bool, map(_FOREIGN_LETTER.search, words))) > len(words):
        return _FOREIGN
    found = [own for own in map(_marks().get, words) if own]
    if not is_ascii:
        found += map(_LETTERS_OF.__getitem__, _LETTERS_OF.keys() & set(text))
    # Two words of a name, as in `Rio de la Plata`, are no evidence in an English text.
    foreign = sum([not own & OTHER for own in found])
    if is_ascii and (not foreign or (foreign < 2 and OTHER in found)):
        return OTHER
    votes = {bit: sum([bool(own & bit) for own in found]) for bit in _LANGUAGES.values()}
    best = max(votes, key=votes.__getitem__)
    if not votes[best] and sum([not word.isascii() for word in words]) > 1:
        return _LATIN
    return best


def script_of(term: str) -> int:
    """Return the script of a term, which must not be empty."""
    if term.isascii():
        return OTHER
    if has_cjk(term):
        return CJK
    return CYRILLIC if _CYRILLIC_WORD.search(term) else OTHER


def languages_with(term: str) -> int:
    """Return the languages that a term may be a word of: by its script, all for a Latin one."""
    own = script_of(term)
    return ALL_SCRIPTS if own == OTHER else CJK | _JAPANESE if own == CJK else own


def scripts_of(tool: Tool) -> int:
    """Return the scripts of a tool's description, title, aliases and tags, or of its name."""
    own = (tool.description, tool.summary, tool.title, tool.category, *tool.aliases, *tool.tags)
    text = " ".join(filter(None, own))[:_MAX_CHARS]
    if not any(map(str.isalpha, text)):
        text = tool.name
    found = scripts_in(text)
    if found & CJK and len(_KANA.findall(text)) > 1:
        found += _JAPANESE - CJK
    return found - OTHER + language_of(text) if found == OTHER else found


def scripts_in(text: str) -> int:
    """Return the scripts of a text; one for a text without a letter.

    Latin words in a text of another script count if they are a translation: at least half
    as many plain words as the other script has.
    """
    if text.isascii():
        return OTHER
    chars = sum(len(run) for run, is_cjk in script_runs(text) if is_cjk)
    cyrillic = len(_CYRILLIC_WORD.findall(text))
    found = (CJK if chars >= _MIN_CJK_CHARS else 0) | (CYRILLIC if cyrillic else 0)
    plain = _count_plain(text)
    words = chars / _CJK_CHARS_A_WORD + cyrillic
    is_translated = plain >= _MIN_PLAIN_WORDS and plain >= words / 2
    return found | OTHER if is_translated or not found else found


def has_several(scripts: int) -> bool:
    """Return True if a set of scripts has more than one."""
    return bool(scripts & (scripts - 1))


def is_bilingual(text: str) -> bool:
    """Return True if a text is in two languages of different scripts; see `scripts_in`."""
    return not text.isascii() and has_several(scripts_in(text[:_MAX_CHARS]))


def by_script(text: str, *, min_words: int = 2) -> list[str]:
    """Return a text in two languages as one text for each script, in order of first use.

    Names of products and single foreign words stay in the text around them.

    Args:
        text: The text.
        min_words: Number of plain Latin words in a row that are not within another language.

    >>> by_script("Sends an email to somebody. 给某人发送 email。")
    ['Sends an email to somebody.', '给某人发送 email。']
    """
    kinds = 0 if text.isascii() else scripts_in(text)
    if not has_several(kinds):
        return [text]
    found: dict[int, list[str]] = {}
    last, before = 0, ""
    for script, run in _runs(text):
        is_text = script & kinds and (script != OTHER or _count_plain(run) >= min_words)
        if is_text and script != last:
            last = script
            before = f" {before}"
        if last:
            found.setdefault(last, []).append(before + run)
        before = "" if last else before + run
    return [" ".join("".join(parts).split()) for parts in found.values()] or [text]


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield runs of words in one script, in order, with the spaces after them."""
    return (
        (script, "".join(words)) for script, words in groupby(_WORD.findall(text), _script_of_word)
    )


def _script_of_word(word: str) -> int:
    return CJK if _CJK_MARK.search(word) else script_of(word)


def _count_plain(text: str) -> int:
    return len(_PLAIN_WORD.findall(text))


class ToolScripts:
    """An immutable table of the scripts of tools.

    Args:
        scripts: The scripts by document id, 0 for a free id.

    Attributes:
        found: The scripts by document id, each for itself.
        by_doc_id: The same, those of too few tools joined with others.
        groups: The scripts that at least one tool has.
        kinds_there: The different combinations of scripts that a tool has.
    """

    def __init__(self, scripts: Iterable[int] = ()) -> None:
        self.found = self.by_doc_id = array("H")
        self.found.extend(scripts)
        self.kinds_there = tuple(sorted(frozenset(self.found)))
        joined = {kind: self._joined(kind) for kind in self.kinds_there}
        if any(kind != own for kind, own in joined.items()):
            self.by_doc_id = array("H", map(joined.__getitem__, self.found))
            self.kinds_there = tuple(sorted(frozenset(joined.values())))
        self.groups = tuple(
            group for group in _GROUPS if any(kind & group for kind in self.kinds_there)
        )

    def _joined(self, kind: int) -> int:
        """Return languages, with the script for those of too few tools to be a group."""
        least = max(_MIN_TOOLS, _MIN_SHARE * len(self.found))
        for group in _GROUPS:
            if kind & group & ~_SCRIPTS:
                having = sum(self.found.count(each) for each in self.kinds_there if each & group)
                if having < least:
                    kind = kind & ~group | (CJK if group == _JAPANESE else OTHER)
        return kind

    def changed(
        self, *, left: Iterable[tuple[int, Tool]], entered: Iterable[tuple[int, Tool]]
    ) -> ToolScripts:
        """Return a table with some tools removed and others added."""
        scripts = array("H", self.found)
        for doc_id, _ in left:
            scripts[doc_id] = 0
        for doc_id, tool in entered:
            scripts[doc_id : doc_id + 1] = array("H", (scripts_of(tool),))
        return ToolScripts(scripts)

    def members(self, group: int) -> list[int]:
        """Return the document ids of the tools in a language, ascending."""
        return self._members[group]

    def places(self, group: int) -> NDArray[np.intp]:
        """Return `members` in an array."""
        return self._places[group]

    @cached_property
    def kinds(self) -> NDArray[np.uint16]:
        """The languages by document id, in an array."""
        import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

        return np.frombuffer(self.by_doc_id, np.uint16)

    @cached_property
    def kind_numbers(self) -> NDArray[np.intp]:
        """The place in `kinds_there` by document id, in an array."""
        import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

        return np.searchsorted(np.array(self.kinds_there, np.uint16), self.kinds)

    @cached_property
    def _places(self) -> dict[int, NDArray[np.intp]]:
        return {group: (self.kinds & group).nonzero()[0] for group in self.groups}

    @cached_property
    def _members(self) -> dict[int, list[int]]:
        return {
            group: list(
                compress(range(len(self.by_doc_id)), [kind & group for kind in self.by_doc_id])
            )
            for group in self.groups
        }
