"""Erasure of selected data from a store's SQLite file, with an export before.

Both functions run in one transaction of the caller, so that exactly the exported data is
erased.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tool_search.search.learned import Evidence, source_hash
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.sqlite.conversations import (
    erase_conversations,
    export_conversation,
    list_all_keys,
)
from tool_search.stores.sqlite.evidence import erase_entries, load_evidence, load_salt
from tool_search.stores.sqlite.grants import erase_grants, load_grants, load_mode

__all__ = ["Erased", "Export", "Selection", "erase", "preview"]

Export = Callable[[Mapping[str, Iterable[Mapping[str, Any]]]], None]
"""Writes the data to be erased, by kind; if it raises, nothing is erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of data to erase.

    Attributes:
        conversations: Conversations with all their data, and the evidence that was last
            renewed in them; None: all conversations.
        tools: Tools whose evidence is erased; None: all evidence.
        users: Users whose grants and evidence are erased; None: all grants.
    """

    conversations: tuple[ConversationKey, ...] | None = ()
    tools: tuple[str, ...] | None = ()
    users: tuple[str, ...] | None = ()


class Erased(NamedTuple):
    """The numbers of erased entries."""

    evidence: int
    conversations: int
    grants: int


def preview(
    connection: sqlite3.Connection, selection: Selection
) -> dict[str, Iterator[dict[str, Any]]]:
    """Return the selected data as JSON objects by kind."""
    return {
        "conversations": _conversations(connection, selection.conversations),
        "grants": _grants(connection, selection.users),
        "evidence": map(_evidence_object, _learned(connection, selection)),
    }


def erase(connection: sqlite3.Connection, selection: Selection) -> Erased:
    """Erase the selected data; return the numbers of entries."""
    tools, keys = selection.tools, selection.conversations
    before = len(load_grants(connection))
    erase_grants(connection, _granted(connection, selection.users))
    learned = _learned(connection, selection)
    if learned or tools != ():
        erase_entries(connection, learned)
    if tools is None:
        # Rows that cannot be read go, too.
        connection.execute("DELETE FROM evidence")
    return Erased(
        evidence=len(learned),
        conversations=sum(erase_conversations(connection, key) for key in _each(keys)),
        grants=before - len(load_grants(connection)),
    )


def _each(names: tuple[str, ...] | None) -> tuple[str | None, ...]:
    """Return the names without duplicates, or one None for all."""
    return (None,) if names is None else tuple(dict.fromkeys(names))


def _conversations(
    connection: sqlite3.Connection, keys: tuple[ConversationKey, ...] | None
) -> Iterator[dict[str, Any]]:
    granted = load_grants(connection)
    for key in list_all_keys(connection) if keys is None else keys:
        content = export_conversation(connection, key)
        mode = load_mode(connection, key)
        grants = [grant.to_dict() for grant in granted if grant.conversation == key]
        if content or grants or mode:
            yield {
                "key": key,
                **content,
                **({"grants": grants} if grants else {}),
                **({"permission_mode": mode} if mode else {}),
            }


def _granted(connection: sqlite3.Connection, users: tuple[str, ...] | None) -> list[Grant]:
    return [grant for grant in load_grants(connection) if users is None or grant.user in users]


def _grants(
    connection: sqlite3.Connection, users: tuple[str, ...] | None
) -> Iterator[dict[str, Any]]:
    for grant in _granted(connection, users):
        yield grant.to_dict()


def _learned(connection: sqlite3.Connection, selection: Selection) -> list[Evidence]:
    """Return the selected evidence: of the tools, the users and the conversations."""
    if selection == Selection():
        return []
    entries = load_evidence(connection)
    if selection.tools is None:
        return entries
    users, conversations = _hashes(connection, selection)
    return [
        entry
        for entry in entries
        if entry.tool in selection.tools
        or entry.source in users
        or entry.conversation in conversations
    ]


def _hashes(
    connection: sqlite3.Connection, selection: Selection
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the salted hashes of the selected users and conversations."""
    salt = load_salt(connection)
    if salt is None:
        return frozenset(), frozenset()
    return (
        frozenset(source_hash(name, salt=salt, kind="user") for name in selection.users or ()),
        frozenset(
            source_hash(key, salt=salt, kind="conversation")
            for key in selection.conversations or ()
        ),
    )


def _evidence_object(entry: Evidence) -> dict[str, Any]:
    at = datetime.fromtimestamp(entry.at, UTC).isoformat()
    known = {"source": entry.source, "conversation": entry.conversation}
    return {
        "tool": entry.tool,
        "words": list(entry.words),
        "strength": entry.strength,
        "at": at,
        **{name: value for name, value in known.items() if value},
    }
