"""Checks of a store in Redis: its address, and with `--live` what its server promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tool_search.cli.doctor.checks.providers import is_local
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.errors import ConfigurationError, StoreError
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.stores.opening import open_store

if TYPE_CHECKING:
    from tool_search.stores.redis.server import NodeFacts

__all__ = ["check_redis"]

_PATH = ("store", "url")
# A full server refuses to write; the rest goes to copies of its buffers.
_FULL = 0.9


async def check_redis(bot: Examined, *, live: bool) -> tuple[Finding, ...]:
    """Return what is wrong with the address and, if it may be asked, with the server."""
    settings = bot.settings.store
    try:
        store = open_store(settings, environment=bot.environment)
    except ConfigurationError as exc:
        values = {"file": "Redis", "problem": str(exc)}
        return (Finding(code="store_unusable", path=_PATH, values=values),)
    findings = list(_check_address(settings.url, settings.address(bot.environment)))
    if not live or isinstance(store, MemoryStore | SQLiteStore):
        return tuple(findings)
    async with aclosing(store):
        try:
            await store.try_write()
            nodes = await store.node_facts()
        except StoreError as exc:
            code = "store_read_only" if exc.fault == "read_only" else "store_unreachable"
            values = {"problem": str(exc), "address": store.address}
            return (*findings, Finding(code=code, path=_PATH, values=values))
    return (*findings, *(found for node in nodes for found in _check_node(node)))


def _check_address(written: str | None, used: str) -> Iterator[Finding]:
    parts = urlsplit(used)
    host = parts.hostname or ""
    if written is not None and parts.password:
        yield Finding(code="store_secret", path=_PATH)
    if parts.scheme == "redis" and not is_local(host):
        yield Finding(code="store_plain", path=_PATH, values={"host": host})


def _check_node(node: NodeFacts) -> Iterator[Finding]:
    if node.is_replica:
        return  # of a cluster: its primary is among the nodes
    named = {"address": node.address}
    if node.max_memory and node.policy != "noeviction":
        yield Finding(code="store_evicts", path=_PATH, values={**named, "policy": node.policy})
    if node.max_memory and node.memory > _FULL * node.max_memory:
        share = f"{node.memory / node.max_memory:.0%}"
        yield Finding(code="store_full", path=_PATH, values={**named, "share": share})
    if not node.has_log or node.appendfsync == "no":
        setting = "appendfsync no" if node.has_log else "appendonly no"
        yield Finding(code="store_not_durable", path=_PATH, values={**named, "setting": setting})
