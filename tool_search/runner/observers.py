"""The callbacks that follow turns: one after the other, in the order of the events."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Sequence

from tool_search.events import TurnEvent, TurnObserver
from tool_search.values.redaction import log_failure

__all__ = ["TurnObservers"]

_MAX_LATE = 1_000
_PATIENCE_S = 5.0
_log = logging.getLogger(__name__)


class TurnObservers:
    """The observers of all turns of a runner.

    One that fails is logged, and gets the next event. What one returns is awaited in a task,
    in the order of the events; turns wait for it only if it is a thousand events late.

    Args:
        observers: The observers.
    """

    def __init__(self, observers: Sequence[TurnObserver]) -> None:
        self._observers = tuple((observer, _Line()) for observer in observers)

    def __bool__(self) -> bool:
        return bool(self._observers)

    def notify(self, seen: TurnEvent) -> None:
        """Give an event to each observer."""
        for observer, line in self._observers:
            try:
                result = observer(seen)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end a turn
                _log_failure()
            else:
                if inspect.isawaitable(result):
                    line.add(result)

    async def catch_up(self) -> None:
        """Wait for the observers that are too late."""
        for _, line in self._observers:
            if len(line) >= _MAX_LATE:
                await line.wait(below=_MAX_LATE)

    async def aclose(self) -> None:
        """Wait a few seconds for all that observers have begun; end what is left."""
        for _, line in self._observers:
            await line.aclose()


class _Line:
    """The awaitables of one observer that wait for their turn."""

    def __init__(self) -> None:
        self._waiting: deque[Awaitable[object]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: Awaitable[object]) -> None:
        self._waiting.append(item)
        if self._task is None or self._task.done():
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._run(), name="tool-search observer")

    async def wait(self, *, below: int) -> None:
        while len(self._waiting) >= below and self._task is not None and not self._task.done():
            self._moved.clear()
            await self._moved.wait()

    async def _run(self) -> None:
        try:
            while self._waiting:
                try:
                    await self._waiting[0]
                except asyncio.CancelledError:
                    # What an observer waits for may be cancelled: the next event is still due.
                    if self._task is not None and self._task.cancelling():
                        raise
                    _log_failure()
                except Exception:  # noqa: BLE001  # the bot's own: it must not end a turn
                    _log_failure()
                self._waiting.popleft()
                self._moved.set()
        finally:
            self._moved.set()

    async def aclose(self) -> None:
        task = self._task
        if task is None or task.done():
            return
        await asyncio.wait([task], timeout=_PATIENCE_S)
        if not task.done():
            _log.warning(
                "an observer of turns was %d events late when the bot was closed, and was ended",
                len(self._waiting),
            )
            task.cancel()
            await asyncio.wait([task])
        for item in self._waiting:
            if inspect.iscoroutine(item):
                item.close()
        self._waiting.clear()


def _log_failure() -> None:
    log_failure(_log, "an observer of turns failed")
