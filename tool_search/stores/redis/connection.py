"""A connection to Redis, single node or cluster: opened on demand, tried again with back-off."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NoReturn, TypeVar

from tool_search.errors import StoreError
from tool_search.stores.redis.faults import can_pass, fault_of, shown_address
from tool_search.stores.redis.keys import Keys
from tool_search.stores.redis.scripts import LOAD_VERSION, MARK_VERSION, TRY_WRITE, Script

try:
    from redis import asyncio as redis_asyncio
    from redis import exceptions
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
except ImportError as exc:
    raise ImportError(
        "a store in Redis needs redis-py: "
        "pip install 'tool-search-middleware[redis]'; in a clone: pip install '.[redis]'"
    ) from exc

__all__ = ["VERSION", "RedisConnection"]

VERSION = 1
"""The version of the stored form."""

_FIRST_DELAY_S = 0.05
_LAST_DELAY_S = 2.0
_OLDEST_SERVER = 7
# Requests of one process at a time; more wait here and not in the server.
_MAX_REQUESTS = 50
_SCAN_COUNT = 1000
_FAILURES = (exceptions.RedisError, exceptions.RedisClusterException, OSError)
_T = TypeVar("_T")


class RedisConnection:
    """A server, or a cluster that the server belongs to.

    A request that meets no server is tried again with back-off for `patience_s`. After that
    the server counts as down: until it answers, a request is tried once, and at most once in
    two seconds.

    Args:
        url: The address.
        keys: The keys of the store.
        patience_s: Seconds to try a request again, and to wait for one answer.

    Attributes:
        address: The address without user and password.
    """

    def __init__(self, url: str, keys: Keys, *, patience_s: float) -> None:
        self.address = shown_address(url)
        self._url = url
        self._keys = keys
        self._patience_s = patience_s
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._places = asyncio.Semaphore(_MAX_REQUESTS)
        self._is_closed = False
        self._is_marked = False
        self._may_only_read = False
        self._down: StoreError | None = None
        self._delay = 0.0
        self._next_try = 0.0

    async def run(self, script: Script, keys: Sequence[str], *args: str | bytes | float) -> Any:
        """Run a script on the server as one step; return its result.

        Raises:
            StoreError: The server cannot be reached, refuses the request, or has a newer store.
        """

        async def ask(client: Any) -> Any:
            if script.is_adding and not self._is_marked:
                self._check_version(await self._send(client, MARK_VERSION, *self._mark))
                self._is_marked = True
            return await self._send(client, script, keys, args)

        return await self._ask(ask)

    async def try_write(self) -> None:
        """Check that the server accepts writes of this user; nothing changes.

        Raises:
            StoreError: It does not, or cannot be reached.
        """
        await self.run(TRY_WRITE, self._keys.probe)

    async def matching(self, pattern: str) -> list[bytes]:
        """Return the keys that match a pattern, on all nodes."""

        async def ask(client: Any) -> list[bytes]:
            found: AsyncIterator[bytes] = client.scan_iter(match=pattern, count=_SCAN_COUNT)
            return [key async for key in found]

        return await self._ask(ask)

    async def each_node(self, *command: str) -> dict[str, Any]:
        """Return the answer of each node to a command of operators, by the node's address."""

        async def ask(client: Any) -> dict[str, Any]:
            if not isinstance(client, redis_asyncio.RedisCluster):
                return {self.address: await client.execute_command(*command)}
            return {
                node.name: await client.execute_command(*command, target_nodes=node)
                for node in client.get_nodes()
            }

        return await self._ask(ask)

    async def aclose(self) -> None:
        """Close the connection; it cannot be used again."""
        self._is_closed = True
        await self._drop()

    @property
    def _mark(self) -> tuple[Sequence[str], Sequence[int]]:
        return self._keys.version, (VERSION,)

    async def _send(
        self, client: Any, script: Script, keys: Sequence[str], args: Sequence[Any]
    ) -> Any:
        if script.is_reading and self._may_only_read:
            return await _evaluate(client, "_RO", script, keys, args)
        try:
            return await _evaluate(client, "", script, keys, args)
        except exceptions.NoPermissionError:
            if not script.is_reading:
                raise
            # EVAL wants keys that the user may write too; proxies often know no EVAL_RO.
            result = await _evaluate(client, "_RO", script, keys, args)
            self._may_only_read = True
            return result

    async def _ask(self, ask: Callable[[Any], Awaitable[_T]]) -> _T:
        if self._is_closed:
            raise StoreError(f"the store in Redis at {self.address} is closed; open a new one")
        self._check_down()
        is_cancelled = _cancellation()
        deadline = time.monotonic() + self._patience_s
        delay = _FIRST_DELAY_S
        async with self._places:
            while True:
                try:
                    result = await ask(await self._open_client())
                except _FAILURES as exc:
                    is_late = self._down is not None or time.monotonic() + delay >= deadline
                    if is_late or not can_pass(exc):
                        await self._fail(exc)
                else:
                    self._down, self._delay = None, 0.0
                    if not is_cancelled():
                        return result
                if is_cancelled():
                    raise asyncio.CancelledError
                # Workers that lost the same server should not come back at the same moment.
                await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311
                delay = min(2 * delay, _LAST_DELAY_S)

    def _check_down(self) -> None:
        if self._down is not None and time.monotonic() < self._next_try:
            raise StoreError(str(self._down), fault=self._down.fault)

    async def _fail(self, error: Exception) -> NoReturn:
        fault, advice = fault_of(error)
        failure = StoreError(f"the store in Redis at {self.address} {advice}", fault=fault)
        if fault in ("unreachable", "read_only"):
            # After a failover, an open connection still leads to the former primary.
            await self._drop()
        if fault == "unreachable":
            self._down = failure
            self._delay = min(max(2 * self._delay, _FIRST_DELAY_S), _LAST_DELAY_S)
            self._next_try = time.monotonic() + self._delay
        raise failure from error

    async def _open_client(self) -> Any:
        if self._client is not None:
            return self._client
        async with self._opening:
            if self._client is None:
                self._client = await self._open()
        return self._client

    async def _open(self) -> Any:
        client: Any = redis_asyncio.Redis.from_url(self._url, **self._options())
        try:
            server = await client.info("server")
            if server.get("redis_mode") == "cluster":
                await client.aclose()
                client = redis_asyncio.RedisCluster.from_url(self._url, **self._options())
                await client.initialize()
            self._check_server(server)
            self._check_version(await self._send(client, LOAD_VERSION, self._keys.version, ()))
        except BaseException:
            await client.aclose()
            raise
        return client

    def _options(self) -> dict[str, Any]:
        return {
            "socket_timeout": self._patience_s,
            "socket_connect_timeout": self._patience_s,
            # This class tries again itself, in one place and with one limit.
            "retry": Retry(NoBackoff(), 0),
            # RESP3 brings nothing here, and a handshake that proxies do not know.
            "protocol": 2,
        }

    def _check_server(self, server: dict[str, Any]) -> None:
        version = str(server.get("redis_version", "0"))
        if int(version.partition(".")[0]) < _OLDEST_SERVER:
            raise StoreError(
                f"the store in Redis at {self.address} needs Redis 7 or later, and the server is "
                f"version {version!r}; update the server, or name another one in store.url",
                fault="foreign",
            )

    def _check_version(self, stored: bytes | None) -> None:
        if stored is None:
            return
        if not stored.isdigit():
            raise StoreError(
                f"the store in Redis at {self.address} has data of another program under "
                f"{self._keys.version[0]!r}; name another store.prefix",
                fault="foreign",
            )
        if int(stored) > VERSION:
            raise StoreError(
                f"the store in Redis at {self.address} was written by a newer version of this "
                f"library: its format is {int(stored)}, this version reads {VERSION}; update the "
                "library, or name another store.prefix",
                fault="newer",
            )

    async def _drop(self) -> None:
        client, self._client = self._client, None
        self._is_marked = self._may_only_read = False
        if client is not None:
            await client.aclose()


async def _evaluate(
    client: Any, suffix: str, script: Script, keys: Sequence[str], args: Sequence[Any]
) -> Any:
    """Run a script by `EVAL`, or with the suffix `_RO` by `EVAL_RO`."""
    rest = (len(keys), *keys, *args)
    try:
        return await client.execute_command(f"EVALSHA{suffix}", script.digest, *rest)
    except exceptions.NoScriptError:
        return await client.execute_command(f"EVAL{suffix}", script.source, *rest)


def _cancellation() -> Callable[[], bool]:
    """Return a function that is true once the current task has been cancelled from now on.

    redis-py sends with `asyncio.wait_for`, which before Python 3.12 loses a cancellation at the
    moment at which it has finished (python/cpython#86296, measured with redis-py 8.1: one of five).
    """
    task = asyncio.current_task()
    if task is None:
        return lambda: False
    before = task.cancelling()
    return lambda: task.cancelling() > before
