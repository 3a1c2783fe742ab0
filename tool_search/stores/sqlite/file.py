"""A store's SQLite file: opened when needed, changed in transactions, by one thread."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from tool_search.errors import StoreError
from tool_search.stores.sqlite.faults import fault_of

__all__ = ["SQLiteFile", "Synchronous"]

Synchronous = Literal["full", "normal", "off"]
"""When a commit is on the disk and not only with the operating system: at once, at the next
checkpoint, or whenever the system likes. The end of the process loses nothing in any of them."""

_SMALL_BYTES = 32_000_000
_SWEEP_EVERY_S = 60.0
_VERSION = 3
_APPLICATION = int.from_bytes(b"tool", "big")
# Version 1 had the statements up to the revision, and histories in their records.
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
INSERT INTO revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM revision);
CREATE TABLE IF NOT EXISTS permission_grant (
    place INTEGER PRIMARY KEY, entry TEXT NOT NULL UNIQUE, conversation TEXT
);
CREATE INDEX IF NOT EXISTS grant_by_conversation ON permission_grant (conversation);
CREATE TABLE IF NOT EXISTS grant_source (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS grant_revision (number INTEGER NOT NULL);
INSERT INTO grant_revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM grant_revision);
CREATE TABLE IF NOT EXISTS permission_mode (
    key TEXT PRIMARY KEY, mode TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS used (
    key TEXT PRIMARY KEY, at REAL NOT NULL, revision INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS used_by_time ON used (at);
INSERT OR IGNORE INTO used
    SELECT key, strftime('%s'), key IN (SELECT key FROM conversation) FROM
    (SELECT key FROM conversation UNION SELECT key FROM discovery);
CREATE TABLE IF NOT EXISTS message (
    key TEXT NOT NULL, place INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (key, place)
);
DROP TABLE IF EXISTS set_aside;
CREATE TABLE set_aside (key TEXT NOT NULL, at REAL NOT NULL, content TEXT NOT NULL);
CREATE INDEX set_aside_by_key ON set_aside (key)
"""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class SQLiteFile:
    """A file that processes may share; made when it is first needed, for its owner alone.

    Every method raises StoreError where the file is no such store, cannot be read or
    written, or stays locked by another process for longer than `patience_s`. What was
    wrong may pass: the next call tries again.

    Args:
        path: The file.
        patience_s: Seconds to wait for another process.
        synchronous: When a commit is on the disk.

    Attributes:
        has_traces: True if the file may still have what was erased.
    """

    def __init__(self, path: Path, *, patience_s: float, synchronous: Synchronous) -> None:
        self.path = path
        self._patience_s = patience_s
        self._synchronous = synchronous
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tool-search-store")
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)
        self.has_traces = False
        self._next_sweep = 0.0

    async def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do the work in the store's thread, on one state of the file."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._transaction, "BEGIN", work)

    async def write(
        self, work: Callable[[sqlite3.Connection], _T], *, is_durable: bool = False
    ) -> _T:
        """Do the work while no other process writes.

        Args:
            work: What changes the file.
            is_durable: Wait until it is on the disk, whatever the setting.
        """
        loop = asyncio.get_running_loop()
        level: Synchronous = "full" if is_durable else self._synchronous
        result = await loop.run_in_executor(
            self._worker, self._transaction, "BEGIN IMMEDIATE", work, level
        )
        if self.has_traces:
            self._worker.submit(self._sweep_if_due)
        return result

    def submit(self, work: Callable[[sqlite3.Connection], bool]) -> None:
        """Do the work some time later, while no other process writes.

        Args:
            work: True if it erased something; the log says if it failed.
        """
        self._worker.submit(self._in_background, work)

    def _in_background(self, work: Callable[[sqlite3.Connection], bool]) -> None:
        try:
            if self._transaction("BEGIN IMMEDIATE", work):
                self._empty_log()
        except StoreError as exc:
            _log.warning("store_unavailable: what is kept for too long stays for now: %s", exc)

    async def leave_no_traces(self, *, at_once: bool) -> None:
        """Rewrite the file without what was erased, and empty its write-ahead log.

        SQLite overwrites what it deletes, but not the copies that rows left where they
        were before a page was split (`secure_delete`, measured): only VACUUM does.

        Args:
            at_once: Also a large file, which takes about a second for 100 MB; else it is
                done some time later, at most once a minute.

        Raises:
            StoreError: Another process goes on reading what was erased, or the disk is full.
        """
        loop = asyncio.get_running_loop()
        self.has_traces = True
        if at_once or self._size() <= _SMALL_BYTES:
            await loop.run_in_executor(self._worker, self._sweep)
        else:
            await loop.run_in_executor(self._worker, self._empty_log)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _sweep(self) -> None:
        try:
            with self._named_errors():
                self._current().execute("VACUUM")
        except StoreError as exc:
            raise StoreError(
                f"erased, but traces of it may be left in the file: {exc}; erase once more",
                fault=exc.fault,
            ) from exc
        self._empty_log()
        self.has_traces = False

    def _sweep_if_due(self) -> None:
        now = time.monotonic()
        if self.has_traces and now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY_S
            try:
                self._sweep()
            except StoreError as exc:
                _log.warning("store_unavailable: traces of what was erased are left: %s", exc)

    def _empty_log(self) -> None:
        with self._named_errors():
            # Waits for readers; also where it says busy, all that could be moved was.
            (is_busy, *_) = self._current().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreError(
                f"erased, but {self.path}-wal may have traces of it as long as another process "
                "reads the store; end that process, or erase once more",
                fault="locked",
            )

    async def aclose(self) -> None:
        """Close the file, once what was begun is done; it is used no more."""
        self._next_sweep = 0.0
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._worker, self._sweep_if_due)
        await loop.run_in_executor(self._worker, self._close)
        self._worker.shutdown(wait=False)

    def _transaction(
        self, begin: str, work: Callable[[sqlite3.Connection], _T], level: Synchronous | None = None
    ) -> _T:
        with self._named_errors():
            connection = self._current()
            if level is not None:
                # Not in a transaction: there SQLite takes no other level.
                connection.execute(f"PRAGMA synchronous = {level}")
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # Also where the commit failed, or else every later transaction would.
                if connection.in_transaction:
                    connection.rollback()
                raise
            return result

    def _current(self) -> sqlite3.Connection:
        """Return the connection; a new one where the file was moved or removed since."""
        if self._connection is not None and self._identity != _identity(self.path):
            self._close()
        return self._connection or self._opened()

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Conversations are nobody else's: the file is not left to the umask.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=self._patience_s, isolation_level=None)
        # Text of somebody else's may be none; what it means is found out where it is read.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            if _marks(connection) != (_APPLICATION, _VERSION):
                self._make_tables(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        self._connection, self._identity = connection, _identity(self.path)
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make an empty file a store, or an older store a current one.

        Another process may have done so meanwhile.
        """
        connection.execute("BEGIN IMMEDIATE")
        application, version = _marks(connection)
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise StoreError(
                f"{self.path} is a database, and no store of this library; name another store.path",
                fault="foreign",
            )
        if version > _VERSION:
            raise StoreError(
                f"the store {self.path} is of a newer version of this library: it has "
                f"version {version}, known is {_VERSION}; update, or name another store.path",
                fault="newer",
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
        except UnicodeEncodeError as exc:
            raise StoreError(
                f"the store {self.path} takes no text with half a character: {exc.object!r}"
            ) from exc
        except (sqlite3.Error, OSError) as exc:
            fault, advice = fault_of(exc, self.path)
            raise StoreError(f"the store {self.path} {advice}", fault=fault) from exc


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another of its name; zeros where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return whose file it is, and of which version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version
