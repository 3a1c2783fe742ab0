"""Conversations in a store's SQLite file; each function runs in a transaction of its caller.

A history is stored message by message, so that a turn writes only its new messages.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, takewhile
from operator import is_
from typing import Any, NamedTuple

from tool_search.core.catalog.tool import Tool
from tool_search.core.discovery.state import Discovery, DiscoveryState
from tool_search.core.messages import Message
from tool_search.core.values.json import compact_json, encodable, read_json
from tool_search.errors import CatalogError, StoreError, UnreadableRecordError
from tool_search.stores.base import ConversationKey
from tool_search.stores.erasure import as_json, text_of
from tool_search.stores.record import ConversationRecord, message_to_dict
from tool_search.stores.record_shape import check_discovery
from tool_search.stores.sqlite.grants import erase_grants_of_conversation
from tool_search.stores.sqlite.locks import erase_ended_locks

__all__ = [
    "KeptParts",
    "append_discoveries",
    "erase_conversations",
    "export_conversation",
    "list_all_keys",
    "list_conversations",
    "load_record",
    "load_revision",
    "prune",
    "set_aside",
    "write_record",
]

_KEYS = "SELECT key FROM conversation UNION SELECT key FROM discovery"
_ALL_KEYS = """
SELECT key FROM conversation UNION SELECT key FROM discovery UNION SELECT key FROM set_aside
"""
_OF_KEY = """
SELECT 1 FROM conversation WHERE key = :key UNION ALL SELECT 1 FROM discovery WHERE key = :key
UNION ALL SELECT 1 FROM set_aside WHERE key = :key
"""
_TABLES = ("conversation", "message", "discovery", "used", "set_aside")
_MESSAGES = "SELECT content FROM message WHERE key = ? ORDER BY place"
_DISCOVERIES = "SELECT tool, via FROM discovery WHERE key = ? ORDER BY place"
_TOUCH = """
INSERT INTO used VALUES (:key, :at, 0) ON CONFLICT (key) DO UPDATE SET at = :at
"""
_SET_REVISION = """
INSERT INTO used VALUES (:key, :at, :revision)
ON CONFLICT (key) DO UPDATE SET at = :at, revision = :revision
"""
_RECENT = f"SELECT key FROM ({_KEYS}) WHERE key IN (SELECT key FROM used WHERE at >= ?)"  # noqa: S608 - our own words
_TOO_OLD = "SELECT key FROM used WHERE at < ?"
_TOO_MANY = "SELECT key FROM used ORDER BY at DESC, key LIMIT -1 OFFSET ?"


class KeptParts(NamedTuple):
    """The state of a conversation when this process last read or wrote it.

    Attributes:
        revision: The conversation's revision at that time.
        messages: The history.
        discoveries: The discoveries of the record; the file may have more.
    """

    revision: int
    messages: tuple[Message, ...]
    discoveries: tuple[Discovery, ...]


def load_revision(connection: sqlite3.Connection, key: ConversationKey) -> int | None:
    """Return a number that changes with every write, or None if there is no conversation."""
    row = connection.execute("SELECT revision FROM used WHERE key = ?", (key,)).fetchone()
    # A conversation that was never saved may have discoveries, with the revision 0.
    return row[0] if row is not None and row[0] else None


def load_record(connection: sqlite3.Connection, key: ConversationKey) -> ConversationRecord | None:
    """Return a conversation with all its discoveries, or None if it is new.

    Raises:
        UnreadableRecordError: The stored data is not a record of this version.
    """
    row = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    messages = connection.execute(_MESSAGES, (key,)).fetchall()
    with _name_conversation(key):
        content = read_json(text_of(row[0]))
        if isinstance(content, dict) and "history" not in content:
            content["history"] = [read_json(text_of(text)) for (text,) in messages]
        record = ConversationRecord.from_dict(content)
    return replace(record, discoveries=_discoveries(connection, key).entries)


def append_discoveries(
    connection: sqlite3.Connection, key: ConversationKey, entries: Sequence[Discovery], at: float
) -> tuple[Discovery, ...]:
    """Add discoveries; return all discoveries of the conversation in order."""
    state = _discoveries(connection, key)
    before = state.entries
    for entry in entries:
        state.commit((entry.tool,), via=entry.via)
    _write_discoveries(connection, key, before, state)
    connection.execute(_TOUCH, {"key": key, "at": at})
    return state.entries


def write_record(
    connection: sqlite3.Connection,
    key: ConversationKey,
    record: ConversationRecord,
    *,
    revision: int,
    at: float,
    known: KeptParts | None,
) -> None:
    """Write a conversation; discoveries that were appended meanwhile stay.

    Args:
        connection: A connection in a writing transaction.
        key: The conversation's key.
        record: The whole conversation.
        revision: The new revision.
        at: The current time, in seconds since 1970.
        known: The state when this process last read or wrote it; those messages are not
            written again.

    Raises:
        StoreError: The record cannot be written as JSON, such as a block with NaN.
    """
    start = 0
    if known is not None and known.revision != load_revision(connection, key):
        known = None
    if known is None or known.discoveries != record.discoveries:
        _refresh_discoveries(connection, key, record.discoveries)
    if known is not None:
        start = _common_length(known.messages, record.history)
    content = replace(record, history=(), discoveries=()).to_dict()
    del content["history"]
    connection.execute("DELETE FROM message WHERE key = ? AND place >= ?", (key, start))
    try:
        connection.executemany(
            "INSERT INTO message VALUES (?, ?, ?)",
            [
                (key, place, _encode(message_to_dict(message)))
                for place, message in enumerate(record.history[start:], start)
            ],
        )
        written = _encode(content)
    except (ValueError, TypeError, RecursionError) as exc:
        raise StoreError(
            f"the conversation {key!r} cannot be written as JSON ({exc}); remove that value"
        ) from exc
    connection.execute("INSERT OR REPLACE INTO conversation VALUES (?, ?)", (key, written))
    connection.execute(_SET_REVISION, {"key": key, "at": at, "revision": revision})


def set_aside(connection: sqlite3.Connection, key: ConversationKey, at: float) -> None:
    """Move the data of a conversation out of reach until it is forgotten."""
    content = export_conversation(connection, key)
    content.pop("set_aside", None)
    connection.execute("INSERT INTO set_aside VALUES (?, ?, ?)", (key, at, json.dumps(content)))
    _erase(connection, [(key,)], _TABLES[:-1])


def prune(
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
    _erase(connection, gone, _TABLES[:-1])
    for (key,) in gone:
        erase_grants_of_conversation(connection, key)
        erase_ended_locks(connection, key)
    connection.execute("DELETE FROM set_aside WHERE at < ?", (oldest,))
    return len(gone)


def export_conversation(connection: sqlite3.Connection, key: ConversationKey) -> dict[str, Any]:
    """Return the stored data of a conversation, also data that no version can read.

    Returns:
        JSON values, with invalid JSON as text; empty if nothing is stored.
    """
    found = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,)).fetchone()
    aside = connection.execute("SELECT content FROM set_aside WHERE key = ?", (key,))
    parts = {
        "record": as_json(found[0]) if found else None,
        "history": [as_json(text) for (text,) in connection.execute(_MESSAGES, (key,))],
        "discoveries": [as_json(text) for text, _ in connection.execute(_DISCOVERIES, (key,))],
        "set_aside": [as_json(text) for (text,) in aside],
    }
    return {name: part for name, part in parts.items() if part}


def list_all_keys(connection: sqlite3.Connection) -> tuple[ConversationKey, ...]:
    """Return all conversations, with those that were set aside, sorted."""
    return _sorted(connection.execute(_ALL_KEYS))


def list_conversations(
    connection: sqlite3.Connection, since: float | None = None
) -> tuple[ConversationKey, ...]:
    """Return all conversations, sorted; with a time, those that were used since then."""
    if since is None:
        return _sorted(connection.execute(_KEYS))
    return _sorted(connection.execute(_RECENT, (since,)))


def erase_conversations(connection: sqlite3.Connection, key: ConversationKey | None) -> int:
    """Erase one conversation, or all, with grants and data that was set aside.

    Returns:
        The number of erased conversations.
    """
    if key is None:
        count = len(list_all_keys(connection))
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # ours
    else:
        count = int(connection.execute(_OF_KEY, {"key": key}).fetchone() is not None)
        _erase(connection, [(key,)], _TABLES)
    erase_grants_of_conversation(connection, key)
    erase_ended_locks(connection, key)
    return count


def _sorted(rows: Iterable[tuple[object]]) -> tuple[ConversationKey, ...]:
    # A key that another program wrote may be any SQLite value.
    return tuple(sorted(key if isinstance(key, str) else repr(key) for (key,) in rows))


@contextmanager
def _name_conversation(key: ConversationKey) -> Iterator[None]:
    """Add the conversation's key to errors of unreadable data."""
    try:
        yield
    except UnreadableRecordError as exc:
        raise UnreadableRecordError(exc.problem, conversation=key) from exc
    except (ValueError, RecursionError, CatalogError) as exc:
        raise UnreadableRecordError(str(exc), conversation=key) from exc


