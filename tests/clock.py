"""The clock of an event loop, moved by a test: a limit ends when the test says so."""

from __future__ import annotations

import asyncio

import pytest


class LoopClock:
    """The clock of the running event loop.

    Tests that wait for a limit of a tenth of a second fail on a machine that is busy for that
    long. With this clock, the limit is long and ends at once.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._ahead_s = 0.0
        self._time = loop.time
        patch.setattr(loop, "time", self._now)

    def _now(self) -> float:
        return self._time() + self._ahead_s

    async def move_on(self, seconds: float) -> None:
        """Let so many seconds pass, for each timer of the loop."""
        await asyncio.sleep(0)  # what is about to begin, begins before
        self._ahead_s += seconds
        await asyncio.sleep(0)  # the timers are due
        await asyncio.sleep(0)  # and have run
