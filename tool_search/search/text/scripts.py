"""The scripts that tools and terms are written in.

Words match within a script: no Chinese word of a query is in an English description. So
what the words of a query explain is worked out for the tools of each script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import compress, groupby
from typing import TYPE_CHECKING

from tool_search.core.catalog.tool import Tool
from tool_search.search.text.tokenizer import has_cjk, script_runs

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
    "has_several",
    "is_bilingual",
    "script_of",
    "scripts_in",
    "scripts_of",
]

CJK, CYRILLIC, OTHER = 1, 2, 4
"""Chinese, Japanese and Korean; Cyrillic; any other script, which is mostly Latin."""
ALL_SCRIPTS = CJK | CYRILLIC | OTHER

_MAX_CHARS = 2_000
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


def script_of(term: str) -> int:
    """Return the script of a term, which must not be empty."""
    if term.isascii():
        return OTHER
    if has_cjk(term):
        return CJK
    return CYRILLIC if _CYRILLIC_WORD.search(term) else OTHER


def scripts_of(tool: Tool) -> int:
    """Return the scripts of a tool's description, title, aliases and tags, or of its name."""
    own = (tool.description, tool.summary, tool.title, tool.category, *tool.aliases, *tool.tags)
    text = " ".join(filter(None, own))[:_MAX_CHARS]
    return scripts_in(text if any(map(str.isalpha, text)) else tool.name)


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
        by_doc_id: The scripts by document id.
        groups: The scripts that at least one tool has.
        kinds_there: The different combinations of scripts that a tool has.
    """

    def __init__(self, scripts: bytes = b"") -> None:
        self.by_doc_id = scripts
        self.kinds_there = tuple(sorted(frozenset(scripts)))
        self.groups = tuple(
            group
            for group in (CJK, CYRILLIC, OTHER)
            if any(kind & group for kind in self.kinds_there)
        )

    def changed(
        self, *, left: Iterable[tuple[int, Tool]], entered: Iterable[tuple[int, Tool]]
    ) -> ToolScripts:
        """Return a table with some tools removed and others added."""
        scripts = bytearray(self.by_doc_id)
        for doc_id, _ in left:
            scripts[doc_id] = 0
        for doc_id, tool in entered:
            scripts[doc_id : doc_id + 1] = bytes((scripts_of(tool),))
        return ToolScripts(bytes(scripts))

    def members(self, group: int) -> list[int]:
        """Return the document ids of the tools in a script, ascending."""
        return self._members[group]

    def mask(self, group: int) -> NDArray[np.float64]:
        """Return 1 by document id for the tools in a script, and 0 for others."""
        return self._masks[group]

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """The scripts by document id, in an array."""
        import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

        return np.frombuffer(self.by_doc_id, np.uint8)

    @cached_property
    def _masks(self) -> dict[int, NDArray[np.float64]]:
        return {group: ((self.kinds & group) > 0).astype(float) for group in self.groups}

    @cached_property
    def _members(self) -> dict[int, list[int]]:
        return {
            group: list(
                compress(range(len(self.by_doc_id)), [kind & group for kind in self.by_doc_id])
            )
            for group in self.groups
        }
