"""The searches of one conversation that led to calls.

A search teaches if a tool that it returned is then called with success, in the same
user turn or the next: once a search and tool, however often the tool is called. A
search that found nothing teaches half as much, if a later reply's search of the
same turn led to the call: the model asked again in other words. Of several queries in
one call, each is a search of its own. Calls that fail,
are denied or cancelled teach nothing, nor do calls without a search, queries with
operators, and queries that are a tool's name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tool_search.conversation.calls import CallDecision, RunCall
from tool_search.search.index.protocol import SearchResult
from tool_search.search.text.query_language import parse_query, selected_names
from tool_search.search.text.tokenizer import normalized

__all__ = ["Lesson", "SearchTrail"]

_AGAIN_IN_OTHER_WORDS = 0.5
_MAX_SEARCHES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A query that a tool answered.

    Attributes:
        query: The query as it was asked.
        tool: The tool's canonical name.
        strength: 1, or one half if another query found the tool.
    """

    query: str
    tool: str
    strength: float = 1.0


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

    def replied(self) -> None:
        """Begin a reply of the model; its calls are made at once."""
        self._step += 1

    def answered(self, decision: CallDecision, *, is_error: bool) -> None:
        """Record the result of a call: a search may teach later, a success teaches now."""
        if isinstance(decision, RunCall):
            if not is_error:
                self.succeeded(decision.tool.name)
        elif decision.result is not None:
            self.searched(decision.result)

    def searched(self, result: SearchResult) -> None:
        """Record a search, which may teach later."""
        if result.error is None:
            for part in result.parts or (result,):
                self._searched(part)

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

    def _searched(self, result: SearchResult) -> None:
        query = result.query
        if selected_names(query) or parse_query(query) is not None:
            return
        if not result.names:
            self._missed.append(_Search(query, self._turn, self._step))
            del self._missed[:-_MAX_SEARCHES]
            return
        before = tuple(missed for missed in self._missed if missed.step < self._step)
        search = _Search(query, self._turn, self._step, before)
        for name in result.names:
            if normalized(query) != normalized(name):
                self._waiting[name] = [*self._waiting[name], search][-_MAX_SEARCHES:]

    def _learned(self, name: str) -> list[Lesson]:
        searches = self._waiting.pop(name, [])
        lessons = [Lesson(query=search.query, tool=name) for search in searches]
        before = {missed for search in searches for missed in search.before}
        for missed in [missed for missed in self._missed if missed in before]:
            self._missed.remove(missed)
            lessons.append(Lesson(query=missed.query, tool=name, strength=_AGAIN_IN_OTHER_WORDS))
        return lessons
