"""A turn that ends in time, whether it works or waits for a consumer that takes no event.

An async generator that is never asked again stays where it is, with all it holds: the
conversation's lock, a connection, running tools. So a turn's events pass through a watch,
which closes the turn in the consumer's place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from tool_search.events import Done, RunnerEvent

__all__ = ["TurnWatch"]

_log = logging.getLogger(__name__)


class TurnWatch:
    """Watches one turn.

    Args:
        limit_s: Seconds that the turn has from `start` on; None: no limit.

    Attributes:
        timed_out: True once the turn was ended because its time was over.
    """

    def __init__(self, limit_s: float | None) -> None:
        self.timed_out = False
        self._limit_s = limit_s
        self._deadline: float | None = None
        self._patience: asyncio.Timeout | None = None
        self._turn: AsyncGenerator[RunnerEvent, None] | None = None
        self._idle_since: float | None = None
        self._is_unwanted = False
        self._alarm: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def was_abandoned(self) -> bool:
        """True once the turn is to end because nobody wants its conversation any more."""
        return self._is_unwanted

    @property
    def idle_s(self) -> float:
        """Seconds for which the consumer has taken no further event."""
        since = self._idle_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def start(self) -> None:
        """Start the clock; time before it, such as another turn's, does not count."""
        if self._limit_s is not None:
            self._deadline = asyncio.get_running_loop().time() + self._limit_s
            if self._patience is not None:
                self._patience.reschedule(self._deadline)

    def abandon(self) -> None:
        """End the turn of a consumer that takes no event, or at the next event it takes."""
        self._is_unwanted = True
        if self._idle_since is not None:
            self._end()

    async def events(
        self, turn: AsyncGenerator[RunnerEvent, None]
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Yield the turn's events, until it ends or is ended.

        Args:
            turn: Leaves everything in order when it is closed, wherever it is.
        """
        self._turn = turn
        loop = asyncio.get_running_loop()
        try:
            while (event := await self._next(turn)) is not None:
                if self._is_unwanted:
                    return
                if isinstance(event, Done):
                    # A consumer may never ask for what comes after the last event.
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
        """Return the next event; None: the turn is over, or its time is."""
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
        """Close the turn in its consumer's place."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def _close(self) -> None:
        if self._turn is not None:
            try:
                await self._turn.aclose()
            except Exception:  # noqa: BLE001  # nobody may ever ask for it: what failed is logged
                _log.exception("a turn whose consumer took no event failed while it was ended")
