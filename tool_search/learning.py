"""What a deployment's searches have learned, between the store and the conversations."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from tool_search.search.learned import Evidence, evidence_of
from tool_search.search.learned_votes import LearnedQueries
from tool_search.search.ranked import Votes
from tool_search.search_trail import Lesson
from tool_search.stores.base import ConversationStore, EvidenceStore
from tool_search.stores.memory import MemoryStore

__all__ = ["Learning"]

# Of the time, a busy bot spends no more than a fiftieth on reading what it learned.
_REST_AFTER_READING = 50.0
_MANY_ENTRIES = 500
_log = logging.getLogger(__name__)


class Learning:
    """Reads evidence for conversations, and writes what they taught.

    Never raises: a store that fails is named in the log, and the bot goes on with what
    it knows.

    Args:
        store: Where evidence lives; one that keeps none is stood in for by memory.
        clock: Gives the seconds since 1970.
    """

    def __init__(
        self, store: ConversationStore | EvidenceStore, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store: EvidenceStore = store if isinstance(store, EvidenceStore) else MemoryStore()
        self._clock = clock
        self._queries = LearnedQueries(())
        self._revision: int | None = None
        self._next_reading = 0.0
        self._reading = asyncio.Lock()

    async def votes(self) -> Votes | None:
        """What was learned as an index takes it; None where that is nothing.

        Everything that any process has written by now takes part, or, of much
        evidence, what there was a few seconds ago.
        """
        try:
            async with self._reading:
                await self._read()
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: learning must not end a turn
            _log.warning("learning_unavailable: evidence cannot be read: %s", exc)
        return self._queries.at(self._clock()) if len(self._queries) else None

    async def learn(self, lessons: Sequence[Lesson]) -> None:
        """Keeps what a conversation taught."""
        now = self._clock()
        entries: list[Evidence] = []
        for lesson in lessons:
            entries += evidence_of(lesson.query, lesson.tool, now=now, strength=lesson.strength)
        if not entries:
            return
        try:
            await self._store.add_evidence(entries)
        except Exception as exc:  # noqa: BLE001  # as above
            _log.warning("learning_unavailable: evidence cannot be kept: %s", exc)

    async def _read(self) -> None:
        began = time.monotonic()
        if began < self._next_reading or await self._store.evidence_revision() == self._revision:
            return
        kept = await self._store.load_evidence()
        if len(kept.entries) < _MANY_ENTRIES:
            self._queries = LearnedQueries(kept.entries)
        else:
            self._queries = await asyncio.to_thread(LearnedQueries, kept.entries)
        self._revision = kept.revision
        if len(kept.entries) >= _MANY_ENTRIES:
            ended = time.monotonic()
            self._next_reading = ended + _REST_AFTER_READING * (ended - began)
