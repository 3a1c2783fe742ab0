"""Which result of a history answers which call, however the history is ordered.

Services and bots differ: two replies in a row with both results after them, a user's
message before a result, an id that comes back in every reply, no id at all. A result
that has a call is never lost to any of these.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tool_search.messages import Message

__all__ = ["CallPlace", "results_in_place", "results_of_calls"]

CallPlace = tuple[int, int]
"""The index of a message, and that of a call in it."""


def results_of_calls(history: Sequence[Message]) -> dict[CallPlace, int]:
    """Return the index of each call's result; a call without one is not in it.

    A result answers the newest call of its id that has no result yet, and within the
    replies in a row that this call is in, the oldest. A result without an id answers
    the oldest open call of these replies, one of its name if it has a name; a result
    whose id no call has, the oldest that has no id. A result before its call counts
    where nothing else in the history has its id.
    """
    asked = Counter(call.id for message in history for call in message.tool_calls)
    matcher = _Matcher(asked=asked)
    for index, message in enumerate(history):
        if message.role == "tool":
            matcher.answer(index, message)
        else:
            matcher.ask(index, message)
    matcher.answer_backwards()
    return matcher.found


def results_in_place(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the history with each result directly after its call's reply, in call order.

    A result gets its call's name and id. One that answers no call stays where it is.
    """
    found = results_of_calls(history)
    moved = set(found.values())
    placed: list[Message] = []
    for index, message in enumerate(history):
        if index in moved:
            continue
        placed.append(message)
        for number, call in enumerate(message.tool_calls):
            result = found.get((index, number))
            if result is not None:
                placed.append(replace(history[result], name=call.name, tool_call_id=call.id))
    return tuple(placed)


@dataclass(slots=True)
class _OpenCalls:
    """Calls without a result, oldest first, by the run of replies that they are in."""

    runs: list[tuple[int, deque[CallPlace]]] = field(default_factory=list)

    def add(self, run: int, place: CallPlace) -> None:
        if not self.runs or self.runs[-1][0] != run:
            self.runs.append((run, deque()))
        self.runs[-1][1].append(place)

    def take(self, found: Mapping[CallPlace, int], run: int | None = None) -> CallPlace | None:
        """The oldest open call of the newest run, or of the one run that is asked for."""
        while self.runs:
            newest, places = self.runs[-1]
            if run is not None and newest != run:
                return None
            while places:
                place = places.popleft()
                if place not in found:
                    return place
            self.runs.pop()
        return None


@dataclass(slots=True, kw_only=True)
class _Matcher:
    """Goes through a history once.

    Attributes:
        asked: How many calls of the history have each id.
        found: The index of each call's result.
    """

    asked: Counter[str]
    found: dict[CallPlace, int] = field(default_factory=dict)
    _by_id: defaultdict[str, _OpenCalls] = field(default_factory=lambda: defaultdict(_OpenCalls))
    _by_name: defaultdict[str | None, _OpenCalls] = field(
        default_factory=lambda: defaultdict(_OpenCalls)
    )
    _orphans: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _run: int = 0
    _in_run: bool = False

    def ask(self, index: int, message: Message) -> None:
        """Takes the calls of a reply in; replies in a row are one run."""
        if message.role != "assistant":
            self._in_run = False
            return
        self._run += not self._in_run
        self._in_run = True
        for number, call in enumerate(message.tool_calls):
            place = (index, number)
            self._by_id[call.id].add(self._run, place)
            for name in (call.name, None):
                self._by_name[name].add(self._run, place)

    def answer(self, index: int, result: Message) -> None:
        """Finds the call of a result."""
        self._in_run = False
        call_id = result.tool_call_id or ""
        named = None
        if not call_id and result.name:
            named = self._by_name[result.name].take(self.found, self._run)
        place = named or self._by_id[call_id].take(self.found)
        if place is None and not call_id:
            place = self._by_name[None].take(self.found, self._run)
        elif place is None and not self.asked[call_id]:
            place = self._by_id[""].take(self.found, self._run)
        if place is None:
            self._orphans[call_id].append(index)
        else:
            self.found[place] = index

    def answer_backwards(self) -> None:
        """Gives results that came too early to calls that have none; ids that repeat do not."""
        for call_id, indexes in self._orphans.items():
            if call_id and len(indexes) == 1 and self.asked[call_id] == 1:
                place = self._by_id[call_id].take(self.found)
                if place is not None:
                    self.found[place] = indexes[0]
