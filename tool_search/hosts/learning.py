"""What the searches of all conversations of a host have taught, for any thread or loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from tool_search.conversation.search_trail import Lesson
from tool_search.hosts.loop_thread import LoopThread
from tool_search.runner.learning import Learning
from tool_search.search.index.ranking import Votes
from tool_search.stores.base import EvidenceStore
from tool_search.stores.memory import MemoryStore

__all__ = ["HostLearning"]

# Seconds after which a search looks for what other processes have learned.
_READ_AGAIN_S = 5.0


class HostLearning:
    """The evidence of one `ToolSearch`.

    Args:
        store: The store of evidence; None: memory of this object.
    """

    def __init__(self, store: EvidenceStore | None = None) -> None:
        self._learning = Learning(MemoryStore() if store is None else store)
        self._thread = LoopThread()
        self._lock = threading.Lock()
        self._votes: Votes | None = None
        self._reading: Future[None] | None = None
        self._process = os.getpid()
        # Memory has nothing to read before the first lesson.
        self._has_read = store is None
        self._is_shared = store is not None
        self._next_reading = 0.0

    def votes(self) -> Votes | None:
        """Return the evidence as votes; the first call waits for a store to be read.

        Later calls do not wait: they have what was read a few seconds ago.
        """
        if not self._has_read:
            self._start_reading().result()
        elif self._is_shared and time.monotonic() >= self._next_reading:
            self._start_reading()
        return self._votes

    async def prepare(self) -> None:
        """Read the evidence without holding the event loop."""
        if not self._has_read:
            await asyncio.wrap_future(self._start_reading())

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Keep the evidence of lessons."""
        self._thread.submit(self._learn(lessons)).result()

    async def alearn(self, lessons: Sequence[Lesson]) -> None:
        """Keep the evidence of lessons without holding the event loop."""
        await asyncio.wrap_future(self._thread.submit(self._learn(lessons)))

    def _start_reading(self) -> Future[None]:
        with self._lock:
            # What the process read that this one was forked from never ends here.
            is_over = self._reading is None or self._process != os.getpid() or self._reading.done()
            if self._reading is None or is_over:
                self._next_reading = time.monotonic() + _READ_AGAIN_S
                self._reading, self._process = self._thread.submit(self._read()), os.getpid()
            return self._reading

    async def _learn(self, lessons: Sequence[Lesson]) -> None:
        await self._learning.learn(lessons)
        await self._read()

    async def _read(self) -> None:
        self._votes = await self._learning.votes()
        self._has_read = True
