"""The evidence of a deployment's searches, between the store and the conversations."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from tool_search.conversation.search_trail import Lesson
from tool_search.errors import StoreError
from tool_search.messages import Notice
from tool_search.search.index.ranking import Votes
from tool_search.search.learned import Evidence, LearnedQueries, evidence_of
from tool_search.stores.backlog import Backlog, within_patience
from tool_search.stores.base import ConversationStore, EvidenceStore
from tool_search.stores.memory import MemoryStore

__all__ = ["Learning"]

# A busy bot spends at most a fiftieth of its time on reading evidence.
_REST_AFTER_READING = 50.0
_MANY_ENTRIES = 500
# Entries that wait for a failing store; a turn adds a handful.
_MAX_UNWRITTEN = 1_000
_log = logging.getLogger(__name__)


class Learning:
    """The reader and writer of evidence from conversations.

    Never raises: while the store fails, the bot goes on with the evidence that it has, new
    evidence waits in memory, and a notice reports the failure.

    Args:
        store: The store of evidence; memory takes the place of one that keeps none.
        clock: Returns the seconds since 1970.
        backlog: Writes later what the store refuses; without it, the next lesson does.
    """

    def __init__(
        self,
        store: ConversationStore | EvidenceStore,
        *,
        clock: Callable[[], float] = time.time,
        backlog: Backlog | None = None,
    ) -> None:
        self._store: EvidenceStore = store if isinstance(store, EvidenceStore) else MemoryStore()
        self._clock = clock
        self._queries = LearnedQueries(())
        self._revision: int | None = None
        self._next_reading = 0.0
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._backlog = backlog
        self._unwritten: list[Evidence] = []
        self._notices: dict[str, Notice] = {}

    async def votes(self) -> Votes | None:
        """Return the evidence as votes for an index, or None if there is none.

        All that any process has written counts; of more than 500 entries, the state of
        a few seconds ago.
        """
        try:
            async with self._reading:
                await within_patience(self._read())
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: learning must not end a turn
            self._note("evidence cannot be read", exc)
        return self._queries.at(self._clock()) if len(self._queries) else None

    async def learn(self, lessons: Sequence[Lesson]) -> None:
        """Keep the evidence of a conversation's lessons."""
        now = self._clock()
        entries: list[Evidence] = []
        for lesson in lessons:
            entries += evidence_of(lesson.query, lesson.tool, now=now, strength=lesson.strength)
        if not entries:
            return
        self._unwritten = [*self._unwritten, *entries][-_MAX_UNWRITTEN:]
        if self._backlog is not None and self._backlog.is_cooling_down:
            self._write_later(StoreError(self._backlog.last_error))
            return
        try:
            await within_patience(self._write())
        except Exception as exc:  # noqa: BLE001  # as above
            self._write_later(exc)

    def take_notices(self) -> tuple[Notice, ...]:
        """Return the failures since the last call of this, each kind once."""
        notices, self._notices = tuple(self._notices.values()), {}
        return notices

    async def _write(self) -> None:
        async with self._writing:
            entries = tuple(self._unwritten)
            if entries:
                await self._store.add_evidence(entries)
                written = set(map(id, entries))
                self._unwritten = [each for each in self._unwritten if id(each) not in written]

    def _write_later(self, error: Exception) -> None:
        self._note("evidence cannot be kept, and waits in memory", error)
        if self._backlog is not None:
            self._backlog.add("evidence", self._write)

    def _note(self, problem: str, error: Exception) -> None:
        notice = Notice("learning_unavailable", f"{problem}: {error}")
        self._notices[problem] = notice
        _log.warning("%s: %s", notice.code, notice.message)

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
