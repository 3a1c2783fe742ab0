"""The servers of resources: who lists which address, read again only if it may have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

__all__ = ["ResourceOwners"]

_MAX_ADDRESSES = 100_000
# A client may ask for any number of addresses that no server has.
_LIST_PAUSE_S = 1.0


class ResourceOwners:
    """The servers that have resources, by the addresses and templates that they list.

    An address that nobody lists makes all servers list again, but at most once a second, and
    not at all if nothing can have changed since.

    Args:
        list_all: Reads the lists of all servers; it calls `take` and `doubt`.
    """

    def __init__(self, list_all: Callable[[], Awaitable[object]]) -> None:
        self._list_all = list_all
        self._owners: dict[str, str] = {}
        # Servers whose addresses are dropped before the next look: reports may come in floods.
        self._stale: set[str] = set()
        self._doubts = 0
        # The doubts when the last complete lists began: without a newer one they hold.
        self._sure_at = -1
        self._began = self._complete_from = -_LIST_PAUSE_S
        self._lock = asyncio.Lock()

    def take(self, address: str, server: str) -> bool:
        """Keep that a server lists an address; return True if it is the first that does."""
        self._drop_stale()
        if len(self._owners) < _MAX_ADDRESSES:
            self._owners.setdefault(address, server)
        return self._owners.get(address) == server

    def doubt(self) -> None:
        """Take note that the lists may have changed, or were not read as a whole."""
        self._doubts += 1

    def forget(self, server: str) -> None:
        """Drop the addresses of a server whose list has changed."""
        self.doubt()
        self._stale.add(server)

    async def servers_of(self, uris: Iterable[str]) -> dict[str, list[str]]:
        """Return the servers to ask for each address, the likeliest first."""
        self._drop_stale()
        wanted = tuple(dict.fromkeys(uris))
        if self._sure_at != self._doubts:
            if not all(map(self._fit, wanted)):
                await self._list(time.monotonic())
            elif any(uri not in self._owners for uri in wanted) and self._may_list():
                # Another server may list by now what fits a template.
                await self._list(time.monotonic())
        return {uri: self._fit(uri) for uri in wanted}

    def _drop_stale(self) -> None:
        if self._stale:
            stale, self._stale = self._stale, set()
            kept = {key: owner for key, owner in self._owners.items() if owner not in stale}
            self._owners = kept

    def _may_list(self) -> bool:
        return time.monotonic() - self._began >= _LIST_PAUSE_S

    def _fit(self, uri: str) -> list[str]:
        if uri in self._owners:
            return [self._owners[uri]]
        fitting = [
            server
            for template, server in self._owners.items()
            if "{" in template and uri.startswith(template.partition("{")[0])
        ]
        return list(dict.fromkeys(fitting))

    async def _list(self, asked: float) -> None:
        """Read the lists, unless another request has done so since this one came."""
        async with self._lock:
            if self._complete_from >= asked:
                return
            await asyncio.sleep(max(0.0, self._began + _LIST_PAUSE_S - time.monotonic()))
            self._began = began = time.monotonic()
            doubts = self._doubts
            await self._list_all()
            self._complete_from, self._sure_at = began, doubts
