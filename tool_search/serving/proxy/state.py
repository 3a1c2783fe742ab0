"""The hidden exchanges of a proxy in a SQLite file, which its workers share.

Lost state costs one cache miss and a search, so nothing here raises: a file that cannot be
read or written is logged, and requests go on without it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from tool_search.adapters.hosts.chain import ExchangeStore, MemoryExchanges
from tool_search.serving.proxy.settings import StateSettings
from tool_search.stores.base import EvidenceStore
from tool_search.stores.memory import MemoryStore
from tool_search.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteExchanges", "open_evidence", "open_state"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS exchange (
    digest TEXT PRIMARY KEY, content TEXT NOT NULL, used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS exchange_by_use ON exchange (used);
CREATE TABLE IF NOT EXISTS installation (secret BLOB NOT NULL)
"""
_VERSION = 1
_PATIENCE_S = 2.0
# A file that has failed is left alone for so long: else each request would wait for it.
_PAUSE_S = 5.0
_SECRET_BYTES = 32
# SQLite takes at most 32,766 values in a statement; histories are shorter.
_MAX_ASKED = 20_000
# A use is written again after this long: most requests then only read.
_USED_AGAIN_S = 3_600.0
_PRUNE_EVERY = 200
_WARN_EVERY_S = 60.0
_DAY_S = 86_400.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def open_state(settings: StateSettings) -> tuple[ExchangeStore, bytes]:
    """Return the store of a proxy's exchanges, and the secret of the installation.

    Without a file both end with the process.
    """
    keep_s = settings.keep_days * _DAY_S
    if settings.path is None:
        kept = MemoryExchanges(max_exchanges=settings.max_exchanges, max_age_s=keep_s)
        return kept, secrets.token_bytes(_SECRET_BYTES)
    path = Path(settings.path).expanduser()
    store = SQLiteExchanges(path, max_exchanges=settings.max_exchanges, keep_s=keep_s)
    return store, store.secret()


def open_evidence(settings: StateSettings) -> EvidenceStore:
    """Return the store of what searches learn: a file next to that of the exchanges."""
    if settings.path is None:
        return MemoryStore()
    path = Path(settings.path).expanduser()
    return SQLiteStore(path.with_name(f"{path.stem}.learned{path.suffix}"))


class SQLiteExchanges:
    """Exchanges in a file that only its owner can read; several processes may share it.

    Args:
        path: The file, made on demand.
        max_exchanges: The number of exchanges; the least recently used are dropped.
        keep_s: Seconds after its last use that an exchange is kept.
        clock: Returns seconds since the epoch.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_exchanges: int,
        keep_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._max_exchanges = max_exchanges
        self._keep_s = keep_s
        self._clock = clock
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._place: tuple[int, int] | None = None
        self._writes = 0
        self._warned = self._failed = float("-inf")

    def secret(self) -> bytes:
        """Return the secret of the installation, made once; a new one if the file fails."""
        return self._run(_secret) or secrets.token_bytes(_SECRET_BYTES)

    async def load(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the JSON of those exchanges that are known, by digest."""
        return await asyncio.to_thread(self._run, lambda file: self._load(file, digests)) or {}

    async def keep(self, digest: str, exchange: str) -> None:
        """Keep the JSON of an exchange, in place of an earlier one of its digest."""
        await asyncio.to_thread(self._run, lambda file: self._keep(file, digest, exchange))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._leave()

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _load(self, file: sqlite3.Connection, digests: Sequence[str]) -> dict[str, str]:
        asked = digests[-_MAX_ASKED:]
        marks = ",".join("?" * len(asked))
        now = self._clock()
        rows = file.execute(
            f"SELECT digest, content, used FROM exchange WHERE digest IN ({marks}) AND used > ?",  # noqa: S608  # question marks alone
            (*asked, now - self._keep_s),
        ).fetchall()
        old = [(now, digest) for digest, _, used in rows if now - used > _USED_AGAIN_S]
        if old:
            file.executemany("UPDATE exchange SET used = ? WHERE digest = ?", old)
        return {digest: content for digest, content, _ in rows}

    def _keep(self, file: sqlite3.Connection, digest: str, exchange: str) -> None:
        now = self._clock()
        file.execute("INSERT OR REPLACE INTO exchange VALUES (?, ?, ?)", (digest, exchange, now))
        self._writes += 1
        if self._writes % _PRUNE_EVERY == 1:
            file.execute("DELETE FROM exchange WHERE used < ?", (now - self._keep_s,))
            file.execute(
                "DELETE FROM exchange WHERE digest IN (SELECT digest FROM exchange "
                "ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (self._max_exchanges,),
            )

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Run work in a transaction; log a failure of the file, and return None."""
        with self._lock:
            if time.monotonic() - self._failed < _PAUSE_S:
                return None
            try:
                with self._connect() as file:
                    return work(file)
            except (OSError, sqlite3.Error) as exc:
                self._warn(exc)
                self._leave()
                self._failed = time.monotonic()
                return None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None and self._place != _place_of(self._path):
            self._leave()  # whoever erases the file erases what it had
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Made before SQLite makes it: nobody else may read it, not even for a moment.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            file = sqlite3.connect(self._path, timeout=_PATIENCE_S, check_same_thread=False)
            # Kept at once: what fails from here on, closes it.
            self._connection, self._place = file, _place_of(self._path)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.executescript(_SCHEMA)
            file.execute(f"PRAGMA user_version = {_VERSION}")
        return self._connection

    def _warn(self, problem: Exception) -> None:
        now = time.monotonic()
        if now - self._warned >= _WARN_EVERY_S:
            self._warned = now
            _log.warning(
                "state_unavailable: %s: %s; searches are not remembered meanwhile",
                self._path,
                problem,
            )


def _place_of(path: Path) -> tuple[int, int] | None:
    """Return the file that a path names; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _secret(file: sqlite3.Connection) -> bytes:
    file.execute(
        "INSERT INTO installation SELECT ? WHERE NOT EXISTS (SELECT 1 FROM installation)",
        (secrets.token_bytes(_SECRET_BYTES),),
    )
    (secret,) = file.execute("SELECT secret FROM installation").fetchone()
    return bytes(secret)
