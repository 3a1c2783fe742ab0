"""Conversations, evidence and grants in one SQLite file, for any number of processes."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tool_search.conversation.record import ConversationRecord
from tool_search.discovery.state import Discovery
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants
from tool_search.stores.sqlite import conversations as sqlite_conversations
from tool_search.stores.sqlite import erasure as sqlite_erasure
from tool_search.stores.sqlite import evidence as sqlite_evidence
from tool_search.stores.sqlite import grants as sqlite_grants
from tool_search.stores.sqlite.conversations import KeptParts
from tool_search.stores.sqlite.erasure import Erased, Export, Selection
from tool_search.stores.sqlite.file import SQLiteFile, Synchronous
from tool_search.stores.sqlite.pruning import Pruning

__all__ = ["SQLiteStore"]

_REVISION_BITS = 62
_MAX_PARTS = 1024


class SQLiteStore:
    """Keeps conversations, evidence and grants in a file that processes may share.

    The file is made when it is first needed, readable by its owner alone. All work is
    done in one thread of the store's own. Close it when it is needed no more.

    Every method raises StoreError where the file is no such store, cannot be read or
    written, or stays locked by another process for longer than `patience_s`. What was
    wrong may pass: the next call tries again.

    Args:
        path: The file.
        patience_s: Seconds to wait for another process.
        synchronous: When a commit is on the disk: `full` at once, `normal` at the next
            checkpoint, `off` whenever the system likes. Only a loss of power can take
            what is not there yet; what is revoked or forgotten is always there at once.
        keep_days: Days after its last use that a conversation is kept; None: for ever.
        keep_conversations: How many are kept, the last used ones, give or take a
            twentieth; None: all.
        clock: Gives the seconds since 1970.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        patience_s: float = 5.0,
        synchronous: Synchronous = "normal",
        keep_days: float | None = None,
        keep_conversations: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self._file = SQLiteFile(self.path, patience_s=patience_s, synchronous=synchronous)
        self._clock = clock
        self._parts: OrderedDict[ConversationKey, KeptParts] = OrderedDict()
        self._pruning = Pruning(self._file, keep_days, keep_conversations, clock)

    async def __aenter__(self) -> Self:
        """Open the file, so that what is wrong with it shows at once."""
        try:
            await self.evidence_revision()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the file, once what was begun is done; the store is used no more."""
        await self._file.aclose()

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as it was last saved, with all discoveries.

        Raises:
            UnreadableRecordError: What is kept is no record of this version.
        """

        def read(connection: sqlite3.Connection) -> ConversationRecord | None:
            record = sqlite_conversations.kept_record(connection, key)
            revision = sqlite_conversations.kept_revision(connection, key)
            if record is not None and revision is not None:
                self._remember(key, KeptParts(revision, record.history, record.discoveries))
            return record

        self._pruning.used(key)
        return await self._file.read(read)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all of the conversation in their order."""
        at = self._clock()
        return await self._file.write(
            lambda connection: sqlite_conversations.append_discoveries(connection, key, entries, at)
        )

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keep the conversation."""
        await self._save(key, record, lambda _revision: True, secrets.randbits(_REVISION_BITS) | 1)

    async def revision(self, key: ConversationKey) -> int | None:
        """Return what changes whenever the conversation is saved; None if it is not kept."""
        self._pruning.used(key)
        return await self._file.read(
            lambda connection: sqlite_conversations.kept_revision(connection, key)
        )

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Keep the conversation, unless another process saved or erased it meanwhile."""
        return await self._save(key, record, lambda revision: revision == expected, new)

    async def set_aside(self, key: ConversationKey) -> None:
        """Put what cannot be read out of the way; `forget` erases it, an export shows it."""
        at = self._clock()
        await self._file.write(
            lambda connection: sqlite_conversations.set_aside(connection, key, at)
        )

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and what was granted in it, if it is there.

        Of a file beyond 32 MB, traces may be left for a minute: see `forget_conversations`.
        """
        await self._forget(key, at_once=False)

    async def forget_conversations(self, key: ConversationKey | None = None) -> int:
        """Erase one conversation, or all of them; return how many those were.

        No byte of them is left in the file and its write-ahead log. That rewrites the file:
        about a second for 100 MB.
        """
        return await self._forget(key, at_once=True)

    async def _forget(self, key: ConversationKey | None, *, at_once: bool) -> int:
        def erase(connection: sqlite3.Connection) -> tuple[int, bool]:
            before = connection.total_changes
            erased = sqlite_conversations.erase_conversations(connection, key)
            return erased, connection.total_changes > before

        erased, has_changed = await self._file.write(erase, is_durable=True)
        if has_changed or at_once or self._file.has_traces:
            await self._file.leave_no_traces(at_once=at_once)
        return erased

    async def erase(self, selection: Selection, *, export: Export | None = None) -> Erased:
        """Erase all that a selection means, or nothing; return how much that was.

        No byte of it is left in the file and its write-ahead log.

        Args:
            selection: What is to be erased.
            export: Writes it first; runs in the store's thread, while nobody else writes.

        Raises:
            Exception: What `export` raises; then nothing was erased.
        """

        def work(connection: sqlite3.Connection) -> Erased:
            if export is not None:
                export(sqlite_erasure.shown(connection, selection))
            return sqlite_erasure.erase(connection, selection)

        erased = await self._file.write(work, is_durable=True)
        await self._file.leave_no_traces(at_once=True)
        return erased

    async def conversations(self) -> tuple[ConversationKey, ...]:
        """Return the conversations there are, sorted."""
        return await self._file.read(sqlite_conversations.kept_conversations)

    async def evidence_revision(self) -> int:
        """Return how often the evidence has changed."""
        return await self._file.read(sqlite_evidence.evidence_revision)

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""

        def read(connection: sqlite3.Connection) -> KeptEvidence:
            revision = sqlite_evidence.evidence_revision(connection)
            return KeptEvidence(revision, tuple(sqlite_evidence.kept_evidence(connection)))

        return await self._file.read(read)

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes."""
        if entries:
            await self._file.write(
                lambda connection: sqlite_evidence.add_evidence(connection, entries)
            )

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it."""
        erased = await self._file.write(
            lambda connection: sqlite_evidence.erase_evidence(connection, tool), is_durable=True
        )
        await self._file.leave_no_traces(at_once=True)
        return erased

    async def grant_revision(self) -> int:
        """Return how often the grants have changed."""
        return await self._file.read(sqlite_grants.grant_revision)

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""

        def read(connection: sqlite3.Connection) -> KeptGrants:
            revision = sqlite_grants.grant_revision(connection)
            return KeptGrants(revision, sqlite_grants.kept_grants(connection))

        return await self._file.read(read)

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Keep grants; from one source once."""
        return await self._file.write(
            lambda connection: sqlite_grants.add_grants(connection, grants, source)
        )

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Take grants back, of whichever definition."""
        return await self._file.write(
            lambda connection: sqlite_grants.erase_grants(connection, grants), is_durable=True
        )

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the mode that was last saved, or None."""
        return await self._file.read(lambda connection: sqlite_grants.kept_mode(connection, key))

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Keep a conversation's mode."""
        await self._file.write(
            lambda connection: sqlite_grants.write_mode(connection, key, mode), is_durable=True
        )

    async def _save(
        self,
        key: ConversationKey,
        record: ConversationRecord,
        is_expected: Callable[[int | None], bool],
        new: int,
    ) -> bool:
        at = self._clock()

        def write(connection: sqlite3.Connection) -> bool:
            if not is_expected(sqlite_conversations.kept_revision(connection, key)):
                return False
            known = self._parts.get(key)
            sqlite_conversations.write_record(
                connection, key, record, revision=new, at=at, known=known
            )
            # Should the commit fail, the file has another revision, and this is not used.
            self._remember(key, KeptParts(new, record.history, record.discoveries))
            return True

        is_saved = await self._file.write(write)
        if is_saved:
            self._pruning.saved(key)
        return is_saved

    def _remember(self, key: ConversationKey, parts: KeptParts) -> None:
        """Note what a conversation had, so that its next turn writes no more than it added.

        In the store's thread alone.
        """
        self._parts[key] = parts
        self._parts.move_to_end(key)
        if len(self._parts) > _MAX_PARTS:
            self._parts.popitem(last=False)
