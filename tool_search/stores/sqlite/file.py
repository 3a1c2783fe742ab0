"""A store's SQLite file: opened on demand, changed in transactions by one thread."""

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
"""The time when a commit reaches the disk: at once, at the next checkpoint, or whenever the
operating system writes it. The end of the process loses nothing with any of them."""

_SMALL_BYTES = 32_000_000
_SWEEP_EVERY_S = 60.0
_VERSION = 7
_APPLICATION = int.from_bytes(b"tool", "big")
# Version 1 had the statements up to `revision`, and histories inside the records.
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
# Evidence of version 3 has no source.
_SCHEMA_4 = """
CREATE TABLE evidence_4 (
    tool TEXT NOT NULL, words TEXT NOT NULL, source TEXT NOT NULL, conversation TEXT NOT NULL,
    at REAL NOT NULL, strength REAL NOT NULL, level REAL NOT NULL,
    PRIMARY KEY (tool, words, source)
) WITHOUT ROWID;
INSERT INTO evidence_4 SELECT tool, words, '', '', at, strength, level FROM evidence;
DROP TABLE evidence;
ALTER TABLE evidence_4 RENAME TO evidence;
CREATE INDEX evidence_by_level ON evidence (level);
CREATE TABLE salt (value BLOB NOT NULL)
"""
_SCHEMA_5 = """
CREATE TABLE turn_lock (
    key TEXT PRIMARY KEY, holder TEXT NOT NULL, lease_s REAL NOT NULL, ends REAL NOT NULL,
    process TEXT NOT NULL
) WITHOUT ROWID
"""
_SCHEMA_6 = """
ALTER TABLE evidence ADD COLUMN first REAL NOT NULL DEFAULT 0.0;
ALTER TABLE evidence ADD COLUMN definition TEXT NOT NULL DEFAULT ''
"""
_SCHEMA_7 = "ALTER TABLE evidence ADD COLUMN vector TEXT NOT NULL DEFAULT ''"
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class SQLiteFile:
    """A file that processes may share, created on demand and readable by its owner alone.

    Every method raises StoreError if the file is not a store, cannot be read or written, or
    stays locked by another process for longer than `patience_s`. The next call tries again.

    Args:
        path: The file.
        patience_s: Seconds to wait for another process.
        synchronous: The time when a commit reaches the disk.

    Attributes:
        has_traces: True if the file may still contain erased data.
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
        self._is_closed = False

    async def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run the work in the store's thread, on one snapshot of the file."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._transaction, "BEGIN", work)

    async def write(
        self, work: Callable[[sqlite3.Connection], _T], *, is_durable: bool | None = None
    ) -> _T:
        """Run the work while no other process writes.

        Args:
            work: Changes the file.
            is_durable: True waits for the disk with any setting, False with none; None: as set.
        """
        loop = asyncio.get_running_loop()
        level = self._synchronous
        if is_durable is not None:
            level = "full" if is_durable else "normal"
        result = await loop.run_in_executor(
            self._worker, self._transaction, "BEGIN IMMEDIATE", work, level
        )
        if self.has_traces:
            self._worker.submit(self._sweep_if_due)
        return result

    def submit(self, work: Callable[[sqlite3.Connection], bool]) -> None:
        """Run the work later, while no other process writes; log a failure.

        Args:
            work: Returns True if it erased something.
        """
        self._worker.submit(self._in_background, work)

    def _in_background(self, work: Callable[[sqlite3.Connection], bool]) -> None:
        try:
            if self._transaction("BEGIN IMMEDIATE", work):
                self._empty_log()
        except StoreError as exc:
            _log.warning("store_unavailable: conversations beyond the bounds stay for now: %s", exc)

    async def leave_no_traces(self, *, at_once: bool) -> None:
        """Rewrite the file without erased data, and empty its write-ahead log.

        Args:
            at_once: True rewrites a large file too, which takes about a second for 100 MB;
                False does that later, at most once a minute.

        Raises:
            StoreError: Another process still reads the erased data, or the disk is full.
        """
        # With `secure_delete` SQLite overwrites deleted rows, but not the copies that rows
        # leave when a page is split (measured); only VACUUM does.
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
            with self._translate_errors():
                self._connect().execute("VACUUM")
        except StoreError as exc:
            raise StoreError(
                f"erased, but traces may be left in the file: {exc}; erase again",
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
                _log.warning("store_unavailable: traces of erased data are left: %s", exc)

    def _empty_log(self) -> None:
        with self._translate_errors():
            # Waits for readers. If it reports busy, it has moved everything that it could.
            (is_busy, *_) = self._connect().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreError(
                f"erased, but {self.path}-wal may have traces as long as another process reads "
                "the store; end that process, or erase again",
                fault="locked",
            )

    async def aclose(self) -> None:
        """Close the file after all started work; it cannot be used again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._next_sweep = 0.0
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._worker, self._sweep_if_due)
        await loop.run_in_executor(self._worker, self._close)
        self._worker.shutdown(wait=False)

    def _transaction(
        self, begin: str, work: Callable[[sqlite3.Connection], _T], level: Synchronous | None = None
    ) -> _T:
        with self._translate_errors():
            connection = self._connect()
            if level is not None:
                # Before the transaction: SQLite ignores the level inside one.
                connection.execute(f"PRAGMA synchronous = {level}")
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # Also after a failed commit, or else every later transaction would fail.
                if connection.in_transaction:
                    connection.rollback()
                raise
            return result

    def _connect(self) -> sqlite3.Connection:
        """Return the connection; a new one if the file was moved or removed."""
        if self._connection is not None and self._identity != _identity(self.path):
            self._close()
        return self._connection or self._open()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Conversations are private: the mode is set here, not by the umask.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=self._patience_s, isolation_level=None)
        # Another program may have written invalid UTF-8; the reader of the value checks it.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            if _read_marks(connection) != (_APPLICATION, _VERSION):
                self._create_tables(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        self._connection, self._identity = connection, _identity(self.path)
        return connection

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """Create or upgrade the tables; another process may have done so meanwhile."""
        connection.execute("BEGIN IMMEDIATE")
        application, version = _read_marks(connection)
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise StoreError(
                f"{self.path} is a database of another program; name another store.path",
                fault="foreign",
            )
        if version > _VERSION:
            raise StoreError(
                f"the store {self.path} was written by a newer version of this library: its "
                f"format is {version}, this version reads {_VERSION}; update the library, or "
                "name another store.path",
                fault="newer",
            )
        later = (_SCHEMA_4, _SCHEMA_5, _SCHEMA_6, _SCHEMA_7)
        for since, schema in ((3, _SCHEMA), *enumerate(later, 4)):
            for statement in schema.split(";") if version < since else ():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as exc:
            raise StoreError(
                f"the store {self.path} cannot write a text with an unpaired surrogate: "
                f"{exc.object!r}"
            ) from exc
        except (sqlite3.Error, OSError) as exc:
            fault, advice = fault_of(exc, self.path)
            raise StoreError(f"the store {self.path} {advice}", fault=fault) from exc


def _identity(path: Path) -> tuple[int, int]:
    """Return the device and inode of a file, or zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


def _read_marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the version of a file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version
