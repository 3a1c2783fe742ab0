"""Evidence in a store's SQLite file; each function runs in a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from tool_search.search.learned import MOST_EVIDENCE, Evidence, kept, merged

__all__ = ["add_evidence", "erase_evidence", "evidence_revision", "kept_evidence"]

_COUNT = "UPDATE revision SET number = number + 1"
_INSERT = "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT tool, words, at, strength FROM evidence"
_ERASE_WEAKEST = """
DELETE FROM evidence WHERE (tool, words) IN
(SELECT tool, words FROM evidence ORDER BY level, tool DESC, words DESC LIMIT ?)
"""


def evidence_revision(connection: sqlite3.Connection) -> int:
    """Return how often the evidence has changed."""
    row: tuple[int] = connection.execute("SELECT number FROM revision").fetchone()
    return row[0]


def kept_evidence(connection: sqlite3.Connection, tool: str | None = None) -> Iterator[Evidence]:
    """Yield the evidence for one tool, or all of it."""
    if tool is None:
        rows = connection.execute(_SELECT)
    else:
        rows = connection.execute(f"{_SELECT} WHERE tool = ?", (tool,))
    for name, words, at, strength in rows:
        yield Evidence(tool=name, words=tuple(words.split("\n")), at=at, strength=strength)


def add_evidence(connection: sqlite3.Connection, entries: Sequence[Evidence]) -> None:
    """Add successes to what is known, within its bounds."""
    for tool in sorted({entry.tool for entry in entries}):
        known = list(kept_evidence(connection, tool))
        _add_for_tool(connection, known, [entry for entry in entries if entry.tool == tool])
    (count,) = connection.execute("SELECT count(*) FROM evidence").fetchone()
    connection.execute(_ERASE_WEAKEST, (max(count - MOST_EVIDENCE, 0),))
    connection.execute(_COUNT)


def erase_evidence(connection: sqlite3.Connection, tool: str | None) -> int:
    """Erase the evidence for one tool, or all of it; return how much that was."""
    erase = "DELETE FROM evidence WHERE :tool IS NULL OR tool = :tool"
    erased = connection.execute(erase, {"tool": tool}).rowcount
    connection.execute(_COUNT)
    return erased


def _add_for_tool(
    connection: sqlite3.Connection, known: Sequence[Evidence], new: Sequence[Evidence]
) -> None:
    before = {entry.key: entry for entry in known}
    after = merged(known, new)
    staying = {entry.key for entry in kept(after.values(), max(entry.at for entry in new))}
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
