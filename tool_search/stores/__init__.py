"""Keeps conversations between their turns, what searches have taught, and what users granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.stores.base import (
    ConversationKey,
    ConversationStore,
    EvidenceStore,
    Grant,
    GrantStore,
    KeptEvidence,
    KeptGrants,
    RevisionStore,
    SetAsideStore,
)
from tool_search.stores.memory import MemoryStore

if TYPE_CHECKING:
    from tool_search.stores.sqlite import SQLiteStore

__all__ = [
    "ConversationKey",
    "ConversationStore",
    "EvidenceStore",
    "Grant",
    "GrantStore",
    "KeptEvidence",
    "KeptGrants",
    "MemoryStore",
    "RevisionStore",
    "SQLiteStore",
    "SetAsideStore",
]


def __getattr__(name: str) -> Any:
    """`SQLiteStore`, loaded when it is asked for."""
    if name != "SQLiteStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tool_search.stores.sqlite import SQLiteStore  # noqa: PLC0415 - memory needs no database

    return SQLiteStore
