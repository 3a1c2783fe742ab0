"""An event loop in a thread of its own, for stores that hosts without a loop use too."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["LoopThread"]

_T = TypeVar("_T")


class LoopThread:
    """A thread with an event loop, started by the first work and ended with this object.

    A store may keep locks and connections that belong to one loop, while the callers of a
    bot may be threads without a loop, or several loops. So all work on a store runs here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start work, and return the future of its result for any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork copies the object, but not the thread.
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(
                    target=_run, args=(self._loop,), name="tool-search-store", daemon=True
                ).start()
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
