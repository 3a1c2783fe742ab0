"""Writes that a store did not accept, tried again until it does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from tool_search.errors import StoreError

__all__ = ["Backlog", "within_patience"]

_PATIENCE_S = 30.0
# After a failure that takes this long, turns do not wait for the store until the next retry.
_SLOW_S = 1.0
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


async def within_patience(answer: Awaitable[_T]) -> _T:
    """Return a store's answer within half a minute, also from a store without timeouts.

    Raises:
        StoreError: The store does not answer in time.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S) as limit:
            return await answer
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise StoreError(
            f"the store gave no answer within {_PATIENCE_S:g} s; check that it is reachable",
            fault="locked",
        ) from exc


class Backlog:
    """Failed writes, tried again after 1 s, 2 s, 4 s, up to every minute.

    Attributes:
        last_error: The text of the latest failure.
    """

    def __init__(self) -> None:
        self.last_error = ""
        self._waiting: dict[Hashable, Callable[[], Awaitable[object]]] = {}
        self._retrying: asyncio.Task[None] | None = None
        self._cooldown_until = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._waiting

    @property
    def is_cooling_down(self) -> bool:
        """True if the store has just failed slowly, so that writes should wait."""
        return time.monotonic() < self._cooldown_until

    def failed(self, error: BaseException, *, began: float) -> None:
        """Note that the store failed.

        Args:
            error: The failure.
            began: The start of the request, by `time.monotonic`.
        """
        self.last_error = str(error) or type(error).__name__
        now = time.monotonic()
        if now - began > _SLOW_S:
            self._cooldown_until = now + _FIRST_RETRY_S

    def add(self, name: Hashable, write: Callable[[], Awaitable[object]]) -> None:
        """Write later; replace a write that waits under the same name."""
        self._waiting[name] = write
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    def discard(self, name: Hashable) -> None:
        """Drop the write that waits under a name."""
        self._waiting.pop(name, None)

    async def flush(self) -> None:
        """Try all waiting writes; those that fail keep waiting."""
        for name, write in tuple(self._waiting.items()):
            began = time.monotonic()
            try:
                await within_patience(write())
            except Exception as exc:  # noqa: BLE001  # stores are pluggable: the others are tried too
                self.failed(exc, began=began)
                if self.is_cooling_down:
                    return
            else:
                if self._waiting.get(name) is write:
                    del self._waiting[name]

    async def aclose(self) -> None:
        """Try all waiting writes a last time, then give up."""
        task, self._retrying = self._retrying, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self.flush()

    async def _retry(self) -> None:
        delay = _FIRST_RETRY_S
        while self._waiting:
            await asyncio.sleep(delay)
            before = len(self._waiting)
            await self.flush()
            delay = _FIRST_RETRY_S if len(self._waiting) < before else min(2 * delay, _LAST_RETRY_S)
        _log.info("the store works again; all waiting writes are done")
