"""Lists that change while they are used: one task looks again, once for many changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tool_search.core.values.aside import end

__all__ = ["Follower"]

Look = Callable[[], Awaitable[float | None]]


class Follower:
    """Looks again after changes; those that come during a look are in the next one.

    Args:
        look: Takes the changes. Returns the seconds after which to look again without a
            change; None: not before one. It must not raise.
        name: The name of the task.
    """

    def __init__(self, look: Look, *, name: str) -> None:
        self._look = look
        self._name = name
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True from `start` to `aclose`."""
        return self._task is not None

    def start(self) -> None:
        """Begin to look; changes that were heard of before are not missed."""
        # The loop may be another one than before.
        heard, self._wake = self._wake.is_set(), asyncio.Event()
        if heard:
            self._wake.set()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name=self._name)

    def hear(self, _: object = None) -> None:
        """Take note of a change; from any thread once it looks."""
        loop = self._loop
        if loop is None:
            self._wake.set()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._wake.set)

    async def aclose(self) -> None:
        """End a look that is under way, and look no more."""
        task, self._task, self._loop = self._task, None, None
        if task is not None:
            await end(task)

    async def _run(self) -> None:
        wait: float | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            self._wake.clear()
            wait = await self._look()
