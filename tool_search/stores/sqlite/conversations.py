"""Conversations in a store's SQLite file; each function runs in a transaction of the caller's.

A history is kept message by message, so that a turn writes what it added and not the whole.
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

from tool_search.catalog.tool import Tool
from tool_search.conversation.record import ConversationRecord, message_to_dict
from tool_search.conversation.record_shape import check_discovery
from tool_search.discovery.state import Discovery, DiscoveryState
from tool_search.errors import CatalogError, StoreError, UnreadableRecordError
from tool_search.messages import Message
from tool_search.stores.base import ConversationKey
from tool_search.stores.sqlite.grants import erase_grants_of_conversation
from tool_search.values.json import compact_json, encodable, read_json

__all__ = [
    "KeptParts",
    "all_keys",
    "append_discoveries",
    "erase_conversations",
    "kept_conversations",
    "kept_record",
    "kept_revision",
    "prune",
    "set_aside",
    "write_record",
    "written_conversation",
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
_TOO_OLD = "SELECT key FROM used WHERE at < ?"
_TOO_MANY = "SELECT key FROM used ORDER BY at DESC, key LIMIT -1 OFFSET ?"


class KeptParts(NamedTuple):
    """What a conversation had when it was last read or written here.

    Attributes:
        revision: Of the conversation, at that time.
        messages: The history.
        discoveries: Those of its record; the file may have more.
    """

    revision: int
    messages: tuple[Message, ...]
    discoveries: tuple[Discovery, ...]


def kept_revision(connection: sqlite3.Connection, key: ConversationKey) -> int | None:
    """Return what changes whenever the conversation is written; None if it is not kept."""
    row = connection.execute("SELECT revision FROM used WHERE key = ?", (key,)).fetchone()
    # Of a conversation that was never saved, discoveries are kept alone.
    return row[0] if row is not None and row[0] else None


def kept_record(connection: sqlite3.Connection, key: ConversationKey) -> ConversationRecord | None:
    """Return a conversation with all its discoveries, or None if it is new.

    Raises:
        UnreadableRecordError: What is kept is no record of this version.
    """
    row = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    messages = connection.execute(_MESSAGES, (key,)).fetchall()
    with _named_record(key):
        content = read_json(_text(row[0]))
        if isinstance(content, dict) and "history" not in content:
            content["history"] = [read_json(_text(text)) for (text,) in messages]
        record = ConversationRecord.from_dict(content)
    return replace(record, discoveries=_discoveries(connection, key).entries)


def append_discoveries(
    connection: sqlite3.Connection, key: ConversationKey, entries: Sequence[Discovery], at: float
) -> tuple[Discovery, ...]:
    """Add discoveries; return all of the conversation in their order."""
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
        connection: In a transaction that writes.
        key: The conversation's.
        record: All of it.
        revision: What it is told by from now on.
        at: The seconds since 1970.
        known: What it was when it was last read or written here; what the file has of that
            is not written again.

    Raises:
        StoreError: The record is not JSON, such as a reply's block with NaN in it.
    """
    start = 0
    if known is not None and known.revision != kept_revision(connection, key):
        known = None
    if known is None or known.discoveries != record.discoveries:
        _refresh_discoveries(connection, key, record.discoveries)
    if known is not None:
        start = _common(known.messages, record.history)
    content = replace(record, history=(), discoveries=()).to_dict()
    del content["history"]
    connection.execute("DELETE FROM message WHERE key = ? AND place >= ?", (key, start))
    try:
        connection.executemany(
            "INSERT INTO message VALUES (?, ?, ?)",
            [
                (key, place, _encoded(message_to_dict(message)))
                for place, message in enumerate(record.history[start:], start)
            ],
        )
        written = _encoded(content)
    except (ValueError, TypeError, RecursionError) as exc:
        raise StoreError(f"the conversation {key!r} cannot be kept, it is no JSON: {exc}") from exc
    connection.execute("INSERT OR REPLACE INTO conversation VALUES (?, ?)", (key, written))
    connection.execute(_SET_REVISION, {"key": key, "at": at, "revision": revision})


