"""Conversations and evidence in one SQLite file, for any number of processes."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

from tool_search.catalog import Tool
from tool_search.discovery import Discovery, DiscoveryState
from tool_search.errors import StoreError
from tool_search.record import ConversationRecord
from tool_search.schema import compact_json
from tool_search.search.learned import MOST_EVIDENCE, Evidence, kept, merged
from tool_search.stores.base import ConversationKey, KeptEvidence

__all__ = ["SQLiteStore"]

_VERSION = 1
_APPLICATION = int.from_bytes(b"tool", "big")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversation (key TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS discovery (
    key TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, tool TEXT NOT NULL,
    via TEXT NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evidence (
    tool TEXT NOT NULL, words TEXT NOT NULL, at REAL NOT NULL, strength REAL NOT NULL,
    level REAL NOT NULL, PRIMARY KEY (tool, words)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS evidence_by_level ON evidence (level);
CREATE TABLE IF NOT EXISTS revision (number INTEGER NOT NULL);
INSERT INTO revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM revision)
"""
_CONVERSATIONS = "SELECT key FROM conversation UNION SELECT key FROM discovery"
_ADD_EVIDENCE = "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?)"
_EVIDENCE = "SELECT tool, words, at, strength FROM evidence"
_FORGET_EVIDENCE = "DELETE FROM evidence WHERE :tool IS NULL OR tool = :tool"
_COUNT_REVISION = "UPDATE revision SET number = number + 1"
_T = TypeVar("_T")


class SQLiteStore:
    """Keeps conversations and evidence in a file that processes may share.

    The file is made when it is first needed, readable by its owner alone. All work is
    done in one thread of the store's own. Close it when it is needed no more.

    Every method raises StoreError where the file is no such store, cannot be written,
    or stays locked by another process for longer than `patience_s`.

    Args:
        path: The file.
        patience_s: Seconds to wait for another process.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience_s: float = 5.0) -> None:
        self.path = Path(path)
        self._patience_s = patience_s
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tool-search-store")
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        """Opens the file, so that what is wrong with it shows at once."""
        try:
            await self._read(_revision)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the file, once what was begun is done; the store is used no more."""
        await asyncio.get_running_loop().run_in_executor(self._worker, self._close)
        self._worker.shutdown(wait=False)

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """The conversation as it was last saved, with all discoveries."""

        def read(connection: sqlite3.Connection) -> ConversationRecord | None:
            found = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,))
            row = found.fetchone()
            if row is None:
                return None
            record = ConversationRecord.from_dict(json.loads(row[0]))
            return replace(record, discoveries=_discoveries(connection, key).entries)

        return await self._read(read)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Adds discoveries; gives all of the conversation in their order."""

        def append(connection: sqlite3.Connection) -> tuple[Discovery, ...]:
            state = _discoveries(connection, key)
            before = state.entries
            for entry in entries:
                state.commit((entry.tool,), via=entry.via)
            _write_discoveries(connection, key, before, state)
            return state.entries

        return await self._write(append)

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keeps the conversation."""
        content = compact_json({**record.to_dict(), "discoveries": []})

        def write(connection: sqlite3.Connection) -> None:
            state = _discoveries(connection, key)
            before = state.entries
            for entry in record.discoveries:
                state.commit((entry.tool,), via=entry.via)
                state.refresh(entry.tool)
            _write_discoveries(connection, key, before, state)
            connection.execute("INSERT OR REPLACE INTO conversation VALUES (?, ?)", (key, content))

        await self._write(write)

    async def forget(self, key: ConversationKey) -> None:
        """Erases the conversation, if it is there."""
        await self._write(lambda connection: _erase_conversations(connection, key))

    async def forget_conversations(self, key: ConversationKey | None = None) -> int:
        """Erases one conversation, or all of them; gives how many that were."""
        return await self._write(lambda connection: _erase_conversations(connection, key))

    async def conversations(self) -> tuple[ConversationKey, ...]:
        """The conversations there are, sorted."""

        def read(connection: sqlite3.Connection) -> tuple[ConversationKey, ...]:
            return tuple(sorted(key for (key,) in connection.execute(_CONVERSATIONS)))

        return await self._read(read)

    async def evidence_revision(self) -> int:
        """How often the evidence has changed."""
        return await self._read(_revision)

    async def load_evidence(self) -> KeptEvidence:
        """All evidence."""

        def read(connection: sqlite3.Connection) -> KeptEvidence:
            return KeptEvidence(_revision(connection), tuple(_evidence(connection)))

        return await self._read(read)

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Adds successes."""

        def add(connection: sqlite3.Connection) -> None:
            tools = {entry.tool for entry in entries}
            for tool in sorted(tools):
                known = list(_evidence(connection, tool))
                new = [entry for entry in entries if entry.tool == tool]
                _write_evidence(connection, known, new)
            _forget_weakest(connection)
            connection.execute(_COUNT_REVISION)

        if entries:
            await self._write(add)

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erases the evidence for one tool, or all of it."""

        def erase(connection: sqlite3.Connection) -> int:
            erased = connection.execute(_FORGET_EVIDENCE, {"tool": tool}).rowcount
            connection.execute(_COUNT_REVISION)
            return erased

        return await self._write(erase)

    async def _read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Does the work in the store's thread, on one state of the file."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._transaction, "BEGIN", work)

    async def _write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """The same, while no other process writes."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._transaction, "BEGIN IMMEDIATE", work)

    def _transaction(self, begin: str, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._named_errors():
            connection = self._connection or self._opened()
            connection.execute(begin)
            try:
                result = work(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            return result

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Conversations are nobody else's: the file is not left to the umask.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=self._patience_s, isolation_level=None)
        try:
            if _marks(connection) != (_APPLICATION, _VERSION):
                self._make_tables(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Makes an empty file a store; another process may have done so meanwhile."""
        connection.execute("BEGIN IMMEDIATE")
        application, version = _marks(connection)
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise StoreError(
                f"{self.path} is a database, and no store of this library; name another store.path"
            )
        if version > _VERSION:
            raise StoreError(
                f"the store {self.path} is of a newer version of this library: it has "
                f"version {version}, known is {_VERSION}; update, or name another store.path"
            )
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            raise StoreError(f"the store {self.path} {_advice(exc)}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise StoreError(
                f"the store {self.path} holds something that is no conversation of this "
                f"version ({type(exc).__name__}: {exc}); erase it with `tool-search forget`"
            ) from exc


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose file it is, and of which version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _advice(error: Exception) -> str:
    """What is wrong with the file, and what to do."""
    if isinstance(error, sqlite3.OperationalError) and "lock" in str(error):
        return f"is locked by another process ({error}); end that process, or try again"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"is damaged or no store ({error}); move it away, or name another store.path"
    return f"cannot be used ({error}); make it writable, or name another store.path"


