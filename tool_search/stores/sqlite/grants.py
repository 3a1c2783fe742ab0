"""Grants and modes in a store's SQLite file; each function runs in a transaction of its caller.

A grant is stored as JSON; one with fields that this version does not know is skipped.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence

from tool_search.stores.base import ConversationKey, Grant

__all__ = [
    "add_grants",
    "erase_grants",
    "erase_grants_of_conversation",
    "grant_revision",
    "load_grants",
    "load_mode",
    "write_mode",
]

_SELECT = "SELECT entry FROM permission_grant ORDER BY place"
_COUNT = "UPDATE grant_revision SET number = number + 1"
_INSERT = "INSERT OR IGNORE INTO permission_grant (entry, conversation) VALUES (?, ?)"
_OF_CONVERSATION = """
DELETE FROM permission_grant
WHERE conversation IS NOT NULL AND (:key IS NULL OR conversation = :key)
"""
_MODES_OF_CONVERSATION = "DELETE FROM permission_mode WHERE :key IS NULL OR key = :key"
_log = logging.getLogger(__name__)


def grant_revision(connection: sqlite3.Connection) -> int:
    """Return the number of changes of the grants."""
    row: tuple[int] = connection.execute("SELECT number FROM grant_revision").fetchone()
    return row[0]


def load_grants(connection: sqlite3.Connection) -> tuple[Grant, ...]:
    """Return the grants that can be read, oldest first; skip the others."""
    grants = []
    for (entry,) in connection.execute(_SELECT).fetchall():
        try:
            grants.append(Grant.from_dict(json.loads(entry)))
        except (ValueError, TypeError, AttributeError, RecursionError) as exc:
            _log.error("a stored grant cannot be read; it is skipped: %s", exc)
    return tuple(grants)


def add_grants(connection: sqlite3.Connection, grants: Sequence[Grant], source: str | None) -> bool:
    """Add grants, from each source once; return True if they were added."""
    if source is not None:
        new = connection.execute("INSERT OR IGNORE INTO grant_source VALUES (?)", (source,))
        if not new.rowcount:
            return False
    connection.executemany(_INSERT, [(_entry(grant), grant.conversation) for grant in grants])
    connection.execute(_COUNT)
    return True


def erase_grants(connection: sqlite3.Connection, grants: Sequence[Grant]) -> int:
    """Erase grants for all definitions; return the number of erased grants."""
    gone = [one for one in load_grants(connection) if any(each.revokes(one) for each in grants)]
    erase = "DELETE FROM permission_grant WHERE entry = ?"
    connection.executemany(erase, [(_entry(grant),) for grant in gone])
    connection.execute(_COUNT)
    return len(gone)


def erase_grants_of_conversation(
    connection: sqlite3.Connection, key: ConversationKey | None
) -> None:
    """Erase the grants and the mode of one conversation, or of all."""
    connection.execute(_MODES_OF_CONVERSATION, {"key": key})
    if connection.execute(_OF_CONVERSATION, {"key": key}).rowcount:
        connection.execute(_COUNT)


def load_mode(connection: sqlite3.Connection, key: ConversationKey) -> str | None:
    """Return the permission mode of a conversation, or None if none was set."""
    found = connection.execute("SELECT mode FROM permission_mode WHERE key = ?", (key,))
    row: tuple[str] | None = found.fetchone()
    return None if row is None else str(row[0])


def write_mode(connection: sqlite3.Connection, key: ConversationKey, mode: str) -> None:
    """Write the permission mode of a conversation."""
    connection.execute("INSERT OR REPLACE INTO permission_mode VALUES (?, ?)", (key, mode))


def _entry(grant: Grant) -> str:
    """Return a grant as canonical JSON in ASCII, which identifies it."""
    return json.dumps(grant.to_dict(), sort_keys=True)