def _erase(
    connection: sqlite3.Connection, keys: Sequence[tuple[str]], tables: Iterable[str]
) -> None:
    for table in tables:
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", keys)  # noqa: S608  # ours


def _encode(content: object) -> str:
    return encodable(compact_json(content))


def _common_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the length of the common prefix of messages that are the same objects."""
    return sum(takewhile(bool, map(is_, before, after)))


def _discoveries(connection: sqlite3.Connection, key: ConversationKey) -> DiscoveryState:
    # Fetched at once: an error in a row must not leave the query and its snapshot open.
    rows = connection.execute(_DISCOVERIES, (key,)).fetchall()
    with _name_conversation(key):
        return DiscoveryState(_discovery(tool, via) for tool, via in rows)


def _discovery(tool: object, via: object) -> Discovery:
    entry = {"tool": read_json(text_of(tool)), "via": via}
    check_discovery(entry)
    return Discovery(tool=Tool.from_dict(entry["tool"]), via=entry["via"])


def _refresh_discoveries(
    connection: sqlite3.Connection, key: ConversationKey, entries: Iterable[Discovery]
) -> None:
    """Write new discoveries of a record; those that were appended meanwhile stay."""
    state = _discoveries(connection, key)
    before = state.entries
    for entry in entries:
        state.commit((entry.tool,), via=entry.via)
        state.refresh(entry.tool)
    _write_discoveries(connection, key, before, state)


def _write_discoveries(
    connection: sqlite3.Connection,
    key: ConversationKey,
    before: Sequence[Discovery],
    state: DiscoveryState,
) -> None:
    """Write discoveries that are new or have a new definition."""
    connection.executemany(
        "INSERT OR REPLACE INTO discovery VALUES (?, ?, ?, ?, ?)",
        [
            (key, place, entry.name, compact_json(entry.tool.to_dict()), entry.via)
            for place, entry in enumerate(state)
            if place >= len(before) or before[place] != entry
        ],
    )
