"""Calls that come in floods, made a few times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["PacedCalls"]

_Key = TypeVar("_Key", bound=Hashable)


class PacedCalls(Generic[_Key]):
    """A function that is called at once, and then at most once in an interval for each key.

    A call that comes in between is made at the end of the interval: the last one is not lost.

    Args:
        function: The function; it gets the key.
        interval_s: Seconds between two calls with one key.
    """

    def __init__(self, function: Callable[[_Key], object], *, interval_s: float) -> None:
        self._function = function
        self._interval_s = interval_s
        # The keys of the last interval; True if another call waits.
        self._waiting: dict[_Key, bool] = {}
        self._timers: dict[_Key, asyncio.TimerHandle] = {}

    def __call__(self, key: _Key) -> None:
        """Call the function now or at the end of the interval; in an event loop."""
        if key in self._waiting:
            self._waiting[key] = True
            return
        self._waiting[key] = False
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(self._interval_s, self._end_rest, key)
        self._function(key)

    def close(self) -> None:
        """Drop the calls that wait."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()

    def _end_rest(self, key: _Key) -> None:
        del self._timers[key]
        if self._waiting.pop(key):
            self(key)
