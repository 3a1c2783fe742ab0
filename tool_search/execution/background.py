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


class Background:
    """One worker thread that runs one piece of work at a time."""

    # One thread is enough: the work is pure Python and holds the interpreter lock. In
    # sequence, shared results (indexes, lists, texts) are made once and never changed by two.

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], _T], *, heavy: bool) -> _T:
        """Return the work's result; run it in the event loop unless it is heavy.

        A cancelled caller waits for the end of the work, so that shared state changes as a
        whole.
        """
        if not heavy:
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tool-search")
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        future = loop.run_in_executor(self._thread, context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                await asyncio.wait([future])
            raise

    def close(self) -> None:
        """End the thread when its work is done, without waiting for it."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None
