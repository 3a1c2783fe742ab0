"""The threads that functions without a coroutine run in: a bounded number for all of a process.

Daemon threads, unlike those of `concurrent.futures`: one that hangs must not keep the
process alive. A function that is given up cannot be ended. Its thread no longer counts, so
that functions that hang do not stop the others, up to four times the bound.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

__all__ = ["MAX_TOOL_THREADS", "ToolThreads", "carried", "in_thread"]

_log = logging.getLogger(__name__)
MAX_TOOL_THREADS = 64
"""How many functions run at the same time; more wait, first come, first served."""
_IDLE_S = 10.0
_IDLE = "tool-idle"
_MAX_LOST = 3
_serial = count(1)


class _Job:
    """One function that waits, runs, or has ended."""

    __slots__ = ("_context", "_future", "_loop", "_work", "is_lost", "state")

    def __init__(self, work: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self._work = work
        self._future = future
        self._loop = future.get_loop()
        self._context = contextvars.copy_context()
        self.state = "waiting"
        self.is_lost = False

    @property
    def is_dropped(self) -> bool:
        """True if nobody waits for it any more."""
        return self._future.cancelled()

    def run(self) -> None:
        try:
            outcome = ("set_result", self._context.run(self._work))
        except BaseException as exc:  # noqa: BLE001  # handed over to the awaiting task
            outcome = ("set_exception", carried(exc))
        try:
            self._loop.call_soon_threadsafe(self._settle, *outcome)
        except RuntimeError:
            _log.debug("a tool's thread ended after its loop: nobody takes its result")

    def _settle(self, setter: str, value: object) -> None:
        if not self._future.done():
            getattr(self._future, setter)(value)


class ToolThreads:
    """A bounded number of daemon threads, started when they are needed.

    Args:
        most: How many work at the same time.
    """

    def __init__(self, most: int = MAX_TOOL_THREADS) -> None:
        self._most = most
        self._wake = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._threads = 0
        self._idle = 0
        self._lost = 0

    @property
    def count(self) -> int:
        """How many threads there are, idle and lost ones too."""
        return self._threads

    def run(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """Return what gives the work's result; cancelling it before it begins drops the work."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        job = _Job(work, future)
        future.add_done_callback(lambda done: self._given_up(job) if done.cancelled() else None)
        with self._wake:
            self._waiting.append(job)
            self._staff()
        return future

    def _staff(self) -> None:
        """Wake or start a thread for what waits, where there is room."""
        if self._idle >= len(self._waiting):
            self._wake.notify()
        elif self._threads - min(self._lost, _MAX_LOST * self._most) < self._most:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name=_IDLE).start()

    def _given_up(self, job: _Job) -> None:
        with self._wake:
            if job.state == "running" and not job.is_lost:
                job.is_lost = True
                self._lost += 1
                if self._waiting:
                    self._staff()

    def _work(self) -> None:
        # The name tells whoever looks at a process which threads are at work.
        thread = threading.current_thread()
        while (job := self._next()) is not None:
            thread.name = f"tool-{next(_serial)}"
            job.run()
            thread.name = _IDLE
            with self._wake:
                job.state = "ended"
                self._lost -= job.is_lost

    def _next(self) -> _Job | None:
        """The next job; None if none comes for a while, and the thread ends."""
        with self._wake:
            while True:
                while self._waiting:
                    job = self._waiting.popleft()
                    if not job.is_dropped:
                        job.state = "running"
                        return job
                self._idle += 1
                woken = self._wake.wait(_IDLE_S)
                self._idle -= 1
                if not (woken or self._waiting):
                    self._threads -= 1
                    return None


def carried(exc: BaseException) -> BaseException:
    """An exception that a future takes: it refuses `StopIteration`, and exits are no results."""
    if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
        return exc
    return RuntimeError(f"{type(exc).__name__}: {exc}")


_shared = ToolThreads()


def in_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    """Run work in one of the process's threads for tools."""
    return _shared.run(work)
