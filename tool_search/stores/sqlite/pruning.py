"""Erasing conversations of a SQLite store: by name, and beyond its bounds after saves.

The functions run in a transaction of their caller.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from itertools import islice

from tool_search.stores.base import ConversationKey
from tool_search.stores.sqlite.file import SQLiteFile
from tool_search.stores.sqlite.locks import erase_ended_locks

__all__ = [
    "COUNT_GRANTS",
    "Pruning",
    "erase_conversations",
    "erase_grants_of",
    "erase_keys",
]

COUNT_GRANTS = "UPDATE grant_revision SET number = number + 1"
_HOLDING = ("conversation", "discovery", "set_aside")
_TABLES = ("conversation", "message", "discovery", "used")
_TOO_OLD = "SELECT key FROM used WHERE at < ?"
_TOO_MANY = "SELECT key FROM used ORDER BY at DESC, key LIMIT -1 OFFSET ?"

_DAY_S = 86_400.0
# A turn reads its conversation before it saves it: a recent read may belong to a running turn.
_IN_USE_S = 3600.0
_EVERY_S = 60.0
# One in this many conversations may exist beyond the bound.
_SLACK = 20
# Other work of the store waits for at most one batch.
_BATCH = 100


class Pruning:
    """Erases conversations beyond a store's bounds, except those in a running turn.

    Args:
        file: The store's file.
        keep_days: Days that a conversation is kept after its last use; None: forever.
        keep_conversations: The number of conversations to keep; None: all.
        clock: Returns the seconds since 1970.
    """

    def __init__(
        self,
        file: SQLiteFile,
        keep_days: float | None,
        keep_conversations: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._file = file
        self._keep_days = keep_days
        self._keep_conversations = keep_conversations
        self._clock = clock
        self._in_use: dict[ConversationKey, float] = {}
        self._saves = 0
        self._next = time.monotonic()

    @property
    def _is_bounded(self) -> bool:
        return self._keep_days is not None or self._keep_conversations is not None

    def used(self, key: ConversationKey) -> None:
        """Note that a turn of the conversation may have begun."""
        if self._is_bounded:
            self._in_use.pop(key, None)
            self._in_use[key] = time.monotonic()

    def saved(self, key: ConversationKey) -> None:
        """Note that a turn has ended; prune from time to time."""
        if not self._is_bounded:
            return
        self._in_use.pop(key, None)
        self._saves += 1
        many = max(1, (self._keep_conversations or _SLACK * _BATCH) // _SLACK)
        now = time.monotonic()
        if self._saves >= many or now >= self._next:
            self._saves, self._next = 0, now + _EVERY_S
            self._in_use = {
                k: began for k, began in self._in_use.items() if began > now - _IN_USE_S
            }
            self._submit(frozenset(self._in_use))

    def _submit(self, in_use: frozenset[ConversationKey]) -> None:
        days, most = self._keep_days, self._keep_conversations

        def work(connection: sqlite3.Connection) -> bool:
            oldest = -1.0 if days is None else self._clock() - days * _DAY_S
            erased = _prune(connection, oldest=oldest, most=most, in_use=in_use, batch=_BATCH)
            if erased == _BATCH:
                self._submit(in_use)
            return 0 < erased < _BATCH

        self._file.submit(work)


def _prune(
    connection: sqlite3.Connection,
    *,
    oldest: float,
    most: int | None,
    in_use: Collection[str],
    batch: int,
) -> int:
    """Erase the least recently used conversations that are too old or too many.

    Args:
        connection: A connection in a writing transaction.
        oldest: Conversations that were last used before this time are erased.
        most: The number of others that stay; None: all.
        in_use: Conversations that stay at any age.
        batch: The largest number to erase.

    Returns:
        The number of erased conversations.
    """
    found = connection.execute(_TOO_OLD, (oldest,)).fetchall()
    if most is not None:
        found += connection.execute(_TOO_MANY, (most,)).fetchall()
    unused = ((key,) for key in dict.fromkeys(key for (key,) in found) if key not in in_use)
    gone = list(islice(unused, batch))
    erase_keys(connection, gone)
    for (key,) in gone:
        erase_grants_of(connection, key)
        connection.execute("DELETE FROM permission_mode WHERE key = ?", (key,))
        erase_ended_locks(connection, key)
    connection.execute("DELETE FROM set_aside WHERE at < ?", (oldest,))
    return len(gone)


def erase_conversations(connection: sqlite3.Connection, key: ConversationKey | None) -> int:
    """Erase one conversation, or all, with modes and data that was set aside, without grants.

    Returns:
        The number of erased conversations.
    """
    condition = "" if key is None else " WHERE key = :key"
    keys = " UNION ".join(f"SELECT key FROM {table}{condition}" for table in _HOLDING)  # noqa: S608
    (count,) = connection.execute(f"SELECT count(*) FROM ({keys})", {"key": key}).fetchone()  # noqa: S608
    for table in (*_TABLES, "set_aside", "permission_mode"):
        connection.execute(f"DELETE FROM {table}{condition}", {"key": key})  # noqa: S608  # ours
    erase_ended_locks(connection, key)
    return int(count)


def erase_grants_of(connection: sqlite3.Connection, key: ConversationKey | None) -> None:
    """Erase the grants of one conversation, or of all, also those that cannot be read."""
    erase = "DELETE FROM permission_grant WHERE conversation "
    erase += "IS NOT NULL" if key is None else "= :key"
    if connection.execute(erase, {"key": key}).rowcount:
        connection.execute(COUNT_GRANTS)


def erase_keys(connection: sqlite3.Connection, keys: Sequence[tuple[ConversationKey]]) -> None:
    """Erase record, history and discoveries of conversations."""
    for table in _TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", keys)  # noqa: S608  # ours
