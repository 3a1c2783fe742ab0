"""A thread for work that would hold the event loop: large catalogs, and searches by meaning."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["LARGE_CATALOG", "Background"]

_T = TypeVar("_T")
LARGE_CATALOG = 200
"""Tools from which on a catalog's work is done in the background: a step over all of 200 takes
about 2 ms, over 10,000 about 80 ms, and their index 1.7 s (docs/scale.md)."""


class Background:
    """One thread, which does one thing after another.

    One is enough: the work is Python's own, and conversations share what it makes (indexes,
    lists, texts), so that nothing is made twice and nothing is changed by two at a time.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], _T], *, heavy: bool) -> _T:
        """Return what the work gives; work that is not heavy is done at once, here.

        Cancelled, it waits for the work's end: what the work changes is changed whole.
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
        """End the thread once its work is done; without waiting for it."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None
