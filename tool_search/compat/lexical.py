"""tooldiscovery's default search: is the whole query a part of name, namespace or text?

A query that stands in the name has 100 points, and 50 more where it is the name;
one that stands in the namespace or server has 50; one that stands in neither, but
in the text, has 10. Nothing is cut into words: a query of two words must stand
literally. Points order the tools, equal ones by name.

Source: https://github.com/jonwraymond/tooldiscovery, package `index`, the searcher
that an index has without another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tool_search.catalog.catalog import Tool
from tool_search.search.index.layered import BlockedList
from tool_search.search.index.ranking import Scores
from tool_search.search.index.slots import Slots
from tool_search.search.text.documents import FieldName, field_texts
from tool_search.search.text.tokenizer import folded

__all__ = ["LexicalEngine"]

_IN_NAME = 100
_IS_NAME = 50
_IN_SPACE = 50
_IN_TEXT = 10
_MOST_POINTS = _IN_NAME + _IS_NAME + _IN_SPACE
# A straight line from points to scores, so that no default floor cuts the few points
# of a hit in the text: tooldiscovery has no floor.
_BASE = 0.5
_SPAN = 1.5
_TEXT_FIELDS: tuple[FieldName, ...] = ("name", "aliases", "server", "tags", "description")
_LONGEST_FIELD = 20_000
_LONGEST_UNMATCHED = 100
_MOST_PARTS = 96


class LexicalEngine:
    """Ranks by substrings; see the module.

    Args:
        tools: What is searched, in any order.
    """

    __slots__ = ("_texts", "slots")

    most_boost = 1.0

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.slots = Slots(tools)
        self._texts = BlockedList(_texts(tool) for _, tool in self.slots.taken())

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> LexicalEngine:
        """The same ranking over changed tools, sharing what did not change."""
        change = self.slots.changed(added=added, removed=removed)
        engine = LexicalEngine()
        engine.slots = change.slots
        left = {slot: _NO_TEXTS for slot, _ in change.left}
        entered = {slot: _texts(tool) for slot, tool in change.entered}
        engine._texts = self._texts.changed({**left, **entered})
        return engine

    def scores(self, query: str) -> Scores:
        """How well each tool fits; see `Engine.scores`."""
        parts = _parts(query)
        if not parts:
            return Scores([0.0] * len(self._texts), 0.0)
        return Scores([_best(parts, texts) for texts in self._texts], 1.0)

    def boosts(self, _query: str, slots: Sequence[int]) -> Sequence[float]:
        """None: the points say it all."""
        return [1.0] * len(slots)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        """The lines of the query that no tool has."""

        def is_known(part: str) -> bool:
            having = [slot for slot, texts in enumerate(self._texts) if _score(part, texts)]
            return bool(having) and has_tool(having)

        parts = (part for part in _parts(query) if len(part) <= _LONGEST_UNMATCHED)
        return [part for part in parts if not is_known(part)]


class _Texts(NamedTuple):
    """What of a tool is compared, as names are compared."""

    name: str
    space: str
    text: str


_NO_TEXTS = _Texts("", "", "")


def _texts(tool: Tool) -> _Texts:
    found = field_texts(tool)
    lines = [text[:_LONGEST_FIELD] for field in _TEXT_FIELDS for text in found.get(field, ())]
    return _Texts(
        name=folded(tool.name),
        space=folded(f"{tool.namespace or ''}\n{tool.server or ''}"),
        text=folded("\n".join(lines)),
    )


def _parts(query: str) -> tuple[str, ...]:
    """The lines of a query, which operators make: a or b is two of them."""
    lines = map(folded, query.splitlines()[:_MOST_PARTS])
    return tuple(dict.fromkeys(line for line in lines if any(map(str.isalnum, line))))


def _best(parts: Iterable[str], texts: _Texts) -> float:
    return max(_score(part, texts) for part in parts)


def _score(part: str, texts: _Texts) -> float:
    points = 0
    if part in texts.name:
        points += _IN_NAME
        if part == texts.name:
            points += _IS_NAME
    if part in texts.space:
        points += _IN_SPACE
    if not points and part in texts.text:
        points = _IN_TEXT
    return _BASE + _SPAN * points / _MOST_POINTS if points else 0.0
