"""Erasure of selected data from a store's SQLite file, with an export before.

Both functions run in one transaction of the caller, so that exactly the exported data is
erased.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.erasure import Erased, Selection, evidence_object, select_learned
from tool_search.stores.sqlite.conversations import (
    erase_conversations,
    export_conversation,
    list_all_keys,
)
from tool_search.stores.sqlite.evidence import erase_entries, load_evidence, load_salt
from tool_search.stores.sqlite.grants import erase_grants, load_grants, load_mode

__all__ = ["erase", "preview"]


def preview(
    connection: sqlite3.Connection, selection: Selection
) -> dict[str, Iterator[dict[str, Any]]]:
    """Return the selected data as JSON objects by kind."""
    return {
        "conversations": _conversations(connection, selection.conversations),
        "grants": _grants(connection, selection.users),
        "evidence": map(evidence_object, _learned(connection, selection)),
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
    if selection.users is None:
        connection.execute("DELETE FROM permission_grant")
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
    """Return the selected evidence."""
    if selection == Selection():
        return []
    return select_learned(load_evidence(connection), selection, load_salt(connection))
