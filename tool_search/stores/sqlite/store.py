"""A store in one SQLite file, for any number of processes."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tool_search.errors import StoreError
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.conversations import (
    Change,
    Erased,
    Export,
    FoundTool,
    Selection,
    StoredConversation,
    Written,
    as_json,
)
from tool_search.stores.core import StoreCore
from tool_search.stores.evidence import (
    MAX_SALT,
    MIN_SALT,
    EvidenceRows,
    evidence_of_row,
    readable,
)
from tool_search.stores.sections import Access, UnbrokenSections, result_of
from tool_search.stores.sqlite.file import SQLiteFile, Synchronous
from tool_search.stores.sqlite.locks import is_locked, take_lock
from tool_search.stores.sqlite.pruning import (
    COUNT_GRANTS,
    Pruning,
    erase_conversations,
    erase_grants_of,
    erase_keys,
)

__all__ = ["SQLiteStore"]

_KEYS = "SELECT key FROM conversation UNION SELECT key FROM discovery"
_PLACES = f"{_KEYS} UNION SELECT key FROM set_aside"  # noqa: S608 - our own words
_RECENT = f"SELECT key FROM ({_KEYS}) WHERE key IN (SELECT key FROM used WHERE at >= ?)"  # noqa: S608 - our own words
_MESSAGES = "SELECT content FROM message WHERE key = ? ORDER BY place"
_FOUND = "SELECT name, via, tool FROM discovery WHERE key = ? ORDER BY place"
_ADD_FOUND = """
INSERT INTO discovery (key, place, name, via, tool)
SELECT ?1, (SELECT coalesce(max(place) + 1, 0) FROM discovery WHERE key = ?1), ?2, ?3, ?4 WHERE 1
ON CONFLICT (key, name) DO
"""
_REFRESH = "UPDATE SET tool = excluded.tool WHERE tool IS NOT excluded.tool"
_TOUCH = "INSERT INTO used VALUES (?1, ?2, 0) ON CONFLICT (key) DO UPDATE SET at = ?2"
_SET_REVISION = """
INSERT INTO used VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET at = ?2, revision = ?3
"""
_EVIDENCE = """
SELECT tool, words, at, strength, source, conversation, first, definition, vector FROM evidence
"""
_COUNT_EVIDENCE = "UPDATE revision SET number = number + 1"
_DELETE_EVIDENCE = "DELETE FROM evidence WHERE tool = ? AND words = ? AND source = ?"
_T = TypeVar("_T")


class SQLiteStore(UnbrokenSections, StoreCore):
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
        super().__init__()
        self.path = Path(path)
        self._file = SQLiteFile(self.path, patience_s=patience_s, synchronous=synchronous)
        self._clock = clock
        # Locks that this store has taken: a holder for each conversation.
        self._locks: dict[ConversationKey, str] = {}
        self._pruning = Pruning(self._file, keep_days, keep_conversations, clock)

    async def aclose(self) -> None:
        """Close the file after all started work; the store cannot be used again."""
        for key, holder in tuple(self._locks.items()):
            with suppress(StoreError):  # the lease ends by itself
                await self.unlock_turn(key, holder=holder)
        await self._file.aclose()

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and its grants, if it exists.

        In a file over 32 MB, traces may be left for a minute; see `forget_conversations`.
        """
        await self._forget_in_file(key, at_once=False)

    async def forget_conversations(self, key: ConversationKey | None = None) -> int:
        """Erase one conversation, or all; return the number of conversations.

        No byte of them is left in the file and its write-ahead log. That rewrites the file,
        which takes about a second for 100 MB.
        """
        return await self._forget_in_file(key, at_once=True)

    async def _forget_in_file(self, key: ConversationKey | None, *, at_once: bool) -> int:
        def erase(connection: sqlite3.Connection) -> tuple[int, bool]:
            before = connection.total_changes
            erased = erase_conversations(connection, key)
            erase_grants_of(connection, key)
            return erased, connection.total_changes > before

        erased, has_changed = await self._file.write(erase, is_durable=True)
        if has_changed or at_once or self._file.has_traces:
            await self._file.leave_no_traces(at_once=at_once)
        return erased

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        erased = await super().forget_evidence(tool)
        await self._file.leave_no_traces(at_once=True)
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
        erased = await super().erase(selection, export=export)
        await self._file.leave_no_traces(at_once=True)
        return erased

    async def lock_turn(self, key: ConversationKey, *, holder: str, lease_s: float) -> bool:
        """Take or renew the lock of a conversation's turns; return False if another has it.

        The lock of a process that was killed ends at once on Linux, and elsewhere with its
        lease.
        """
        # Most tries of a turn that waits are refused, and must not keep others from writing.
        if await self._file.read(lambda connection: is_locked(connection, key, holder)):
            return False
        # The end of the machine ends its locks.
        is_taken = await self._file.write(
            lambda connection: take_lock(connection, key, holder, lease_s), is_durable=False
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

    async def _section(self, work: Callable[[], Coroutine[Any, Any, _T]], access: Access) -> _T:
        """Run primitives in one transaction, in the store's thread."""

        def run(connection: sqlite3.Connection) -> _T:
            self._connection = connection
            return result_of(work())

        if access == "read":
            return await self._file.read(run)
        return await self._file.write(run, is_durable=True if access == "durable" else None)

    async def _revision(self, key: ConversationKey) -> int | None:
        self._pruning.used(key)
        return self._revision_of(key)

    def _revision_of(self, key: ConversationKey) -> int | None:
        # A conversation that was never saved may have discoveries, with the revision 0.
        return self._first("SELECT revision FROM used WHERE key = ?", key) or None

    async def _read(self, key: ConversationKey) -> StoredConversation | None:
        self._pruning.used(key)
        row = self._rows("SELECT record FROM conversation WHERE key = ?", key)
        if not row:
            return None
        return StoredConversation(
            revision=self._revision_of(key),
            record=b"" if row[0][0] is None else row[0][0],
            messages=[content for (content,) in self._rows(_MESSAGES, key)],
            found=self._find(key),
        )

    async def _write(self, key: ConversationKey, change: Change) -> Written:
        revision = self._revision_of(key)
        if change.expected not in ("any", revision):
            return "differs"
        if change.base not in (None, revision):
            return "whole"
        self._write_found(key, change.found, _REFRESH)
        write = self._connection
        write.execute("DELETE FROM message WHERE key = ? AND place >= ?", (key, change.start))
        places = enumerate(change.messages, change.start)
        write.executemany(
            "INSERT INTO message VALUES (?, ?, ?)", [(key, place, text) for place, text in places]
        )
        write.execute("INSERT OR REPLACE INTO conversation VALUES (?, ?)", (key, change.record))
        write.execute(_SET_REVISION, (key, self._clock(), change.new))
        self._pruning.saved(key)
        return "saved"

    async def _add_found(
        self, key: ConversationKey, found: Sequence[FoundTool]
    ) -> Sequence[FoundTool]:
        self._write_found(key, found, "NOTHING")
        self._connection.execute(_TOUCH, (key, self._clock()))
        return self._find(key)

    def _write_found(self, key: ConversationKey, found: Iterable[FoundTool], known: str) -> None:
        self._connection.executemany(_ADD_FOUND + known, [(key, *entry) for entry in found])

    def _find(self, key: ConversationKey) -> list[FoundTool]:
        return [FoundTool(*row) for row in self._rows(_FOUND, key)]

    async def _set_aside(self, key: ConversationKey) -> None:
        content = self._export(key)
        content.pop("set_aside", None)
        self._connection.execute(
            "INSERT INTO set_aside VALUES (?, ?, ?)", (key, self._clock(), json.dumps(content))
        )
        erase_keys(self._connection, [(key,)])

    async def _list_keys(self, since: float | None) -> Iterable[ConversationKey]:
        rows = self._rows(_KEYS) if since is None else self._rows(_RECENT, since)
        return [_shown_key(key) for (key,) in rows]

    async def _load_mode(self, key: ConversationKey) -> str | None:
        mode = self._first("SELECT mode FROM permission_mode WHERE key = ?", key)
        return None if mode is None else str(mode)

    async def _save_mode(self, key: ConversationKey, mode: str) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO permission_mode VALUES (?, ?)", (key, mode)
        )

    async def _list_places(self) -> Sequence[ConversationKey]:
        return sorted(_shown_key(key) for (key,) in self._rows(_PLACES))

    async def _export_place(self, place: ConversationKey) -> tuple[object, dict[str, Any]]:
        content = self._export(place)
        mode = await self._load_mode(place)
        if mode:
            content["permission_mode"] = mode
        return None, {"key": place, **content} if content else {}

    def _export(self, key: ConversationKey) -> dict[str, Any]:
        """Return the stored data of a conversation as JSON values, also what cannot be read."""
        record = self._first("SELECT record FROM conversation WHERE key = ?", key)
        aside = self._rows("SELECT content FROM set_aside WHERE key = ?", key)
        parts = {
            "record": None if record is None else as_json(record),
            "history": [as_json(text) for (text,) in self._rows(_MESSAGES, key)],
            "discoveries": [as_json(entry.tool) for entry in self._find(key)],
            "set_aside": [as_json(text) for (text,) in aside],
        }
        return {name: part for name, part in parts.items() if part}

    async def _erase_place(self, place: ConversationKey, state: object) -> int:
        del state  # nobody else writes in this transaction
        return erase_conversations(self._connection, place)

    async def _erase_rest(self, selection: Selection) -> None:
        keys = selection.conversations
        for key in (None,) if keys is None else keys:
            erase_grants_of(self._connection, key)
        if keys is None:
            erase_conversations(self._connection, None)
        if selection.tools is None:
            self._connection.execute("DELETE FROM evidence")
        if selection.users is None:
            self._connection.execute("DELETE FROM permission_grant")

    async def _evidence_revision(self) -> int:
        return int(self._first("SELECT number FROM revision"))

    async def _evidence(self, tools: Sequence[str] | None, before: float) -> EvidenceRows:
        if tools is None:
            rows = self._rows(_EVIDENCE)
        else:
            rows = [
                row for tool in tools for row in self._rows(f"{_EVIDENCE} WHERE tool = ?", tool)
            ]
        last = self._first("SELECT max(at) FROM evidence WHERE at <= ?", before)
        return EvidenceRows(
            revision=await self._evidence_revision(),
            entries=readable([_evidence_of(*row) for row in rows]),
            total=self._first("SELECT count(*) FROM evidence"),
            last=last if isinstance(last, float) else None,
        )

    async def _replace_evidence(
        self, revision: object, before: Sequence[Evidence], after: Sequence[Evidence]
    ) -> bool:
        del revision  # nobody else writes in this transaction
        known, staying = {e.key: e for e in before}, {e.key: e for e in after}
        gone = [_evidence_key(entry) for key, entry in known.items() if key not in staying]
        self._connection.executemany(_DELETE_EVIDENCE, gone)
        self._connection.executemany(
            "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *_evidence_key(entry),
                    entry.conversation,
                    entry.at,
                    entry.strength,
                    entry.level,
                    entry.first,
                    entry.definition,
                    entry.vector,
                )
                for key, entry in staying.items()
                if known.get(key) != entry
            ],
        )
        self._connection.execute(_COUNT_EVIDENCE)
        return True

    async def _salt(self, new: bytes | None) -> bytes | None:
        salt = self._first("SELECT value FROM salt")
        if isinstance(salt, bytes) and MIN_SALT <= len(salt) <= MAX_SALT:
            return salt
        if new is not None:
            # Nobody has the sources of a damaged one any more.
            self._connection.execute("DELETE FROM salt")
            self._connection.execute("INSERT INTO salt VALUES (?)", (new,))
        return new

    async def _grant_revision(self) -> int:
        return int(self._first("SELECT number FROM grant_revision"))

    async def _grants(self) -> tuple[int, Sequence[str]]:
        rows = self._rows("SELECT entry FROM permission_grant ORDER BY place")
        return await self._grant_revision(), [text for (text,) in rows]

    async def _add_grants(self, grants: Mapping[str, Grant], source: str | None) -> bool:
        if source is not None:
            add = "INSERT OR IGNORE INTO grant_source VALUES (?)"
            if not self._connection.execute(add, (source,)).rowcount:
                return False
        self._connection.executemany(
            "INSERT OR IGNORE INTO permission_grant (entry, conversation) VALUES (?, ?)",
            [(text, grant.conversation) for text, grant in grants.items()],
        )
        self._connection.execute(COUNT_GRANTS)
        return True

    async def _erase_grants(self, revision: object, texts: Sequence[str | bytes]) -> bool:
        del revision  # nobody else writes in this transaction
        self._connection.executemany(
            "DELETE FROM permission_grant WHERE entry = ?", [(text,) for text in texts]
        )
        self._connection.execute(COUNT_GRANTS)
        return True

    def _rows(self, query: str, *values: object) -> list[Any]:
        # Fetched at once: an error in a row must not leave the query and its snapshot open.
        return self._connection.execute(query, values).fetchall()

    def _first(self, query: str, *values: object) -> Any:
        row = self._connection.execute(query, values).fetchone()
        return row[0] if row else None


def _evidence_of(tool: object, words: object, *rest: object) -> Evidence | None:
    return evidence_of_row((tool, words.split("\n") if isinstance(words, str) else None, *rest))


def _evidence_key(entry: Evidence) -> tuple[str, str, str]:
    return entry.tool, "\n".join(entry.words), entry.source


def _shown_key(key: object) -> ConversationKey:
    # A key that another program wrote may be any SQLite value.
    return key if isinstance(key, str) else repr(key)
