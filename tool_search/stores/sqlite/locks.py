"""Locks of turns in a store's SQLite file, for the processes of one machine.

The functions run in a transaction of the caller. Leases are measured by the system's monotonic
clock, which all processes share, so that a corrected clock neither ends nor extends a lock.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from tool_search.stores.base import ConversationKey

__all__ = ["erase_ended_locks", "is_locked", "take_lock"]

_PROC = Path("/proc")


def is_locked(connection: sqlite3.Connection, key: ConversationKey, holder: str) -> bool:
    """Return True if another holder has the lock of a conversation, and lives."""
    row = connection.execute(
        "SELECT holder, lease_s, ends, process FROM turn_lock WHERE key = ?", (key,)
    ).fetchone()
    if row is None or row[0] == holder:
        return False
    return _is_held(*row[1:])


def _is_held(lease_s: float, ends: float, process: str) -> bool:
    # A lease that would take longer than its whole length is from before the last start of the
    # machine: its clock began again.
    return 0 < ends - time.monotonic() <= lease_s and not _is_dead(process)


def take_lock(
    connection: sqlite3.Connection, key: ConversationKey, holder: str, lease_s: float
) -> bool:
    """Take or renew the lock of a conversation; return False if another holder has it."""
    if is_locked(connection, key, holder):
        return False
    ends = time.monotonic() + lease_s
    connection.execute(
        "INSERT OR REPLACE INTO turn_lock VALUES (?, ?, ?, ?, ?)",
        (key, holder, lease_s, ends, _process(os.getpid())),
    )
    return True


def erase_ended_locks(connection: sqlite3.Connection, key: ConversationKey | None) -> None:
    """Erase the locks of one conversation, or of all, that nobody has any more."""
    rows = connection.execute(
        "SELECT key, lease_s, ends, process FROM turn_lock WHERE :key IS NULL OR key = :key",
        {"key": key},
    ).fetchall()
    ended = [(name,) for name, *lock in rows if not _is_held(*lock)]
    connection.executemany("DELETE FROM turn_lock WHERE key = ?", ended)


def _is_dead(process: str) -> bool:
    """Return True if a process has certainly ended, so that nobody has to wait for its lease."""
    space, _, rest = process.partition(" ")
    number = rest.partition(" ")[0]
    # The number of a process means nothing in another container.
    return bool(space) and space == _space() and _process(int(number)) != process


def _process(number: int) -> str:
    """Return a name of a process that no later one has; empty if the system has no `/proc`."""
    space = _space()
    if not space:
        return ""
    try:
        content = (_PROC / str(number) / "stat").read_text("utf-8", errors="replace")
    except OSError:
        return ""
    # The name of the program may have spaces; the 22nd field is the time of the start.
    # Source: proc(5).
    fields = content.rpartition(")")[2].split()
    return f"{space} {number} {fields[19]}"


def _space() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        # The link's target has the number of the namespace.
        space = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return f"{boot}/{space}"
