"""Vectors on disk, so that each tool is embedded once."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

__all__ = ["SqliteVectorCache", "VectorCache", "default_cache_path"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_WAIT_S = 5.0
_BATCH = 500
_MAX_ROWS = 200_000
_CHECK_BYTES = 8
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, content BLOB NOT NULL, "
    "checksum BLOB NOT NULL)"
)
# Row numbers follow the order of insertion, so the lowest ones are the oldest.
_TRIM = (
    "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - :most "
    "AND (SELECT count(*) FROM vectors) > :most"
)


class VectorCache(Protocol):
    """Vectors as bytes, by a hash of the embedder and the text.

    Never raises: an entry that cannot be read is missing, one that cannot be written is lost.
    """

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the entries of these keys; missing ones are left out."""
        ...

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store the entries."""
        ...


class SqliteVectorCache:
    """A `VectorCache` in one SQLite file, which processes may share.

    A damaged file is moved aside, to the same name and `.damaged`, and begun anew; a damaged
    entry counts as missing. Above 200,000 entries the oldest are dropped.

    Args:
        path: The file; it and its folder are created when they are needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the entries of these keys; see `VectorCache.get`."""
        if not self._path.exists():
            return {}
        try:
            return dict(self._read(keys))
        except (sqlite3.Error, OSError) as exc:
            self._report("read", exc)
            return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store the entries; see `VectorCache.put`."""
        rows = [(key, content, _checksum(key, content)) for key, content in entries.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as database, database:
                database.execute(_SCHEMA)
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
                database.execute(_TRIM, {"most": _MAX_ROWS})
        except (sqlite3.Error, OSError) as exc:
            self._report("written", exc)

    def _read(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        with closing(self._open()) as database:
            database.execute(_SCHEMA)
            for batch in _batches(keys, _BATCH):
                marks = ",".join("?" * len(batch))
                rows = database.execute(
                    f"SELECT key, content, checksum FROM vectors WHERE key IN ({marks})",  # noqa: S608 - question marks alone
                    batch,
                )
                for key, content, checksum in rows:
                    if isinstance(content, bytes) and checksum == _checksum(key, content):
                        yield key, content

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_WAIT_S)

    def _report(self, done: str, exc: Exception) -> None:
        _log.warning("the vector cache %s cannot be %s: %s", self._path, done, exc)
        # Locked, full and read-only files are operational errors, not damage.
        if isinstance(exc, sqlite3.DatabaseError) and not isinstance(exc, sqlite3.OperationalError):
            try:
                self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
            except OSError as failure:
                _log.warning("the vector cache %s cannot be moved: %s", self._path, failure)


def default_cache_path() -> Path:
    """Return the file in the user's cache folder.

    The folder is `$XDG_CACHE_HOME`, or else `~/.cache`.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    # Source: the XDG Base Directory Specification: a relative path is to be ignored.
    folder = Path(home) if os.path.isabs(home) else Path("~/.cache").expanduser()  # noqa: PTH117 - "" too
    return folder / "tool-search" / "vectors.sqlite"


def _checksum(key: str, content: bytes) -> bytes:
    return blake2b(content, key=key.encode()[:64], digest_size=_CHECK_BYTES).digest()


def _batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
