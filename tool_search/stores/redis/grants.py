"""Grants in Redis; each is JSON, and one with fields that this version does not know is skipped."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence

from tool_search.errors import StoreError
from tool_search.stores.base import Grant, KeptGrants
from tool_search.stores.redis.connection import RedisConnection
from tool_search.stores.redis.keys import Keys, read_number
from tool_search.stores.redis.scripts import (
    ADD_GRANTS,
    ERASE_GRANTS,
    GRANT_REVISION,
    LOAD_GRANTS,
    OLD_GRANTS,
)

__all__ = ["RedisGrants"]

_MAX_TRIES = 50
_log = logging.getLogger(__name__)


class RedisGrants:
    """The grants of a store.

    Args:
        connection: The connection.
        keys: The keys of the store.
    """

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys.grants

    async def revision(self) -> int:
        """Return a number that changes with the grants."""
        return read_number(await self._connection.run(GRANT_REVISION, self._keys)) or 0

    async def load(self) -> KeptGrants:
        """Return the grants that can be read, oldest first."""
        revision, entries = await self._load()
        return KeptGrants(read_number(revision) or 0, tuple(entries.values()))

    async def add(self, grants: Sequence[Grant], source: str | None) -> bool:
        """Add grants, from each source once; return True if they were added."""
        named = ("source", json.dumps(source)) if source is not None else ("", "")
        written = dict.fromkeys(_written(grant) for grant in grants)
        return bool(
            await self._connection.run(
                ADD_GRANTS, self._keys, secrets.token_hex(8), *named, *written
            )
        )

    async def erase(self, is_erased: Callable[[Grant], bool]) -> int:
        """Erase the grants that a function selects; return their number."""
        for _ in range(_MAX_TRIES):
            revision, entries = await self._load()
            gone = [written for written, grant in entries.items() if is_erased(grant)]
            if not gone or await self._connection.run(ERASE_GRANTS, self._keys, revision, *gone):
                return len(gone)
        raise StoreError(
            "the grants are changed by other processes all the time; try again", fault="locked"
        )

    async def clear(self) -> None:
        """Erase the grants that cannot be read."""
        revision, flat = await self._connection.run(LOAD_GRANTS, self._keys)
        gone = [written for written in flat[::2] if _read(written) is None]
        if gone:
            # After a change by another process, the next erasure takes them.
            await self._connection.run(ERASE_GRANTS, self._keys, revision, *gone)

    async def erase_expired(self, keep_ms: int, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Erase the grants of conversations that ended by their age.

        Args:
            keep_ms: Milliseconds that a conversation is kept; younger grants stay.
            is_there: Returns True if a conversation is still there.
        """
        revision, old = await self._connection.run(OLD_GRANTS, self._keys, keep_ms)
        gone = []
        for written in old:
            grant = _read(written)
            if grant is None or grant.conversation is None:
                continue
            if not await is_there(grant.conversation):
                gone.append(written)
        if gone:
            # If the grants were changed meanwhile, the next addition erases these.
            await self._connection.run(ERASE_GRANTS, self._keys, revision, *gone)

    async def _load(self) -> tuple[bytes, dict[bytes, Grant]]:
        """Return the revision, and the grants by their JSON, oldest first."""
        revision, flat = await self._connection.run(LOAD_GRANTS, self._keys)
        pairs = sorted(zip(flat[::2], flat[1::2], strict=True), key=lambda pair: _place(pair[1]))
        grants = {}
        for written, _ in pairs:
            grant = _read(written)
            if grant is not None:
                grants[written] = grant
        return revision, grants


def _read(written: bytes) -> Grant | None:
    try:
        return Grant.from_dict(json.loads(written))
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        _log.error("a stored grant cannot be read; it is skipped: %s", exc)
        return None


def _place(value: bytes) -> int:
    place = value.partition(b" ")[0]
    return int(place) if place.isdigit() else 0


def _written(grant: Grant) -> str:
    """Return a grant as canonical JSON in ASCII, which identifies it."""
    return json.dumps(grant.to_dict(), sort_keys=True)