def _discoveries(connection: sqlite3.Connection, key: ConversationKey) -> DiscoveryState:
    rows = connection.execute(
        "SELECT tool, via FROM discovery WHERE key = ? ORDER BY place", (key,)
    )
    return DiscoveryState(
        Discovery(tool=Tool.from_dict(json.loads(tool)), via=via) for tool, via in rows
    )


def _write_discoveries(
    connection: sqlite3.Connection,
    key: ConversationKey,
    before: Sequence[Discovery],
    state: DiscoveryState,
) -> None:
    """Writes the discoveries that are new, or whose definition is."""
    connection.executemany(
        "INSERT OR REPLACE INTO discovery VALUES (?, ?, ?, ?, ?)",
        [
            (key, place, entry.name, compact_json(entry.tool.to_dict()), entry.via)
            for place, entry in enumerate(state)
            if place >= len(before) or before[place] != entry
        ],
    )


def _erase_conversations(connection: sqlite3.Connection, key: ConversationKey | None) -> int:
    known = connection.execute(_CONVERSATIONS).fetchall()
    erased = [row for row in known if key in (None, row[0])]
    connection.executemany("DELETE FROM conversation WHERE key = ?", erased)
    connection.executemany("DELETE FROM discovery WHERE key = ?", erased)
    return len(erased)


def _revision(connection: sqlite3.Connection) -> int:
    row: tuple[int] = connection.execute("SELECT number FROM revision").fetchone()
    return row[0]


def _evidence(connection: sqlite3.Connection, tool: str | None = None) -> Iterator[Evidence]:
    if tool is None:
        rows = connection.execute(_EVIDENCE)
    else:
        rows = connection.execute(f"{_EVIDENCE} WHERE tool = ?", (tool,))
    for name, words, at, strength in rows:
        yield Evidence(tool=name, words=tuple(words.split("\n")), at=at, strength=strength)


def _write_evidence(
    connection: sqlite3.Connection, known: Sequence[Evidence], new: Sequence[Evidence]
) -> None:
    """Adds the evidence for one tool to what is known of it, within its bounds."""
    before = {entry.key: entry for entry in known}
    after = merged(known, new)
    staying = {entry.key for entry in kept(after.values(), max(entry.at for entry in new))}
    connection.executemany(
        "DELETE FROM evidence WHERE tool = ? AND words = ?",
        [(entry.tool, "\n".join(entry.words)) for entry in known if entry.key not in staying],
    )
    connection.executemany(
        _ADD_EVIDENCE,
        [
            (entry.tool, "\n".join(entry.words), entry.at, entry.strength, entry.level)
            for key, entry in after.items()
            if key in staying and before.get(key) != entry
        ],
    )


def _forget_weakest(connection: sqlite3.Connection) -> None:
    (count,) = connection.execute("SELECT count(*) FROM evidence").fetchone()
    connection.execute(
        "DELETE FROM evidence WHERE (tool, words) IN "
        "(SELECT tool, words FROM evidence ORDER BY level, tool DESC, words DESC LIMIT ?)",
        (max(count - MOST_EVIDENCE, 0),),
    )
