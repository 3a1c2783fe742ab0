"""Checks of `store`: the file of conversations can be opened, and outlives the process."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tool_search.cli.doctor.checks.redis_store import check_redis
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.errors import StoreError
from tool_search.stores import SQLiteStore

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
        return await check_redis(bot, live=live)
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


def _unusable(file: str, problem: str) -> Iterator[Finding]:
    yield Finding(
        code="store_unusable",
        path=("store", "path"),
        values={"file": file, "problem": problem},
    )
