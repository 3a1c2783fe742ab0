"""The time limit of a turn, also of one whose consumer takes no events.

An async generator that is not asked again keeps all that it holds: the lock of the
conversation, a connection, running tools. So the events of a turn pass through a watch,
which closes the turn in place of its consumer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from tool_search.events import Done, RunnerEvent

__all__ = ["TurnWatch"]

_log = logging.getLogger(__name__)


class TurnWatch:
    """The watch of one turn.

    Args:
        limit_s: Seconds for the turn from `start` on; None: no limit.

    Attributes:
        timed_out: True once the turn was ended because its time was over.
        ended_because: The reason why the turn must end; empty if there is none.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.timed_out = False
        self.ended_because = ""
        self._limit_s = limit_s
        self._deadline: float | None = None
        self._patience: asyncio.Timeout | None = None
        self._turn: AsyncGenerator[RunnerEvent, None] | None = None
        self._idle_since: float | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def idle_s(self) -> float:
        """The seconds since the consumer took its last event; 0 while the turn works."""
        since = self._idle_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def start(self) -> None:
        """Start the clock: the time of other turns before it does not count."""
        if self._limit_s is not None:
            self._deadline = asyncio.get_running_loop().time() + self._limit_s
            if self._patience is not None:
                self._patience.reschedule(self._deadline)

    def abandon(self, reason: str) -> None:
        """End the turn at the next event that its consumer takes, or now if it takes none."""
        self.ended_because = reason
        if self._idle_since is not None:
            self._end()

    async def events(
        self, turn: AsyncGenerator[RunnerEvent, None]
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Yield the turn's events, until it ends or is ended.

        Args:
            turn: The events; it can be closed anywhere.
        """
        self._turn = turn
        loop = asyncio.get_running_loop()
        try:
            while (event := await self._next(turn)) is not None:
                if self.ended_because:
                    return
                if isinstance(event, Done):
                    # A consumer may stop at the last event, and never resume the generator.
                    await turn.aclose()
                    yield event
                    return
                self._idle_since = loop.time()
                if self._deadline is not None:
                    self._alarm = loop.call_at(self._deadline, self._end_late)
                try:
                    yield event
                finally:
                    self._idle_since = None
                    if self._alarm is not None:
                        self._alarm.cancel()
                if self._closing is not None:
                    return
        finally:
            await (turn.aclose() if self._closing is None else asyncio.shield(self._closing))

    async def _next(self, turn: AsyncGenerator[RunnerEvent, None]) -> RunnerEvent | None:
        """Return the next event, or None if the turn or its time is over."""
        try:
            if self._limit_s is None:
                return await anext(turn)
            async with asyncio.timeout_at(self._deadline) as self._patience:
                return await anext(turn)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            if self._patience is None or not self._patience.expired():
                raise
            self.timed_out = True
            return None

    def _end_late(self) -> None:
        self.timed_out = True
        self._end()

    def _end(self) -> None:
        """Close the turn in place of its consumer."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def _close(self) -> None:
        if self._turn is not None:
            try:
                await self._turn.aclose()
            except Exception:  # noqa: BLE001  # no consumer may be left to get it
                _log.exception("a turn whose consumer took no event failed while it was ended")
