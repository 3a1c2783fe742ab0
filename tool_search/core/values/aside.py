"""Work aside: threads, loops in threads, and the end of tasks and iterators."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

__all__ = [
    "LARGE_CATALOG",
    "Background",
    "LoopThread",
    "Threads",
    "as_task_exception",
    "close",
    "closing",
    "end",
    "run_in_daemon",
]

_T = TypeVar("_T")
_MAX_WAITING = 16
_log = logging.getLogger(__name__)


@asynccontextmanager
async def closing(items: AsyncIterator[_T]) -> AsyncGenerator[AsyncIterator[_T], None]:
    """Close an iterator at the end of the block, if it can be closed."""
    # A generator that is only dropped keeps its connections open until the event loop
    # finalizes it: no connection and no tool may outlive a turn.
    try:
        yield items
    finally:
        await close(items)


async def close(item: object) -> None:
    """Close an object that can be closed."""
    aclose = getattr(item, "aclose", None)
    if aclose is not None:
        await aclose()


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait for their end; raise what they raise in its place."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


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
        """True if the caller has cancelled it."""
        return self._future.cancelled()

    def run(self) -> None:
        try:
            outcome = ("set_result", self._context.run(self._work))
        except BaseException as exc:  # noqa: BLE001  # passed on to the awaiting task
            outcome = ("set_exception", as_task_exception(exc))
        try:
            self._loop.call_soon_threadsafe(self._settle, *outcome)
        except RuntimeError:
            _log.debug("a tool's thread ended after its event loop; its result is dropped")

    def _settle(self, setter: str, value: object) -> None:
        if not self._future.done():
            getattr(self._future, setter)(value)


class Threads:
    """A bounded pool of daemon threads, started on demand.

    Threads of `concurrent.futures` are not daemons: one that hangs would keep the process alive.

    Args:
        most: The number of threads that work at the same time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._wake = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._threads = 0
        self._idle = 0
        self._lost = 0

    @property
    def count(self) -> int:
        """The number of threads, with idle and lost ones."""
        return self._threads

    def run(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Return the future of the work's result; cancelled before its start, it is dropped."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        job = _Job(work, future)
        future.add_done_callback(partial(self._note_cancelled, job))
        with self._wake:
            self._waiting.append(job)
            self._start_thread()
        return future

    def _start_thread(self) -> None:
        """Wake or start a thread for waiting work, up to the bound."""
        if self._idle >= len(self._waiting):
            self._wake.notify()
        elif self._threads - min(self._lost, _MAX_LOST * self._most) < self._most:
            self._threads += 1
            threading.Thread(target=self._run_jobs, daemon=True, name=_IDLE).start()

    def _note_cancelled(self, job: _Job, done: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            return
        with self._wake:
            if job.state == "running" and not job.is_lost:
                job.is_lost = True
                self._lost += 1
                if self._waiting:
                    self._start_thread()

    def _run_jobs(self) -> None:
        # Debuggers and `py-spy` show the name: it says which threads are at work.
        thread = threading.current_thread()
        while (job := self._next_job()) is not None:
            thread.name = f"tool-{next(_serial)}"
            job.run()
            thread.name = _IDLE
            with self._wake:
                job.state = "ended"
                self._lost -= job.is_lost

    def _next_job(self) -> _Job | None:
        """Return the next job; None after a while without one, and the thread ends."""
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


def as_task_exception(exc: BaseException) -> BaseException:
    """Return an exception that a future accepts.

    A future refuses `StopIteration`, and `SystemExit` would end the event loop.
    """
    if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
        return exc
    return RuntimeError(f"{type(exc).__name__}: {exc}")


def run_in_daemon(work: Callable[[], _T], name: str) -> Future[_T]:
    """Run work in a thread of its own, for which a process does not wait at its end."""
    running: Future[_T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            running.set_result(context.run(work))
        except BaseException as exc:  # noqa: BLE001  # the waiting thread raises it
            running.set_exception(exc)

    threading.Thread(target=run, name=name, daemon=True).start()
    return running


class LoopThread:
    """A thread with an event loop, started by the first work and ended with this object.

    A store may keep locks and connections that belong to one loop, while the callers of a
    bot may be threads without a loop, or several loops. So all work on a store runs here.

    Args:
        name: The name of the thread.
    """

    def __init__(self, name: str = "tool-search-store") -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    @property
    def is_here(self) -> bool:
        """True in the thread itself, which cannot wait for its own work."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start work, and return the future of its result for any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork copies the object, but not the thread.
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
                weakref.finalize(self, _stop, self._loop, self._process)
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, process: int) -> None:
    if process == os.getpid() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


LARGE_CATALOG = 200
"""The number of tools from which work on a catalog runs in the background.

A step over 200 tools takes about 2 ms, over 10,000 about 80 ms; their index takes 1.7 s.
"""


class Background:
    """One worker thread that runs one piece of work at a time.

    Searches that may wait for an embedder have threads of their own, so that one which
    waits does not hold up other conversations.
    """

    # One thread is enough: the work is pure Python and holds the interpreter lock. In
    # sequence, shared results (indexes, lists, texts) are made once and never changed by two.

    def __init__(self) -> None:
        self._thread, self._waiting = Threads(1), Threads(_MAX_WAITING)

    async def run(self, work: Callable[[], _T], *, heavy: bool, waits: bool = False) -> _T:
        """Return the work's result; run it in the event loop unless it is heavy.

        A cancelled caller waits for the end of the work, so that shared state changes as a
        whole.

        Args:
            work: The work; if it waits, it must not change what other work shares.
            heavy: True if it would hold the event loop.
            waits: True if it may wait for a network.
        """
        if not heavy:
            return work()
        future = (self._waiting if waits else self._thread).run(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                await asyncio.wait([future])
            raise
