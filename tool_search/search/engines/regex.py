"""A model's regular expression, searched as Anthropic's regex tool searches.

The pattern is searched as by `re.search`, ignoring case, in name, description, and the
names and descriptions of parameters. RE2 runs it: its time is linear in text and pattern,
whatever a model writes, so it needs neither a clock nor a process to stop it. It has no
lookaround and no back reference.

A pattern that RE2 refuses is searched as words, by the default engine. A text without a
sign of a pattern is searched both as words and as a pattern.

Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool,
"Regex variant"; https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from tool_search.core.catalog.tool import Tool
from tool_search.errors import SearchError
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.filter import Lexicon
from tool_search.search.index.ranking import Scores
from tool_search.search.index.storage import ChunkedArray
from tool_search.search.text.documents import FIELDS, FieldName, field_texts
from tool_search.search.text.tokenizer import Segmenter

__all__ = ["RegexEngine", "build"]

# A match of the whole name has the score 1; every match is above the default floor.
_NAME = 0.6
_NAME_COVERED = 0.4
_FIELD_SCORES: dict[FieldName, float] = {
    "aliases": 0.55,
    "server": 0.45,
    "tags": 0.45,
    "description": 0.45,
    "parameters": 0.4,
    "parameter_texts": 0.3,
}
_MAX_PATTERN_CHARS = 500
_MAX_FIELD_CHARS = 2_000
# Instructions of RE2: together with the length of a text they bound its time.
_MAX_PROGRAM = 2_000
_HAS_SIGN = re.compile(r"[\\\[\]|*+]|^\^|[(|]\^|\$$|\$[)|]|\{\d|\w\?\w|\)\?")
# RE2's \w and \b know ASCII alone, and its end of a text is written in lower case.
_PERL_CLASS = re.compile(r"\\(.)", re.DOTALL)
_WORD = r"\p{L}\p{M}\p{N}_"


class _Pattern(Protocol):
    programsize: int

    def search(self, text: bytes) -> Any: ...


class RegexEngine:
    """A ranking by a pattern: by field, and by the part of the name that it covers.

    Args:
        tools: The tools to search, in any order.
        segmenter: Cuts Chinese in queries that are searched as words.

    Raises:
        SearchError: google-re2 is not installed.
    """

    __slots__ = ("_texts", "_words", "doc_ids")

    max_boost = Bm25Engine.max_boost

    def __init__(self, tools: Iterable[Tool] = (), *, segmenter: Segmenter | None = None) -> None:
        _re2()
        self._words = Bm25Engine(tools, segmenter=segmenter)
        self.doc_ids = self._words.doc_ids
        self._texts = ChunkedArray(_text(tool) for _, tool in self.doc_ids.taken())

    @property
    def lexicon(self) -> Lexicon:
        """The tools of each term."""
        return self._words.lexicon

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> RegexEngine:
        """Return the same ranking over changed tools, sharing the unchanged parts."""
        change = self.doc_ids.changed(added=added, removed=removed)
        engine = RegexEngine()
        engine._words = self._words.updated(added=added, removed=removed)
        engine.doc_ids = engine._words.doc_ids
        left = {doc_id: _NO_TEXT for doc_id, _ in change.left}
        entered = {doc_id: _text(tool) for doc_id, tool in change.entered}
        engine._texts = self._texts.changed({**left, **entered})
        return engine

    def scores(self, query: str) -> Scores:
        """Score each tool; see `Scorer.scores`."""
        if not any(map(str.isalnum, query)):
            return Scores([0.0] * len(self._texts), 0.0)
        pattern = _compile(query)
        found = self._match(pattern) if pattern else [0.0] * len(self._texts)
        if not _is_words(query, pattern):
            return Scores(found, 1.0)
        by_word = self._words.scores(query)
        if by_word.attainable > 0:
            shares = (float(value) / by_word.attainable for value in by_word.values)
            found = list(map(max, found, shares))
        return Scores(found, 1.0)

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        """Return the boosts of the default engine for words; 1 for a pattern."""
        if _is_words(query, _compile(query)):
            return self._words.boosts(query, doc_ids)
        return [1.0] * len(doc_ids)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """Return the words of the query that no tool has; a pattern has no words."""
        is_words = _is_words(query, _compile(query))
        return self._words.unmatched(query, has_tool) if is_words else []

    def _match(self, pattern: _Pattern) -> list[float]:
        search = pattern.search
        values = [0.0] * len(self._texts)
        for doc_id, text in enumerate(self._texts):
            match = search(text.lines)
            if match is not None and match.end() > match.start():
                values[doc_id] = text.score(match.start(), match.end())
        return values


class _Text(NamedTuple):
    """A definition as one text, a line for each of its texts, best fields first.

    Attributes:
        lines: The text in UTF-8.
        ends: The end of each field, in bytes.
        fields: The fields, in the same order.
    """

    lines: bytes
    ends: tuple[int, ...]
    fields: tuple[FieldName, ...]

    def score(self, start: int, end: int) -> float:
        """Return the score of a first match at these places, in bytes."""
        field = self.fields[min(bisect_right(self.ends, start), len(self.fields) - 1)]
        if field != "name":
            return _FIELD_SCORES[field]
        name = max(self.ends[0] - 1, 1)
        return _NAME + _NAME_COVERED * min(end - start, name) / name


_NO_TEXT = _Text(b"", (0,), ("name",))


def _text(tool: Tool) -> _Text:
    found = field_texts(tool)
    order = sorted(found, key=lambda field: (-_FIELD_SCORES.get(field, 1.0), FIELDS.index(field)))
    lines = [
        "".join(f"{_one_line(text)}\n" for text in found[field])[:_MAX_FIELD_CHARS].encode(
            "utf-8", "replace"
        )
        for field in order
    ]
    return _Text(b"".join(lines), tuple(accumulate(map(len, lines))), tuple(order))


def _one_line(text: str) -> str:
    return text[:_MAX_FIELD_CHARS].replace("\n", " ").replace("\r", " ")


def _is_words(query: str, pattern: _Pattern | None) -> bool:
    """Return True if the query is searched as words, alone or besides being a pattern."""
    return pattern is None or not _HAS_SIGN.search(query.strip())


@lru_cache(maxsize=64)
def _compile(query: str) -> _Pattern | None:
    """Return the query as a pattern, or None if it is not one or too large."""
    written = query.strip()
    if len(written) > _MAX_PATTERN_CHARS:
        return None
    re2 = _re2()
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        pattern: _Pattern = re2.compile(f"(?m){_translate(written)}".encode(), options)
    except re2.error:
        return None
    return pattern if pattern.programsize <= _MAX_PROGRAM else None


def _translate(pattern: str) -> str:
    """Return Python's syntax in RE2's.

    Word edges are dropped if the pattern is not ASCII: RE2 would miss those of other letters.
    """
    in_class = _class_places(pattern)
    edges = pattern.isascii()

    def translated(found: re.Match[str]) -> str:
        letter = found[1]
        if letter == "w":
            return _WORD if found.start() in in_class else f"[{_WORD}]"
        if letter == "W" and found.start() not in in_class:
            return f"[^{_WORD}]"
        if letter in "bB" and not edges:
            return ""
        return {"A": "^", "Z": "$"}.get(letter, found[0])

    return _PERL_CLASS.sub(translated, pattern)


def _class_places(pattern: str) -> set[int]:
    """Return the places of a pattern that are within [ and ]."""
    places: set[int] = set()
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", pattern, re.DOTALL):
        if found[0].startswith("["):
            places.update(range(found.start(), found.end()))
    return places


def _re2() -> Any:
    try:
        import re2  # noqa: PLC0415 - only this engine needs it
    except ImportError as exc:
        raise SearchError(
            "the search engine 'regex' needs google-re2: "
            "pip install 'tool-search-middleware[regex]'; in a clone: pip install '.[regex]'"
        ) from exc
    return re2


def build(tools: Iterable[Tool], options: EngineOptions) -> RegexEngine:
    """Build the engine `regex`.

    Raises:
        SearchError: google-re2 is not installed, or the segmenter jieba is chosen and not
            installed.
    """
    return RegexEngine(tools, segmenter=options.load_segmenter())
