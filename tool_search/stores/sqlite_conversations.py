"""Conversations in a store's SQLite file; each function runs in a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tool_search.catalog import Tool
from tool_search.discovery import Discovery, DiscoveryState
from tool_search.errors import CatalogError, UnreadableRecordError
from tool_search.record import ConversationRecord
from tool_search.record_shape import check_discovery
from tool_search.schema import compact_json, encodable, read_json
from tool_search.stores.base import ConversationKey
from tool_search.stores.sqlite_grants import erase_grants_of_conversation

__all__ = [
    "append_discoveries",
    "erase_conversations",
    "kept_conversations",
    "kept_record",
    "write_record",
]

_KEYS = "SELECT key FROM conversation UNION SELECT key FROM discovery"


def kept_record(connection: sqlite3.Connection, key: ConversationKey) -> ConversationRecord | None:
    """Return a conversation with all its discoveries, or None if it is new.

    Raises:
        UnreadableRecordError: What is kept is no record of this version.
    """
    row = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    with _named_record(key):
        record = ConversationRecord.from_dict(read_json(row[0]))
    return replace(record, discoveries=_discoveries(connection, key).entries)


def append_discoveries(
    connection: sqlite3.Connection, key: ConversationKey, entries: Sequence[Discovery]
) -> tuple[Discovery, ...]:
    """Add discoveries; return all of the conversation in their order."""
    state = _discoveries(connection, key)
    before = state.entries
    for entry in entries:
        state.commit((entry.tool,), via=entry.via)
    _write_discoveries(connection, key, before, state)
    return state.entries


def write_record(
    connection: sqlite3.Connection, key: ConversationKey, record: ConversationRecord
) -> None:
    """Write a conversation; discoveries that were appended meanwhile stay."""
    content = encodable(compact_json({**record.to_dict(), "discoveries": []}))
    state = _discoveries(connection, key)
    before = state.entries
    for entry in record.discoveries:
        state.commit((entry.tool,), via=entry.via)
        state.refresh(entry.tool)
    _write_discoveries(connection, key, before, state)
    connection.execute("INSERT OR REPLACE INTO conversation VALUES (?, ?)", (key, content))


def kept_conversations(connection: sqlite3.Connection) -> tuple[ConversationKey, ...]:
    """Return the conversations there are, sorted."""
    return tuple(sorted(key for (key,) in connection.execute(_KEYS)))


def erase_conversations(connection: sqlite3.Connection, key: ConversationKey | None) -> int:
    """Erase one conversation, or all of them, with their grants; return how many those were."""
    erased = [(known,) for known in kept_conversations(connection) if key in (None, known)]
    connection.executemany("DELETE FROM conversation WHERE key = ?", erased)
    connection.executemany("DELETE FROM discovery WHERE key = ?", erased)
    erase_grants_of_conversation(connection, key)
    return len(erased)


@contextmanager
def _named_record(key: ConversationKey) -> Iterator[None]:
    """Say to which conversation it belongs what cannot be read."""
    try:
        yield
    except UnreadableRecordError as exc:
        raise UnreadableRecordError(exc.problem, conversation=key) from exc
    except (ValueError, RecursionError, CatalogError) as exc:
        raise UnreadableRecordError(str(exc), conversation=key) from exc


def _discoveries(connection: sqlite3.Connection, key: ConversationKey) -> DiscoveryState:
    rows = connection.execute(
        "SELECT tool, via FROM discovery WHERE key = ? ORDER BY place", (key,)
    )
    with _named_record(key):
        return DiscoveryState(_discovery(tool, via) for tool, via in rows)


def _discovery(tool: str, via: str) -> Discovery:
    entry = {"tool": read_json(tool), "via": via}
    check_discovery(entry)
    return Discovery(tool=Tool.from_dict(entry["tool"]), via=entry["via"])


def _write_discoveries(
    connection: sqlite3.Connection,
    key: ConversationKey,
    before: Sequence[Discovery],
    state: DiscoveryState,
) -> None:
    """Write the discoveries that are new, or whose definition is."""
    connection.executemany(
        "INSERT OR REPLACE INTO discovery VALUES (?, ?, ?, ?, ?)",
        [
            (key, place, entry.name, compact_json(entry.tool.to_dict()), entry.via)
            for place, entry in enumerate(state)
            if place >= len(before) or before[place] != entry
        ],
    )
