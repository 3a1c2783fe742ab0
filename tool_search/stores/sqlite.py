"""Conversations, evidence and grants in one SQLite file, for any number of processes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tool_search.discovery import Discovery
from tool_search.record import ConversationRecord
from tool_search.search.learned import Evidence
from tool_search.stores import sqlite_conversations, sqlite_evidence, sqlite_grants
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants
from tool_search.stores.sqlite_file import SQLiteFile, Synchronous

__all__ = ["SQLiteStore"]


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
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        patience_s: float = 5.0,
        synchronous: Synchronous = "normal",
    ) -> None:
        self.path = Path(path)
        self._file = SQLiteFile(self.path, patience_s=patience_s, synchronous=synchronous)

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
        return await self._file.read(
            lambda connection: sqlite_conversations.kept_record(connection, key)
        )

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all of the conversation in their order."""
        return await self._file.write(
            lambda connection: sqlite_conversations.append_discoveries(connection, key, entries)
        )

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keep the conversation."""
        await self._file.write(
            lambda connection: sqlite_conversations.write_record(connection, key, record)
        )

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and what was granted in it, if it is there."""
        await self.forget_conversations(key)

    async def forget_conversations(self, key: ConversationKey | None = None) -> int:
        """Erase one conversation, or all of them; return how many those were."""
        return await self._file.write(
            lambda connection: sqlite_conversations.erase_conversations(connection, key),
            is_durable=True,
        )

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
        return await self._file.write(
            lambda connection: sqlite_evidence.erase_evidence(connection, tool), is_durable=True
        )

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
