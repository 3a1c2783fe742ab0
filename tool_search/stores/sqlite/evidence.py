"""Evidence in a store's SQLite file; each function runs in a transaction of its caller."""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Sequence

from tool_search.search.learned import MAX_EVIDENCE, Evidence, merge_evidence, select_evidence

__all__ = ["add_evidence", "erase_evidence", "evidence_revision", "load_evidence"]

_COUNT = "UPDATE revision SET number = number + 1"
_INSERT = "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT tool, words, at, strength FROM evidence"
_log = logging.getLogger(__name__)
_ERASE_WEAKEST = """
DELETE FROM evidence WHERE (tool, words) IN
(SELECT tool, words FROM evidence ORDER BY level, tool DESC, words DESC LIMIT ?)
"""


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
    entries = [_entry(*row) for row in rows]
    if None in entries:
        _log.warning("stored evidence cannot be read; it is skipped")
    return [entry for entry in entries if entry is not None]


def _entry(tool: object, words: object, at: object, strength: object) -> Evidence | None:
    if not (isinstance(tool, str) and isinstance(words, str)):
        return None
    if not (isinstance(at, float) and isinstance(strength, float)):
        return None
    if not (math.isfinite(at) and 0 < strength < math.inf):
        return None
    return Evidence(tool=tool, words=tuple(words.split("\n")), at=at, strength=strength)


def add_evidence(connection: sqlite3.Connection, entries: Sequence[Evidence]) -> None:
    """Add successes to the known evidence, within its bounds."""
    for tool in sorted({entry.tool for entry in entries}):
        known = load_evidence(connection, tool)
        _add_for_tool(connection, known, [entry for entry in entries if entry.tool == tool])
    (count,) = connection.execute("SELECT count(*) FROM evidence").fetchone()
    connection.execute(_ERASE_WEAKEST, (max(count - MAX_EVIDENCE, 0),))
    connection.execute(_COUNT)


def erase_evidence(connection: sqlite3.Connection, tool: str | None) -> int:
    """Erase the evidence for one tool, or all of it; return the number of entries."""
    erase = "DELETE FROM evidence WHERE :tool IS NULL OR tool = :tool"
    erased = connection.execute(erase, {"tool": tool}).rowcount
    connection.execute(_COUNT)
    return erased


def _add_for_tool(
    connection: sqlite3.Connection, known: Sequence[Evidence], new: Sequence[Evidence]
) -> None:
    before = {entry.key: entry for entry in known}
    after = merge_evidence(known, new)
    staying = {
        entry.key for entry in select_evidence(after.values(), max(entry.at for entry in new))
    }
    connection.executemany(
        "DELETE FROM evidence WHERE tool = ? AND words = ?",
        [(entry.tool, "\n".join(entry.words)) for entry in known if entry.key not in staying],
    )
    connection.executemany(
        _INSERT,
        [
            (entry.tool, "\n".join(entry.words), entry.at, entry.strength, entry.level)
            for key, entry in after.items()
            if key in staying and before.get(key) != entry
        ],
    )
