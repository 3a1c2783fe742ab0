"""Learning from the searches of all conversations of a host, in any thread or loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from tool_search.core.services import Lesson, Votes
from tool_search.core.values.aside import LoopThread
from tool_search.runner.learning import Learning
from tool_search.stores.base import EvidenceStore
from tool_search.stores.memory import MemoryStore

__all__ = ["HostLearning"]

# Seconds after which a search looks for what other processes have learned.
_READ_AGAIN_S = 5.0
_MAX_USERS = 1_000


class HostLearning:
    """The evidence of one `ToolSearch`.

    Args:
        store: The store of evidence; None: memory of this object.
        is_shared: False if a user has only what the user's own calls taught.
        keeps_vectors: True if the vectors of queries are kept.
    """

    def __init__(
        self,
        store: EvidenceStore | None = None,
        *,
        is_shared: bool = True,
        keeps_vectors: bool = False,
    ) -> None:
        kept = MemoryStore() if store is None else store
        self._learning = Learning(kept, is_shared=is_shared, keeps_vectors=keeps_vectors)
        self._thread = LoopThread()
        self._lock = threading.Lock()
        self._process = os.getpid()
        # Memory has nothing to read before the first lesson.
        self._has_evidence = store is not None or keeps_vectors
        self._readings: dict[str | None, _Reading] = {}

    def votes(self, user: str | None = None) -> Votes | None:
        """Return the evidence as votes for the searches of a user; None if there is none.

        The first call for a user waits for the store. Later calls do not wait: they have what
        was read a few seconds ago.

        Args:
            user: The user who searches; None: unknown.
        """
        if not self._has_evidence:
            return None
        reading = self._reading(user)
        return reading.votes if reading.is_read else reading.future.result()

    async def prepare(self) -> None:
        """Read the evidence without holding the event loop."""
        if self._has_evidence:
            await asyncio.wrap_future(self._reading(None).future)

    def learn(self, lessons: Sequence[Lesson], user: str | None) -> None:
        """Keep the evidence of a user's lessons."""
        self._thread.submit(self._learn(lessons, user)).result()

    async def alearn(self, lessons: Sequence[Lesson], user: str | None) -> None:
        """Keep the evidence of a user's lessons without holding the event loop."""
        await asyncio.wrap_future(self._thread.submit(self._learn(lessons, user)))

    async def _learn(self, lessons: Sequence[Lesson], user: str | None) -> None:
        await self._learning.learn(lessons, user=user)
        with self._lock:
            self._has_evidence = True
            self._readings.clear()

    def _reading(self, user: str | None) -> _Reading:
        """Return the last reading for a user; start the next one if that is old."""
        with self._lock:
            if self._process != os.getpid():
                # What the process read that this one was forked from never ends here.
                self._process = os.getpid()
                self._readings.clear()
            known = self._readings.get(user)
            if known is not None and not known.is_old:
                return known
            if len(self._readings) >= _MAX_USERS:
                self._readings.clear()
            future = self._thread.submit(self._learning.votes(user))
            made = self._readings[user] = _Reading(future, known.votes if known else None, known)
            return made


class _Reading:
    """One reading of the evidence for a user.

    Args:
        future: The votes, when they are read.
        votes: The votes of the reading before.
        before: The reading before, if there is one.
    """

    def __init__(
        self, future: Future[Votes | None], votes: Votes | None, before: _Reading | None
    ) -> None:
        self.future = future
        self._votes = votes
        self._has_votes = before is not None and before.is_read
        self._until = time.monotonic() + _READ_AGAIN_S

    @property
    def is_old(self) -> bool:
        """True if another process may have learned more by this time."""
        return self.future.done() and time.monotonic() >= self._until

    @property
    def is_read(self) -> bool:
        """True if there are votes without waiting: new ones, or those before."""
        return self._has_votes or self.future.done()

    @property
    def votes(self) -> Votes | None:
        """The votes that are known without waiting."""
        return self.future.result() if self.future.done() else self._votes
