"""The servers of a store, for operators: persistence, memory and role, and their files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from tool_search.errors import StoreError
from tool_search.stores.redis.connection import RedisConnection

__all__ = ["NodeFacts", "node_facts", "rewrite_files"]

_REWRITE_S = 120.0
_PAUSE_S = 0.05
_SETTINGS = ("appendfsync", "save")


class NodeFacts(NamedTuple):
    """The facts of one node.

    Attributes:
        address: The node's address.
        version: The version of the server.
        is_replica: True if it is a copy of another node.
        has_log: True if it writes an append-only file.
        appendfsync: The setting; empty if it may not be read.
        save: The times of snapshots; None if they may not be read.
        policy: The setting `maxmemory-policy`.
        memory: Bytes in use.
        max_memory: The bound of `memory`; 0: none.
    """

    address: str
    version: str
    is_replica: bool
    has_log: bool
    appendfsync: str
    save: str | None
    policy: str
    memory: int
    max_memory: int


async def node_facts(connection: RedisConnection) -> tuple[NodeFacts, ...]:
    """Return the facts of each node.

    Raises:
        StoreError: A node cannot be reached, or the user may not run `INFO`.
    """
    known = await connection.each_node("INFO")
    return tuple(
        [_facts(node, info, await _settings(connection, node)) for node, info in known.items()]
    )


async def _settings(connection: RedisConnection, node: str) -> dict[str, str]:
    """Return the settings that `INFO` does not have, if the user may read them."""
    try:
        answers = [(await connection.each_node("CONFIG", "GET", key))[node] for key in _SETTINGS]
    except StoreError as exc:
        # Servers that are rented often have no CONFIG.
        if exc.fault not in ("no_permission", "unknown"):
            raise
        return {}
    flat = [_text(part) for answer in answers for part in answer]
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _facts(node: str, info: Mapping[str, Any], settings: Mapping[str, str]) -> NodeFacts:
    return NodeFacts(
        address=node,
        version=str(info.get("redis_version", "")),
        is_replica=info.get("role") == "slave",
        has_log=bool(info.get("aof_enabled")),
        appendfsync=settings.get("appendfsync", ""),
        save=settings.get("save"),
        policy=str(info.get("maxmemory_policy", "")),
        memory=int(info.get("used_memory", 0)),
        max_memory=int(info.get("maxmemory", 0)),
    )


def _text(part: object) -> str:
    return part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)


async def rewrite_files(connection: RedisConnection) -> str:
    """Let the servers write their files anew, without erased data.

    Returns:
        The reason why erased data may be left in a file; empty if there is none.
    """
    try:
        async with asyncio.timeout(_REWRITE_S):
            saves = await connection.each_node("CONFIG", "GET", "save")
            if any(any(answer[1::2]) for answer in saves.values()):
                await connection.each_node("BGSAVE", "SCHEDULE")
                await _wait(connection, "rdb_bgsave_in_progress")
            files = await connection.each_node("INFO", "persistence")
            if any(each.get("aof_enabled") for each in files.values()):
                await connection.each_node("BGREWRITEAOF")
                await _wait(connection, "aof_rewrite_in_progress", "aof_rewrite_scheduled")
    except TimeoutError:
        return f"the server takes longer than {_REWRITE_S:g} s to write its files anew"
    except StoreError as exc:
        return str(exc)
    return ""


async def _wait(connection: RedisConnection, *flags: str) -> None:
    """Wait until no node does this any more."""
    while True:
        files = await connection.each_node("INFO", "persistence")
        if not any(each.get(flag) for each in files.values() for flag in flags):
            return
        await asyncio.sleep(_PAUSE_S)
