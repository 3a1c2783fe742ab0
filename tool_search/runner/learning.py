"""The evidence of a deployment's searches, between the store and the conversations."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tool_search.core.messages import Notice
from tool_search.core.services import Lesson, Votes
from tool_search.errors import StoreError
from tool_search.search.learned import Evidence, LearnedQueries, evidence_of, source_hash
from tool_search.search.learned_maps import LearnedMaps
from tool_search.stores.base import ConversationStore, EvidenceSaltStore, EvidenceStore
from tool_search.stores.keeping import Backlog, within_patience
from tool_search.stores.memory import MemoryStore

__all__ = ["Learning"]

# A busy bot spends at most a fiftieth of its time on reading evidence.
_REST_AFTER_READING = 50.0
_MANY_ENTRIES = 500
# Sources whose own evidence is kept apart from the others' for later searches.
_MAX_SOURCES = 1_000
# Entries that wait for a failing store; a turn adds a handful.
_MAX_UNWRITTEN = 1_000
# No user has it: while the salt cannot be read, nobody's evidence is their own.
_UNKNOWN_SOURCE = "unknown"
_log = logging.getLogger(__name__)


class _Unwritten(NamedTuple):
    """Evidence that is not in the store yet, with the names that are hashed when it goes there."""

    evidence: Evidence
    user: str | None
    conversation: str | None


class Learning:
    """The reader and writer of evidence from conversations.

    Never raises: while the store fails, the bot goes on with the evidence that it has, new
    evidence waits in memory, and a notice reports the failure.

    Args:
        store: The store of evidence; memory takes the place of one that keeps none.
        clock: Returns the seconds since 1970.
        backlog: Writes later what the store refuses; without it, the next lesson does.
        is_shared: False if a user has only what the user's own calls taught.
        keeps_vectors: True if the vectors of queries are kept, and a map of meaning is learned
            from them.
    """

    def __init__(
        self,
        store: ConversationStore | EvidenceStore,
        *,
        clock: Callable[[], float] = time.time,
        backlog: Backlog | None = None,
        is_shared: bool = True,
        keeps_vectors: bool = False,
    ) -> None:
        self._is_shared = is_shared
        self._maps = LearnedMaps() if keeps_vectors else None
        self._of_source: dict[str, LearnedQueries] = {}
        self._store: EvidenceStore = store if isinstance(store, EvidenceStore) else MemoryStore()
        self._clock = clock
        self._queries = LearnedQueries(())
        self._revision: int | None = None
        self._next_reading = 0.0
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._backlog = backlog
        self._unwritten: list[_Unwritten] = []
        self._salt: bytes | None = None
        self._notices: dict[str, Notice] = {}

    async def votes(self, user: str | None = None) -> Votes | None:
        """Return the evidence as votes for the searches of a user, or None if there is none.

        All that any process has written counts; of more than 500 entries, the state of
        a few seconds ago.

        Args:
            user: The user who searches, whose own evidence counts in full; None: unknown.
        """
        source = "" if user is None else _UNKNOWN_SOURCE
        try:
            async with self._reading:
                await within_patience(self._read_evidence())
            if len(self._queries):
                source = await within_patience(self._source(user))
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: learning must not end a turn
            self._note("evidence cannot be read", exc)
        queries = self._queries if self._is_shared else self._only_of(source)
        if self._maps is not None:
            return self._maps.votes(queries, now=self._clock(), source=source)
        return queries.at(self._clock(), source) if len(queries) else None

    def _only_of(self, source: str) -> LearnedQueries:
        """Return the evidence of one source."""
        known = self._of_source.get(source)
        if known is None:
            if len(self._of_source) >= _MAX_SOURCES:
                self._of_source.clear()
            known = self._of_source[source] = self._queries.of_source(source)
        return known

    async def learn(
        self,
        lessons: Sequence[Lesson],
        *,
        user: str | None = None,
        conversation: str | None = None,
    ) -> None:
        """Keep the evidence of a conversation's lessons.

        Args:
            lessons: The lessons.
            user: The user who taught them; None: unknown. All unknown users are one.
            conversation: The key of the conversation.
        """
        now = self._clock()
        entries = [
            _Unwritten(evidence, user, conversation)
            for lesson in lessons
            for evidence in evidence_of(
                lesson.query,
                lesson.tool,
                now=now,
                strength=lesson.strength,
                definition=lesson.definition,
                vector="" if self._maps is None else self._maps.vector_of(lesson.query),
            )
        ]
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
            waiting = tuple(self._unwritten)
            if waiting:
                await self._store.add_evidence([await self._hash(each) for each in waiting])
                written = set(map(id, waiting))
                self._unwritten = [each for each in self._unwritten if id(each) not in written]

    async def _hash(self, waiting: _Unwritten) -> Evidence:
        salt = await self._read_salt()
        if salt is None:
            return waiting.evidence
        key = waiting.conversation
        return replace(
            waiting.evidence,
            source=await self._source(waiting.user),
            conversation="" if key is None else source_hash(key, salt=salt, kind="conversation"),
        )

    async def _source(self, user: str | None) -> str:
        """Return the salted hash of a user; empty for an unknown user."""
        salt = None if user is None else await self._read_salt()
        return source_hash(user, salt=salt, kind="user") if user is not None and salt else ""

    async def _read_salt(self) -> bytes | None:
        """Return the salt of the store, or None if it keeps none: then all users are one."""
        if self._salt is None and isinstance(self._store, EvidenceSaltStore):
            self._salt = await self._store.evidence_salt()
        return self._salt

    def _write_later(self, error: Exception) -> None:
        self._note("evidence cannot be kept, and waits in memory", error)
        if self._backlog is not None:
            self._backlog.add("evidence", self._write)

    def _note(self, problem: str, error: Exception) -> None:
        notice = Notice("learning_unavailable", f"{problem}: {error}")
        self._notices[problem] = notice
        _log.warning("%s: %s", notice.code, notice.message)

    async def _read_evidence(self) -> None:
        began = time.monotonic()
        if began < self._next_reading or await self._store.evidence_revision() == self._revision:
            return
        kept = await self._store.load_evidence()
        if len(kept.entries) < _MANY_ENTRIES:
            self._queries = LearnedQueries(kept.entries)
        else:
            self._queries = await asyncio.to_thread(LearnedQueries, kept.entries)
        if self._maps is not None:
            self._maps.use(self._queries)
        self._of_source.clear()
        self._revision = kept.revision
        if len(kept.entries) >= _MANY_ENTRIES:
            ended = time.monotonic()
            self._next_reading = ended + _REST_AFTER_READING * (ended - began)
