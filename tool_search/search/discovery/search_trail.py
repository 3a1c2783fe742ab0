"""The searches of one conversation that led to calls.

A search teaches if a tool that it returned is then called with success in the same user
turn: once a search and tool, however often the tool is called. A search that found nothing
teaches half as much, if a later reply's search of the same turn led to the call and asked for
the same: it has a word of the first one, or follows it in another script, as a translation
does. A turn may be about two things, and the first may have no tool. Of several queries in one
call, each is a search of its own. A call in the next turn teaches a quarter, and nothing if the
search has led to a call already: it is about something else then. Calls that fail, are
denied or cancelled teach nothing, nor do calls without a search, queries with operators,
and queries that have a tool's name: words next to a name say nothing about the tool.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tool_search.core.services import Lesson, SearchResult
from tool_search.search.learned import evidence_words
from tool_search.search.text.query import QUOTATION
from tool_search.search.text.query_language import parse_query, selected_names
from tool_search.search.text.scripts import scripts_in
from tool_search.search.text.tokenizer import normalized

__all__ = ["Lesson", "SearchTrail", "can_teach"]

_AGAIN_IN_OTHER_WORDS = 0.5
_IN_THE_NEXT_TURN = 0.25
_MAX_SEARCHES = 4


def can_teach(query: str, names: Iterable[str]) -> bool:
    """Return True if the words of a query can say what one of these tools is for.

    False for queries with operators, and for those that have the name of one of the tools:
    as a whole, in quotation marks, or as an identifier of several parts.

    >>> can_teach("delete an invoice", ["delete_invoice"])
    True
    >>> can_teach("weather delete_invoice", ["delete_invoice"])
    False
    """
    if selected_names(query) or parse_query(query) is not None:
        return False
    asked = normalized(query)
    quoted = [normalized(quotation) for quotation in QUOTATION.findall(query)]
    # A name of a server's tool may be prefixed: `mcp__server__tool`.
    for name in dict.fromkeys(part for each in names for part in (each, each.rpartition("__")[2])):
        wanted = normalized(name)
        if asked == wanted or any(_has_name(text, wanted) for text in quoted):
            return False
        # A name of one plain word, such as `weather`, is also a word of people.
        if not wanted.isalpha() and _has_name(asked, wanted):
            return False
    return True


def _has_name(text: str, name: str) -> bool:
    return bool(name) and name in text and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _share_words(first: str, second: str) -> bool:
    return not frozenset(evidence_words(first)).isdisjoint(evidence_words(second))


def _differ_in_script(first: str, second: str) -> bool:
    return not scripts_in(first) & scripts_in(second)


@dataclass(frozen=True, slots=True)
class _Search:
    query: str
    turn: int
    step: int
    before: tuple[_Search, ...] = ()


class SearchTrail:
    """The searches of one conversation that may still teach something."""

    def __init__(self) -> None:
        self._turn = 0
        self._step = 0
        self._waiting: dict[str, list[_Search]] = defaultdict(list)
        self._missed: list[_Search] = []
        self._answered: set[_Search] = set()
        self._lessons: list[Lesson] = []

    def begin_turn(self) -> None:
        """Begin a user turn; searches before the last turn teach no more."""
        self._turn += 1
        self._missed.clear()
        for name in list(self._waiting):
            recent = [search for search in self._waiting[name] if search.turn >= self._turn - 1]
            self._waiting[name] = recent
            if not recent:
                del self._waiting[name]
        self._answered &= {search for recent in self._waiting.values() for search in recent}

    def replied(self) -> None:
        """Begin a reply of the model; its calls are made at once."""
        self._step += 1

    def searched(self, result: SearchResult) -> None:
        """Record a search, which may teach later."""
        if result.error is None:
            for part in result.parts or (result,):
                self._search(part)

    def succeeded(self, name: str) -> None:
        """Record a call that a tool answered: the searches that led to it teach now."""
        self._lessons += self._learned(name)

    def called_before(self, name: str) -> None:
        """Record a call of an earlier request: the searches that led to it teach no more."""
        self._waiting.pop(name, None)

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons since the last call of this method."""
        lessons, self._lessons = tuple(self._lessons), []
        return lessons

    def _search(self, result: SearchResult) -> None:
        query = result.query
        if not can_teach(query, result.names):
            return
        if not result.names:
            self._missed.append(_Search(query, self._turn, self._step))
            del self._missed[:-_MAX_SEARCHES]
            return
        earlier = [missed for missed in self._missed if missed.step < self._step]
        before = tuple(
            missed
            for missed in earlier
            if _share_words(missed.query, query)
            or (missed.step == earlier[-1].step and _differ_in_script(missed.query, query))
        )
        search = _Search(query, self._turn, self._step, before)
        for name in result.names:
            self._waiting[name] = [*self._waiting[name], search][-_MAX_SEARCHES:]

    def _learned(self, name: str) -> list[Lesson]:
        searches = self._waiting.pop(name, [])
        now = [search for search in searches if search.turn == self._turn]
        earlier = [search for search in searches if search not in now]
        lessons = [Lesson(query=search.query, tool=name) for search in now]
        lessons += [
            Lesson(query=search.query, tool=name, strength=_IN_THE_NEXT_TURN)
            for search in earlier
            if search not in self._answered
        ]
        self._answered.update(searches)
        before = {missed for search in now for missed in search.before}
        for missed in [missed for missed in self._missed if missed in before]:
            self._missed.remove(missed)
            if can_teach(missed.query, [name]):
                lesson = Lesson(query=missed.query, tool=name, strength=_AGAIN_IN_OTHER_WORDS)
                lessons.append(lesson)
        return lessons
