"""The store that a command reads, in a file or in Redis."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from tool_search.cli.terminal.language import wrong_use
from tool_search.config.loading import load_config
from tool_search.config.stores import StoreSettings
from tool_search.errors import ConfigurationError
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.stores.opening import open_store

if TYPE_CHECKING:
    from tool_search.stores.redis import RedisStore

__all__ = ["ChosenStore", "choose_store"]

_ADDRESS = re.compile(r"(rediss?|unix)://", re.IGNORECASE)


class ChosenStore(NamedTuple):
    """A store that is not open yet.

    Attributes:
        store: The store.
        name: Its file, or its address without user and password.
        file: Its file; None for Redis.
        prefix: The prefix of its keys; None for a file.
    """

    store: SQLiteStore | RedisStore
    name: str
    file: Path | None = None
    prefix: str | None = None

    @property
    def is_missing(self) -> bool:
        """True if there is no such file."""
        return self.file is not None and not self.file.exists()

    def to_dict(self) -> dict[str, str]:
        """Return the place as JSON values."""
        return {"store": self.name, **({"prefix": self.prefix} if self.prefix else {})}


def choose_store(config: Path | None, store: str | None, prefix: str | None = None) -> ChosenStore:
    """Return the store of a bot, the named store, or the default one.

    Args:
        config: The bot's file.
        store: A file, or an address of Redis.
        prefix: The prefix of the keys in Redis.

    Raises:
        ConfigurationError: Both are given, the bot's store is in memory, or the address
            cannot be used; no message shows a password.
    """
    if config is not None and store is not None:
        raise wrong_use("use.not_both", first="--config", second="--store")
    if store is not None and _ADDRESS.match(store):
        try:
            named = StoreSettings(type="redis", url=store, prefix=prefix or "tool-search")
        except ValidationError as exc:
            raise ConfigurationError(f"--prefix {prefix!r}: {exc.errors()[0]['msg']}") from None
        return _open(named, None)
    if prefix is not None:
        raise wrong_use("use.prefix")
    if store is not None:
        return _in_file(Path(store))
    if config is None:
        return _in_file(StoreSettings().file())
    settings = load_config(config).store
    if settings.type == "memory":
        raise ConfigurationError(
            f"{config}: store.type is 'memory', which ends with the bot's process; "
            "set it to sqlite to keep what is learned"
        )
    return _open(settings, config)


def _in_file(path: Path) -> ChosenStore:
    # Without the bounds of the settings: a command prunes nothing.
    return ChosenStore(SQLiteStore(path), str(path), file=path)


def _open(settings: StoreSettings, config: Path | None) -> ChosenStore:
    if settings.type == "sqlite":
        return _in_file(settings.file(config))
    store = open_store(settings, config)
    if isinstance(store, MemoryStore | SQLiteStore):
        raise TypeError(f"not in Redis: {store!r}")
    return ChosenStore(store, store.address, prefix=settings.prefix)
