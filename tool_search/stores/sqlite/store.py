"""A store in one SQLite file, for any number of processes."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tool_search.core.discovery.state import Discovery
from tool_search.errors import StoreError
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants
from tool_search.stores.context import StoreContext
from tool_search.stores.erasure import Erased, Export, Selection
from tool_search.stores.record import ConversationRecord
from tool_search.stores.sqlite import conversations as sqlite_conversations
from tool_search.stores.sqlite import erasure as sqlite_erasure
from tool_search.stores.sqlite import evidence as sqlite_evidence
from tool_search.stores.sqlite import grants as sqlite_grants
from tool_search.stores.sqlite import locks as sqlite_locks
from tool_search.stores.sqlite.conversations import KeptParts
from tool_search.stores.sqlite.file import SQLiteFile, Synchronous
from tool_search.stores.sqlite.pruning import Pruning

__all__ = ["SQLiteStore"]

_REVISION_BITS = 62
_MAX_PARTS = 1024


class SQLiteStore(StoreContext):
    """A store of conversations, evidence, grants and modes in a file that processes may share.

    The file is created on demand, readable by its owner alone. All work runs in one thread of
    the store. Close the store after use.

    Every method raises StoreError if the file is not a store, cannot be read or written, or
    stays locked by another process for longer than `patience_s`. The next call tries again.

    Args:
        path: The file.
        patience_s: Seconds to wait for another process.
        synchronous: The time when a commit reaches the disk: `full` at once, `normal` at the
            next checkpoint, `off` when the operating system writes it. Before that, only a
            power failure can lose it. Revocations and erasures always reach it at once.
        keep_days: Days that a conversation is kept after its last use; None: forever.
        keep_conversations: The number of recently used conversations to keep, up to 5 %
            more; None: all.
        clock: Returns the seconds since 1970.
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
        # Locks that this store has taken: a holder for each conversation.
        self._locks: dict[ConversationKey, str] = {}
        self._pruning = Pruning(self._file, keep_days, keep_conversations, clock)

    async def aclose(self) -> None:
        """Close the file after all started work; the store cannot be used again."""
        for key, holder in tuple(self._locks.items()):
            with suppress(StoreError):  # the lease ends by itself
                await self.unlock_turn(key, holder=holder)
        await self._file.aclose()

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as last saved, with all discoveries.

        Raises:
            UnreadableRecordError: The stored data is not a record of this version.
        """

        def read(connection: sqlite3.Connection) -> ConversationRecord | None:
            record = sqlite_conversations.load_record(connection, key)
            revision = sqlite_conversations.load_revision(connection, key)
            if record is not None and revision is not None:
                self._remember(key, KeptParts(revision, record.history, record.discoveries))
            return record

        self._pruning.used(key)
        return await self._file.read(read)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all discoveries of the conversation in order."""
        at = self._clock()
        return await self._file.write(
            lambda connection: sqlite_conversations.append_discoveries(connection, key, entries, at)
        )

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Save the conversation."""
        await self._save(key, record, lambda _revision: True, secrets.randbits(_REVISION_BITS) | 1)

    async def revision(self, key: ConversationKey) -> int | None:
        """Return a number that changes with every save, or None if there is no conversation."""
        self._pruning.used(key)
        return await self._file.read(
            lambda connection: sqlite_conversations.load_revision(connection, key)
        )

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Save the conversation, unless another process saved or erased it meanwhile."""
        return await self._save(key, record, lambda revision: revision == expected, new)

    async def set_aside(self, key: ConversationKey) -> None:
        """Set unreadable data aside; `forget` erases it, an export shows it."""
        at = self._clock()
        await self._file.write(
            lambda connection: sqlite_conversations.set_aside(connection, key, at)
        )

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and its grants, if it exists.

        In a file over 32 MB, traces may be left for a minute; see `forget_conversations`.
        """
        await self._forget(key, at_once=False)

    async def forget_conversations(self, key: ConversationKey | None = None) -> int:
        """Erase one conversation, or all; return the number of conversations.

        No byte of them is left in the file and its write-ahead log. That rewrites the file,
        which takes about a second for 100 MB.
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
        """Erase all selected data, or nothing; return the numbers of entries.

        No byte of it is left in the file and its write-ahead log.

        Args:
            selection: The data to erase.
            export: Writes the data first, in the store's thread while nobody else writes.

        Raises:
            Exception: Any exception of `export`; then nothing was erased.
        """

        def work(connection: sqlite3.Connection) -> Erased:
            if export is not None:
                export(sqlite_erasure.preview(connection, selection))
            return sqlite_erasure.erase(connection, selection)

        erased = await self._file.write(work, is_durable=True)
        await self._file.leave_no_traces(at_once=True)
        return erased

    async def lock_turn(self, key: ConversationKey, *, holder: str, lease_s: float) -> bool:
        """Take or renew the lock of a conversation's turns; return False if another has it.

        The lock of a process that was killed ends at once on Linux, and elsewhere with its
        lease.
        """
        # Most tries of a turn that waits are refused, and must not keep others from writing.
        if await self._file.read(
            lambda connection: sqlite_locks.is_locked(connection, key, holder)
        ):
            return False
        # The end of the machine ends its locks.
        is_taken = await self._file.write(
            lambda connection: sqlite_locks.take_lock(connection, key, holder, lease_s),
            is_durable=False,
        )
        if is_taken:
            self._locks[key] = holder
        return is_taken

    async def unlock_turn(self, key: ConversationKey, *, holder: str) -> None:
        """Release the lock, if the holder has it."""
        if self._locks.get(key) == holder:
            del self._locks[key]
        await self._file.write(
            lambda connection: connection.execute(
                "DELETE FROM turn_lock WHERE key = ? AND holder = ?", (key, holder)
            ),
            is_durable=False,
        )

    async def conversations(self, *, since: float | None = None) -> tuple[ConversationKey, ...]:
        """Return all conversations, sorted.

        Args:
            since: Only those that were last used at this time or later, in seconds since 1970.
        """
        return await self._file.read(
            lambda connection: sqlite_conversations.list_conversations(connection, since)
        )

    async def evidence_revision(self) -> int:
        """Return the number of changes of the evidence."""
        return await self._file.read(sqlite_evidence.evidence_revision)

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""

        def read(connection: sqlite3.Connection) -> KeptEvidence:
            revision = sqlite_evidence.evidence_revision(connection)
            return KeptEvidence(revision, tuple(sqlite_evidence.load_evidence(connection)))

        return await self._file.read(read)

    async def evidence_salt(self) -> bytes:
        """Return the salt of the hashes in the evidence; a damaged one is replaced."""
        known = await self._file.read(sqlite_evidence.load_salt)
        if known is not None:
            return known
        return await self._file.write(sqlite_evidence.write_salt, is_durable=True)

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes."""
        if entries:
            await self._file.write(
                lambda connection: sqlite_evidence.add_evidence(connection, entries)
            )

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        erased = await self._file.write(
            lambda connection: sqlite_evidence.erase_evidence(connection, tool), is_durable=True
        )
        await self._file.leave_no_traces(at_once=True)
        return erased

    async def grant_revision(self) -> int:
        """Return the number of changes of the grants."""
        return await self._file.read(sqlite_grants.grant_revision)

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""

        def read(connection: sqlite3.Connection) -> KeptGrants:
            revision = sqlite_grants.grant_revision(connection)
            return KeptGrants(revision, sqlite_grants.load_grants(connection))

        return await self._file.read(read)

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Add grants; accept each source once."""
        return await self._file.write(
            lambda connection: sqlite_grants.add_grants(connection, grants, source)
        )

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Revoke grants for all definitions; return the number of revoked grants."""
        return await self._file.write(
            lambda connection: sqlite_grants.erase_grants(connection, grants), is_durable=True
        )

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        return await self._file.read(lambda connection: sqlite_grants.load_mode(connection, key))

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode."""
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
            if not is_expected(sqlite_conversations.load_revision(connection, key)):
                return False
            known = self._parts.get(key)
            sqlite_conversations.write_record(
                connection, key, record, revision=new, at=at, known=known
            )
            # If the commit fails, the file has another revision, and this is ignored.
            self._remember(key, KeptParts(new, record.history, record.discoveries))
            return True

        is_saved = await self._file.write(write)
        if is_saved:
            self._pruning.saved(key)
        return is_saved

    def _remember(self, key: ConversationKey, parts: KeptParts) -> None:
        """Note a conversation's parts, so that its next turn writes only its additions.

        Called only in the store's thread.
        """
        self._parts[key] = parts
        self._parts.move_to_end(key)
        if len(self._parts) > _MAX_PARTS:
            self._parts.popitem(last=False)
