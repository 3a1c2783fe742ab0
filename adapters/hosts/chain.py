"""Hidden exchanges of a conversation, found again by a chain of digests over its history.

A proxy that answers searches itself hides them from its client, whose next request repeats
the history without them. They have to be back in their places, or the provider's prompt cache
ends there and the model searches again. So each exchange is kept under the digest of all that
the client sees before it and of the visible reply after it::

    digest(n) = SHA-256(digest(n - 1), role, text, ids of item n);  digest(0) = the owner

Nothing else of an item counts: clients move cache marks and drop thinking. The owner, a digest
of the credential, begins each chain: under the reply alone, two clients whose replies read the
same would get each other's searches. A client that edits its history leaves the chain at
that item. What is lost is searched again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from tool_search.core.values.json import compact_json, encodable, read_json
from tool_search.errors import SessionError

__all__ = [
    "ChainItem",
    "ExchangeChain",
    "ExchangeStore",
    "MemoryExchanges",
    "chain_digests",
    "owner_digest",
]

_DAY_S = 86_400.0
# The digests of longer histories are computed in a thread: they take more than some milliseconds.
_LONG_CHARS = 1_000_000
_ITEM_CHARS = 1_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChainItem:
    """The part of a history's item that a client always sends back.

    Attributes:
        role: The speaker.
        text: The text, without thinking.
        ids: The ids of its calls, or of the call that it answers.
    """

    role: str
    text: str = ""
    ids: tuple[str, ...] = ()


def owner_digest(credential: str, secret: bytes) -> str:
    """Return the digest of a client's credential, which is kept in place of it.

    Args:
        credential: The client's key.
        secret: A secret of the installation: without it, a digest could be guessed from keys.
    """
    return hmac.new(secret, credential.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def chain_digests(owner: str, items: Iterable[ChainItem]) -> list[str]:
    """Return the digest of the chain through each item, in order."""
    digests: list[str] = []
    before = owner
    for item in items:
        # JSON keeps the parts apart: no text can pass for the end of one.
        content = compact_json([before, item.role, encodable(item.text).strip(), [*item.ids]])
        before = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        digests.append(before)
    return digests


class ExchangeStore(Protocol):
    """A store of exchanges by digest; workers of one proxy share it."""

    async def load(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the JSON of those exchanges that are known, by digest."""
        ...

    async def keep(self, digest: str, exchange: str) -> None:
        """Keep the JSON of an exchange, in place of an earlier one of its digest."""
        ...


class MemoryExchanges:
    """Exchanges in this process's memory; the least recently used are dropped first.

    Args:
        max_exchanges: The number of exchanges.
        max_chars: The characters of all exchanges.
        max_age_s: Seconds after its last use that an exchange is kept.
        clock: Returns seconds.
    """

    def __init__(
        self,
        *,
        max_exchanges: int = 20_000,
        max_chars: int = 64_000_000,
        max_age_s: float = 7 * _DAY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_exchanges = max_exchanges
        self._max_chars = max_chars
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = Lock()
        self._chars = 0
        # The time of last use and the JSON, oldest use first.
        self._exchanges: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._exchanges)

    async def load(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the JSON of those exchanges that are known, by digest."""
        with self._lock:
            now = self._clock()
            self._drop(now)
            found: dict[str, str] = {}
            for digest in digests:
                if digest in self._exchanges:
                    found[digest] = self._exchanges[digest][1]
                    self._exchanges[digest] = now, found[digest]
                    self._exchanges.move_to_end(digest)
            return found

    async def keep(self, digest: str, exchange: str) -> None:
        """Keep the JSON of an exchange, in place of an earlier one of its digest."""
        with self._lock:
            now = self._clock()
            _, before = self._exchanges.pop(digest, (now, ""))
            self._exchanges[digest] = now, exchange
            self._chars += len(exchange) - len(before)
            self._drop(now)

    def _drop(self, now: float) -> None:
        while self._exchanges:
            digest, (used, exchange) = next(iter(self._exchanges.items()))
            within = len(self._exchanges) <= self._max_exchanges and self._chars <= self._max_chars
            if within and now - used <= self._max_age_s:
                return
            del self._exchanges[digest]
            self._chars -= len(exchange)


class ExchangeChain:
    """The hidden exchanges of all conversations of a proxy.

    Args:
        store: Keeps the exchanges; None: memory of this process.
    """

    def __init__(self, store: ExchangeStore | None = None) -> None:
        self._store: ExchangeStore = MemoryExchanges() if store is None else store

    async def keep(self, owner: str, items: Iterable[ChainItem], exchange: Sequence[Any]) -> None:
        """Keep the exchange that came right before the last of these items.

        Args:
            owner: The digest of the client.
            items: The history as the client sees it, through the reply after the exchange.
            exchange: The hidden items of the wire: calls and their results, as JSON values.

        Raises:
            SessionError: There is no item, or the exchange is not JSON.
        """
        digests = await _digests(owner, items)
        if not digests:
            raise SessionError("an exchange needs the visible reply after it; give the history")
        try:
            written = compact_json([*exchange])
        except (TypeError, ValueError, RecursionError) as exc:
            raise SessionError(f"an exchange must be JSON values: {exc}") from exc
        await self._store.keep(digests[-1], written)

    async def restore(self, owner: str, items: Iterable[ChainItem]) -> dict[int, list[Any]]:
        """Return the hidden exchanges by the index of the item before which each belongs.

        Args:
            owner: The digest of the client.
            items: The history of its request.
        """
        digests = await _digests(owner, items)
        known = await self._store.load(digests)
        found = ((index, known.get(digest)) for index, digest in enumerate(digests))
        return {index: _exchange(written) for index, written in found if written is not None}


async def _digests(owner: str, items: Iterable[ChainItem]) -> list[str]:
    listed = [*items]
    if sum(len(item.text) + _ITEM_CHARS for item in listed) <= _LONG_CHARS:
        return chain_digests(owner, listed)
    return await asyncio.to_thread(chain_digests, owner, listed)


def _exchange(written: str) -> list[Any]:
    """Return an exchange as it was kept; a damaged one is lost, which costs a search."""
    try:
        exchange = read_json(written)
    except (ValueError, RecursionError) as exc:
        _log.warning("a kept exchange cannot be read, and is searched again: %s", exc)
        return []
    return exchange if isinstance(exchange, list) else []
