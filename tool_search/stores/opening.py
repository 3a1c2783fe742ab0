"""The store that a configuration's `store` section describes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tool_search.config.stores import StoreSettings
from tool_search.errors import ConfigurationError, StoreError, StoreFault
from tool_search.stores.memory import DEFAULT_CONVERSATIONS, MemoryStore
from tool_search.stores.sqlite import SQLiteStore

if TYPE_CHECKING:
    from tool_search.stores.redis import RedisStore

__all__ = ["check_store", "open_store"]

_WRONG_SETTING: tuple[StoreFault, ...] = ("foreign", "newer", "missing", "no_permission")


def open_store(
    settings: StoreSettings,
    source: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> SQLiteStore | MemoryStore | RedisStore:
    """Return the store of a bot.

    Args:
        settings: The `store` section.
        source: The bot's configuration file: a relative path is relative to it.
        environment: The variables with the address of Redis; None: those of this process.

    Raises:
        ConfigurationError: The settings cannot be used, or redis-py is not installed.
    """
    if settings.type == "memory":
        return MemoryStore(
            keep_days=settings.keep_days,
            keep_conversations=settings.keep_conversations or DEFAULT_CONVERSATIONS,
        )
    if settings.type == "redis":
        return _open_redis(settings, environment)
    return SQLiteStore(
        settings.file(source),
        synchronous=settings.synchronous,
        keep_days=settings.keep_days,
        keep_conversations=settings.keep_conversations,
    )


def _open_redis(settings: StoreSettings, environment: Mapping[str, str] | None) -> RedisStore:
    address = settings.address(environment)
    try:
        store_class: type[RedisStore] = import_module("tool_search.stores.redis").RedisStore
    except ImportError as exc:
        raise ConfigurationError(f"store.type is 'redis': {exc}") from exc
    return store_class(address, prefix=settings.prefix, keep_days=settings.keep_days)


async def check_store(store: SQLiteStore | RedisStore) -> str:
    """Return the problem of a failing store that may recover; empty if there is none.

    Raises:
        StoreError: The setting is wrong: only a person can correct it.
    """
    try:
        if isinstance(store, SQLiteStore):
            await store.evidence_revision()
        else:
            await store.try_write()
    except StoreError as exc:
        if exc.fault in _WRONG_SETTING:
            raise
        return str(exc)
    return ""
