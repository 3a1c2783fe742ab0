"""What a store did not take: written again until it does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from tool_search.errors import StoreError

__all__ = ["Backlog", "timely"]

_PATIENCE_S = 30.0
# A store that is this slow to fail is left alone until the next retry: each turn would wait.
_SLOW_S = 1.0
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


async def timely(answer: Awaitable[_T]) -> _T:
    """Return a store's answer, however the store was written.

    Raises:
        StoreError: It takes longer than half a minute.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S) as limit:
            return await answer
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise StoreError(
            f"the store gave no answer within {_PATIENCE_S:g} s; look whether it is reachable",
            fault="locked",
        ) from exc


class Backlog:
    """Writes that failed, tried again after 1 s, 2 s, 4 s, and then every minute.

    Attributes:
        last_error: What was wrong last.
    """

    def __init__(self) -> None:
        self.last_error = ""
        self._waiting: dict[Hashable, Callable[[], Awaitable[object]]] = {}
        self._retrying: asyncio.Task[None] | None = None
        self._rests_until = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._waiting

    @property
    def is_resting(self) -> bool:
        """True if the store was slow to fail a moment ago: what is to be written should wait."""
        return time.monotonic() < self._rests_until

    def failed(self, error: BaseException, *, began: float) -> None:
        """Note that the store failed.

        Args:
            error: How.
            began: When it was asked, by `time.monotonic`.
        """
        self.last_error = str(error) or type(error).__name__
        now = time.monotonic()
        if now - began > _SLOW_S:
            self._rests_until = now + _FIRST_RETRY_S

    def add(self, name: Hashable, write: Callable[[], Awaitable[object]]) -> None:
        """Write something later; what waits under the same name is written no more."""
        self._waiting[name] = write
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    def discard(self, name: Hashable) -> None:
        """Drop what waits under a name: it was written, or must not be."""
        self._waiting.pop(name, None)

    async def flush(self) -> None:
        """Try to write what waits; what fails again goes on waiting."""
        for name, write in tuple(self._waiting.items()):
            began = time.monotonic()
            try:
                await timely(write())
            except Exception as exc:  # noqa: BLE001  # stores are pluggable: the others are tried too
                self.failed(exc, began=began)
                if self.is_resting:
                    return
            else:
                if self._waiting.get(name) is write:
                    del self._waiting[name]

    async def aclose(self) -> None:
        """Try a last time, and give up."""
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
        _log.info("the store is back: it has what waited for it")