def set_aside(connection: sqlite3.Connection, key: ConversationKey, at: float) -> None:
    """Put what is kept of a conversation where nothing reads it, until it is forgotten."""
    content = written_conversation(connection, key)
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
    """Erase conversations that are too old or too many, the least recently used ones.

    Args:
        connection: In a transaction that writes.
        oldest: What was used before this time goes.
        most: How many of the others stay; None: all.
        in_use: Conversations that stay whatever their age.
        batch: How many go at most.

    Returns:
        How many went.
    """
    found = connection.execute(_TOO_OLD, (oldest,)).fetchall()
    if most is not None:
        found += connection.execute(_TOO_MANY, (most,)).fetchall()
    unused = ((key,) for key in dict.fromkeys(key for (key,) in found) if key not in in_use)
    gone = list(islice(unused, batch))
    _erase(connection, gone, _TABLES[:-1])
    for (key,) in gone:
        erase_grants_of_conversation(connection, key)
    connection.execute("DELETE FROM set_aside WHERE at < ?", (oldest,))
    return len(gone)


def written_conversation(connection: sqlite3.Connection, key: ConversationKey) -> dict[str, Any]:
    """Return what is written of a conversation, also what no version can read.

    Returns:
        JSON; what is none is a text. Empty if nothing is kept.
    """
    found = connection.execute("SELECT record FROM conversation WHERE key = ?", (key,)).fetchone()
    aside = connection.execute("SELECT content FROM set_aside WHERE key = ?", (key,))
    parts = {
        "record": _as_json(found[0]) if found else None,
        "history": [_as_json(text) for (text,) in connection.execute(_MESSAGES, (key,))],
        "discoveries": [_as_json(text) for text, _ in connection.execute(_DISCOVERIES, (key,))],
        "set_aside": [_as_json(text) for (text,) in aside],
    }
    return {name: part for name, part in parts.items() if part}


def _as_json(content: object) -> Any:
    try:
        return read_json(_text(content))
    except (ValueError, RecursionError):
        return content if isinstance(content, str) else repr(content)


def _text(content: object) -> str:
    if not isinstance(content, str):
        raise ValueError(f"it is no text, but {type(content).__name__}")  # noqa: TRY004
    return content


def all_keys(connection: sqlite3.Connection) -> tuple[ConversationKey, ...]:
    """Return the conversations there are, with those that were set aside, sorted."""
    return _sorted(connection.execute(_ALL_KEYS))


def kept_conversations(connection: sqlite3.Connection) -> tuple[ConversationKey, ...]:
    """Return the conversations there are, sorted."""
    return _sorted(connection.execute(_KEYS))


def erase_conversations(connection: sqlite3.Connection, key: ConversationKey | None) -> int:
    """Erase one conversation, or all of them, with their grants and what was set aside.

    Returns:
        How many those were.
    """
    if key is None:
        count = len(all_keys(connection))
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # ours
    else:
        count = int(connection.execute(_OF_KEY, {"key": key}).fetchone() is not None)
        _erase(connection, [(key,)], _TABLES)
    erase_grants_of_conversation(connection, key)
    return count


def _sorted(rows: Iterable[tuple[object]]) -> tuple[ConversationKey, ...]:
    # A key that somebody else wrote may be no text.
    return tuple(sorted(key if isinstance(key, str) else repr(key) for (key,) in rows))


@contextmanager
def _named_record(key: ConversationKey) -> Iterator[None]:
    """Say to which conversation it belongs what cannot be read."""
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


def _encoded(content: object) -> str:
    return encodable(compact_json(content))


def _common(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return how many messages at the beginning are the same objects."""
    return sum(takewhile(bool, map(is_, before, after)))


def _discoveries(connection: sqlite3.Connection, key: ConversationKey) -> DiscoveryState:
    # All at once: a row that cannot be read must not leave the query open, and its snapshot.
    rows = connection.execute(_DISCOVERIES, (key,)).fetchall()
    with _named_record(key):
        return DiscoveryState(_discovery(tool, via) for tool, via in rows)


def _discovery(tool: object, via: object) -> Discovery:
    entry = {"tool": read_json(_text(tool)), "via": via}
    check_discovery(entry)
    return Discovery(tool=Tool.from_dict(entry["tool"]), via=entry["via"])


def _refresh_discoveries(
    connection: sqlite3.Connection, key: ConversationKey, entries: Iterable[Discovery]
) -> None:
    """Write what is new of a record's discoveries; what was appended meanwhile stays."""
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
    """Write the discoveries that are new, or whose definition is."""
    connection.executemany(
        "INSERT OR REPLACE INTO discovery VALUES (?, ?, ?, ?, ?)",
        [
            (key, place, entry.name, compact_json(entry.tool.to_dict()), entry.via)
            for place, entry in enumerate(state)
            if place >= len(before) or before[place] != entry
        ],
    )
