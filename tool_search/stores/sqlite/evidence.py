"""Evidence in a store's SQLite file; each function runs in a transaction of its caller."""

from __future__ import annotations

import logging
import math
import secrets
import sqlite3
from collections.abc import Iterable, Sequence

from tool_search.search.learned import (
    DAY_S,
    MAX_EVIDENCE,
    Evidence,
    forgetting_time,
    merge_evidence,
    select_evidence,
)

__all__ = [
    "add_evidence",
    "erase_entries",
    "erase_evidence",
    "evidence_revision",
    "load_evidence",
    "load_salt",
    "write_salt",
]

_COUNT = "UPDATE revision SET number = number + 1"
_INSERT = "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT tool, words, source, conversation, at, strength FROM evidence"
_DELETE = "DELETE FROM evidence WHERE tool = ? AND words = ? AND source = ?"
_log = logging.getLogger(__name__)
# The source with the most entries loses its weakest.
_ERASE_WEAKEST = """
DELETE FROM evidence WHERE (tool, words, source) IN
(SELECT tool, words, source FROM evidence ORDER BY
    row_number() OVER (PARTITION BY source ORDER BY level DESC, tool, words) DESC,
    level, tool DESC, words DESC LIMIT ?)
"""
# The last second of the year 9999, which dates end with.
_MAX_TIME = 253_402_300_799.0
_MIN_SALT, _MAX_SALT = 16, 64


def evidence_revision(connection: sqlite3.Connection) -> int:
    """Return the number of changes of the evidence."""
    row: tuple[int] = connection.execute("SELECT number FROM revision").fetchone()
    return row[0]


def load_evidence(connection: sqlite3.Connection, tool: str | None = None) -> list[Evidence]:
    """Return the evidence for one tool, or all of it; skip rows that cannot be read."""
    if tool is None:
        rows = connection.execute(_SELECT).fetchall()
    else:
        rows = connection.execute(f"{_SELECT} WHERE tool = ?", (tool,)).fetchall()
    entries = [_entry(row) for row in rows]
    if None in entries:
        _log.warning("stored evidence cannot be read; it is skipped")
    return [entry for entry in entries if entry is not None]


def _entry(row: tuple[object, ...]) -> Evidence | None:
    tool, words, source, conversation, at, strength = row
    if not (isinstance(tool, str) and isinstance(words, str)):
        return None
    if not (isinstance(source, str) and isinstance(conversation, str)):
        return None
    if not (isinstance(at, float) and isinstance(strength, float)):
        return None
    if not (0 <= at <= _MAX_TIME and 0 < strength < math.inf):
        return None
    return Evidence(
        tool=tool,
        words=tuple(words.split("\n")),
        at=at,
        strength=strength,
        source=source,
        conversation=conversation,
    )


def load_salt(connection: sqlite3.Connection) -> bytes | None:
    """Return the salt of the hashes in the evidence, or None if it is damaged."""
    row = connection.execute("SELECT value FROM salt").fetchone()
    salt = row[0] if row else None
    return salt if isinstance(salt, bytes) and _MIN_SALT <= len(salt) <= _MAX_SALT else None


def write_salt(connection: sqlite3.Connection) -> bytes:
    """Return the salt; replace a damaged one, whose sources nobody is any more."""
    salt = load_salt(connection)
    if salt is None:
        salt = secrets.token_bytes(32)
        connection.execute("DELETE FROM salt")
        connection.execute("INSERT INTO salt VALUES (?)", (salt,))
    return salt


def add_evidence(connection: sqlite3.Connection, entries: Sequence[Evidence]) -> None:
    """Add successes to the known evidence, within its bounds."""
    now = max(entry.at for entry in entries)
    times = connection.execute("SELECT max(at) FROM evidence WHERE at <= ?", (now - DAY_S,))
    oldest = forgetting_time((at for (at,) in times if isinstance(at, float)), now)
    by_tool: dict[str, list[Evidence]] = {}
    for entry in entries:
        by_tool.setdefault(entry.tool, []).append(entry)
    for tool, new in sorted(by_tool.items()):
        _add_for_tool(connection, load_evidence(connection, tool), new, oldest)
    (count,) = connection.execute("SELECT count(*) FROM evidence").fetchone()
    if count > MAX_EVIDENCE:
        connection.execute(_ERASE_WEAKEST, (count - MAX_EVIDENCE,))
    connection.execute(_COUNT)


def erase_entries(connection: sqlite3.Connection, entries: Iterable[Evidence]) -> None:
    """Erase these entries."""
    connection.executemany(_DELETE, [_key(entry) for entry in entries])
    connection.execute(_COUNT)


def _key(entry: Evidence) -> tuple[str, str, str]:
    return entry.tool, "\n".join(entry.words), entry.source


def erase_evidence(connection: sqlite3.Connection, tool: str | None) -> int:
    """Erase the evidence for one tool, or all of it; return the number of entries."""
    erase = "DELETE FROM evidence WHERE :tool IS NULL OR tool = :tool"
    erased = connection.execute(erase, {"tool": tool}).rowcount
    connection.execute(_COUNT)
    return erased


def _add_for_tool(
    connection: sqlite3.Connection,
    known: Sequence[Evidence],
    new: Sequence[Evidence],
    oldest: float,
) -> None:
    before = {entry.key: entry for entry in known}
    after = merge_evidence(known, new)
    staying = {entry.key for entry in select_evidence(after.values(), oldest)}
    leaving = [_key(entry) for entry in known if entry.key not in staying]
    connection.executemany(_DELETE, leaving)
    connection.executemany(
        _INSERT,
        [
            (*_key(entry), entry.conversation, entry.at, entry.strength, entry.level)
            for key, entry in after.items()
            if key in staying and before.get(key) != entry
        ],
    )
