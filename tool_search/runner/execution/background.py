"""A thread for work that would block the event loop: large catalogs and semantic search."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["LARGE_CATALOG", "Background"]

_T = TypeVar("_T")
LARGE_CATALOG = 200
"""The number of tools from which work on a catalog runs in the background.

A step over 200 tools takes about 2 ms, over 10,000 about 80 ms; their index takes 1.7 s.
"""


_MAX_WAITING = 16


class Background:
    """One worker thread that runs one piece of work at a time.

    Searches that may wait for an embedder have threads of their own, so that one which
    waits does not hold up other conversations.
    """

    # One thread is enough: the work is pure Python and holds the interpreter lock. In
    # sequence, shared results (indexes, lists, texts) are made once and never changed by two.

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: ThreadPoolExecutor | None = None

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
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        future = loop.run_in_executor(self._executor(waits=waits), context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                await asyncio.wait([future])
            raise

    def _executor(self, *, waits: bool) -> ThreadPoolExecutor:
        if waits:
            if self._waiting is None:
                self._waiting = ThreadPoolExecutor(_MAX_WAITING, thread_name_prefix="tool-search")
            return self._waiting
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tool-search")
        return self._thread

    def close(self) -> None:
        """End the threads when their work is done, without waiting for it."""
        for executor in (self._thread, self._waiting):
            if executor is not None:
                executor.shutdown(wait=False)
        self._thread = self._waiting = None
