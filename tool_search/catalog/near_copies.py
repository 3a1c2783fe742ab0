"""Tools that repeat an older tool of another server, word for word or nearly.

A server that repeats another's description, under a better name, with its words doubled or
with half of them left out, would be found before it. Sets of words are compared: neither order
nor repetition counts, nor do a tool's own name in its text and words that one of the two lacks.
Honest servers have a tool in a hundred alike (docs/definitions.md).

Source: the prefix filter of set similarity joins, S. Chaudhuri, V. Ganti, R. Kaushik,
"A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006: two sets that
share enough words share one of the rarest of the older one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from tool_search.core.catalog.catalog import ToolCatalog

__all__ = ["copies_of", "near_copies", "words_of"]

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORDS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
# The share of common words among all words of two texts.
_ALIKE = 0.9
# A copy with more words: all of a text that is long enough to be known by them.
_MIN_CONTAINED, _MAX_GROWTH = 6, 2.0
# A copy with fewer words: this share of a text and little else. Rare words say more than common
# ones: a word counts as the bits of its rarity, in a catalog of at least so many tools.
_MIN_SHARE, _MIN_PART, _MIN_BITS, _MIN_TEXTS = 0.4, 3, 20.0, 64
# With words of its own, a text that has more of another than this is one of a template.
_MAX_PART = 0.75
# Bounds of the work for a hostile listing: tools compared for one word, and for one tool.
_MAX_PER_WORD = 16
_MAX_PER_TOOL = 64
_MAX_CHARS = 8_000


class Described(Protocol):
    """A tool's definition, as far as it is compared."""

    @property
    def name(self) -> str:
        """The canonical name."""
        ...

    @property
    def description(self) -> str:
        """The description."""
        ...

    @property
    def source(self) -> tuple[str | None, str]:
        """The server, None for the operator's own tools, and its name for the tool."""
        ...


def copies_of(catalog: ToolCatalog) -> Mapping[str, str]:
    """Return the older tool's name for each tool of a catalog that nearly repeats it.

    Compares the texts of all tools, once for each catalog and its views.
    """
    return catalog.once(_copies)


def _copies(catalog: ToolCatalog) -> Mapping[str, str]:
    given, own = catalog.given, catalog.by_source
    if given is catalog:
        return near_copies([own[source] for source in catalog.book.held if source in own])
    pairs = ((given[copy].source, given[older].source) for copy, older in copies_of(given).items())
    return {
        own[copy].name: own[older].name for copy, older in pairs if copy in own and older in own
    }


def near_copies(tools: Sequence[Described]) -> dict[str, str]:
    """Return the older tool's name for each tool of a server that nearly repeats it.

    Takes time linear in the tools' texts.

    Args:
        tools: The definitions, the oldest first.

    >>> from tool_search import Tool
    >>> own = Tool(name="send", description="Send a letter.")
    >>> copy = Tool(name="post", description="SEND a letter, a letter!", server="evil")
    >>> near_copies([own, copy])
    {'post': 'send'}
    """
    texts = [words_of(tool.description[:_MAX_CHARS]) for tool in tools]
    counts = Counter(word for words in texts for word in words)
    originals = _Originals(counts, max(_MIN_TEXTS, len(texts)))
    found: dict[str, str] = {}
    for tool, words in zip(tools, texts, strict=True):
        if not words:
            continue
        server = tool.source[0]
        own = _own_words(tool)
        older = originals.like(words, own, server) if server is not None else None
        if older is None:
            originals.add(tool, words)
        else:
            found[tool.name] = older.name
    return found


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return frozenset(_words(plain.casefold()))


def _own_words(tool: Described) -> frozenset[str]:
    """Return the words of a tool's names."""
    return words_of(tool.source[1]) | words_of(tool.name)


def _words(text: str) -> Iterator[str]:
    for word in _WORDS.findall(text):
        if word[0] >= "\u3040" and len(word) > 1:
            yield from map("".join, pairwise(word))
        else:
            yield word


class _Originals:
    """Tools that are not copies so far, to be found by their words.

    Args:
        counts: The number of texts that have each word.
        total: The number of texts.
    """

    def __init__(self, counts: Counter[str], total: int) -> None:
        self._counts = counts
        self._total = total
        self._same: dict[frozenset[str], Described] = {}
        # By the rarest words of each, of which a copy has one; by all, for a part of the text.
        self._by_rare: dict[str, list[tuple[Described, frozenset[str]]]] = {}
        self._by_word: dict[str, list[tuple[Described, frozenset[str]]]] = {}

    def add(self, tool: Described, words: frozenset[str]) -> None:
        """Keep a tool; of those with one text the first."""
        if words in self._same:
            return
        self._same[words] = tool
        entry = tool, words
        ordered = self._rarest_first(words)
        for index, listed_words in (
            (self._by_rare, ordered[: _rare(words)]),
            (self._by_word, ordered),
        ):
            for word in listed_words:
                listed = index.setdefault(word, [])
                if len(listed) < _MAX_PER_WORD:
                    listed.append(entry)

    def like(self, words: frozenset[str], own: frozenset[str], server: str) -> Described | None:
        """Return a tool of another server that has nearly these words.

        Args:
            words: The words of a description.
            own: The words of the tool's own name, which do not count as more.
            server: The tool's server.
        """
        same = self._same.get(words)
        if same is not None:
            return same if same.source[0] != server else None
        looked: set[int] = set()
        for tool, others in self._candidates(words, own):
            if id(tool) in looked or tool.source[0] == server:
                continue
            looked.add(id(tool))
            # Honest texts of one template differ in what their tools are called.
            is_template = not (_own_words(tool) & others <= words)
            if self._are_alike(others, words, frozenset() if is_template else own):
                return tool
            if len(looked) >= _MAX_PER_TOOL:
                return None
        return None

    def _candidates(
        self, words: frozenset[str], own: frozenset[str]
    ) -> Iterator[tuple[Described, frozenset[str]]]:
        ordered = self._rarest_first(words)
        for word in ordered:
            yield from self._by_rare.get(word, ())
        # A word of this text alone is in no older one.
        part = [word for word in ordered if word not in own and self._counts[word] > 1]
        for word in part[: _rare(part)]:
            yield from self._by_word.get(word, ())

    def _are_alike(self, older: frozenset[str], words: frozenset[str], own: frozenset[str]) -> bool:
        common, more = older & words, words - older - own
        both = len(common)
        if both >= _ALIKE * (len(older) + len(more)):
            return True
        if both >= _MIN_CONTAINED and both == len(older):
            return both + len(more) <= _MAX_GROWTH * both
        if both < _MIN_PART or both < _MIN_SHARE * len(older):
            return False
        if sum(math.log2(self._total / self._counts[word]) for word in common) < _MIN_BITS:
            return False
        if more and both > _MAX_PART * len(older):
            return False
        return both >= _ALIKE * (both + len(more))

    def _rarest_first(self, words: frozenset[str]) -> list[str]:
        return sorted(words, key=lambda word: (self._counts[word], word))


def _rare(words: Collection[str]) -> int:
    """Return how many of the rarest words hold one that a text with nearly all of them has."""
    return len(words) - math.ceil(_ALIKE * len(words)) + 1
