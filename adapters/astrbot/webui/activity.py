"""The requests, searches and calls since the plugin was loaded; nothing of it is stored."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Activity", "Moment", "Timeline"]

_MAX_TIMELINES = 100
_MAX_MOMENTS = 200
_MAX_IN_VAIN = 50
# Servers may invent names for ever.
_MAX_COUNTED = 20_000
_MAX_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One request, search or call.

    Attributes:
        at: The time, in seconds since 1970.
        kind: The kind.
        text: The provider and its model, the query, or the name of the tool.
        names: The tools that the search made callable.
        count: The number of tools that the request declared.
        tokens: The tokens of the definitions in the request.
        full: The tokens of all definitions.
    """

    at: float
    kind: Literal["request", "search", "call"]
    text: str
    names: tuple[str, ...] = ()
    count: int = 0
    tokens: int = 0
    full: int = 0

    def to_object(self) -> dict[str, Any]:
        """Return the moment as JSON values."""
        return asdict(self)


class Activity:
    """The activity of all conversations.

    Args:
        clock: Returns the seconds since 1970.

    Attributes:
        since: The time of the first moment that could be seen.
        found: The number of searches that found each tool.
        called: The number of calls of each tool after a search.
        in_vain: The last searches that found nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.since = clock()
        self.found: Counter[str] = Counter()
        self.called: Counter[str] = Counter()
        self.in_vain: deque[Moment] = deque(maxlen=_MAX_IN_VAIN)
        self._timelines: OrderedDict[tuple[str, str], Timeline] = OrderedDict()

    def timeline(self, key: tuple[str, str] | None) -> Timeline:
        """Return the timeline of a conversation; one without a key is in no list."""
        if key is None:
            return Timeline(self)
        known = self._timelines.setdefault(key, Timeline(self))
        self._timelines.move_to_end(key)
        if len(self._timelines) > _MAX_TIMELINES:
            self._timelines.popitem(last=False)
        return known

    @property
    def timelines(self) -> dict[tuple[str, str], Timeline]:
        """The timelines by conversation, the last used first."""
        return dict(reversed(self._timelines.items()))


class Timeline:
    """The activity of one conversation, oldest first; the last 200 moments.

    Args:
        activity: Counts the moments of all conversations.
    """

    def __init__(self, activity: Activity | None = None) -> None:
        self._activity = activity or Activity()
        self.moments: deque[Moment] = deque(maxlen=_MAX_MOMENTS)

    def request(self, provider: str, *, count: int, tokens: int, full: int) -> None:
        """Add a request that was sent."""
        now = self._activity.clock()
        text = _cut(provider)
        self.moments.append(
            Moment(at=now, kind="request", text=text, count=count, tokens=tokens, full=full)
        )

    def search(self, query: str, names: Iterable[str]) -> None:
        """Add a search with the tools that it made callable."""
        found = tuple(dict.fromkeys(names))
        now = self._activity.clock()
        moment = Moment(at=now, kind="search", text=_cut(query), names=found)
        self.moments.append(moment)
        _count(self._activity.found, found)
        if not found:
            self._activity.in_vain.append(moment)

    def call(self, tool: str) -> None:
        """Add a call that has returned."""
        self.moments.append(Moment(at=self._activity.clock(), kind="call", text=_cut(tool)))
        _count(self._activity.called, (tool,))


def _count(counter: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        if name in counter or len(counter) < _MAX_COUNTED:
            counter[name] += 1


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
