"""The store that a configuration's `store` section describes."""

from __future__ import annotations

from pathlib import Path

from tool_search.config.stores import StoreSettings
from tool_search.stores.memory import DEFAULT_CONVERSATIONS, MemoryStore
from tool_search.stores.sqlite import SQLiteStore

__all__ = ["open_store"]


def open_store(settings: StoreSettings, source: Path | None = None) -> SQLiteStore | MemoryStore:
    """Return the store of a bot.

    Args:
        settings: The `store` section.
        source: The bot's configuration file: a relative path is relative to it.
    """
    if settings.type == "memory":
        return MemoryStore(
            keep_days=settings.keep_days,
            keep_conversations=settings.keep_conversations or DEFAULT_CONVERSATIONS,
        )
    return SQLiteStore(
        settings.file(source),
        synchronous=settings.synchronous,
        keep_days=settings.keep_days,
        keep_conversations=settings.keep_conversations,
    )
