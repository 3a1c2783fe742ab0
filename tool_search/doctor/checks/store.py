"""Checks of `store`: the file of conversations can be opened, and outlives the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import aclosing

from tool_search.doctor.examined import Examined
from tool_search.doctor.findings import Finding
from tool_search.errors import ConfigurationError, StoreError
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.stores.opening import open_store

__all__ = ["check_store"]


async def check_store(bot: Examined, *, live: bool) -> tuple[Finding, ...]:
    """Return what is wrong with the store; a file that is not there is not made.

    Args:
        bot: The bot.
        live: True if a server of Redis may be asked.
    """
    settings, source = bot.settings.store, bot.file.path
    if settings.type == "memory":
        return (Finding(code="store_temporary", path=("store", "type")),)
    if settings.type == "redis":
        return await _check_redis(bot, live=live)
    file = settings.file(source)
    if file.exists():
        try:
            async with SQLiteStore(file) as store:
                await store.evidence_revision()
        except StoreError as exc:
            return tuple(_unusable(str(file), str(exc)))
        return ()
    # The store makes the folders that are missing.
    folder = next(each for each in file.parents if each.exists())
    if not folder.is_dir():
        return tuple(_unusable(str(file), f"{str(folder)!r} is not a folder"))
    if not os.access(folder, os.W_OK):
        return tuple(_unusable(str(file), f"the folder {str(folder)!r} cannot be written to"))
    return ()


async def _check_redis(bot: Examined, *, live: bool) -> tuple[Finding, ...]:
    try:
        opened = open_store(bot.settings.store, environment=bot.environment)
    except ConfigurationError as exc:
        return tuple(_unusable("Redis", str(exc), key="url"))
    if not live or isinstance(opened, MemoryStore):
        return ()
    async with aclosing(opened):
        try:
            await opened.evidence_revision()
        except StoreError as exc:
            return tuple(_unusable("Redis", str(exc), key="url"))
    return ()


def _unusable(file: str, problem: str, *, key: str = "path") -> Iterator[Finding]:
    yield Finding(
        code="store_unusable",
        path=("store", key),
        values={"file": file, "problem": problem},
    )
