"""Messages about changes of a registry, at most one in a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tool_search.values.redaction import log_failure

if TYPE_CHECKING:
    from tool_search.registry.registry import RegistryEvent, ToolRegistry

__all__ = ["ChangeNotifier"]

_INTERVAL_S = 0.15
_log = logging.getLogger(__name__)


class ChangeNotifier:
    """Sends one message for all changes of 150 ms, while its block is open.

    A change of backends alone changes nothing that a client sees, and sends nothing.

    Args:
        registry: The registry.
        send: Sends clients the message that the list has changed; a failure is logged.
        interval_s: Seconds between the first change and the message, and so at least
            between two messages.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        send: Callable[[], Awaitable[object]],
        *,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._registry = registry
        self._send = send
        self._interval_s = interval_s
        self._sent_version = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._sent_version = self._registry.version
        self._unsubscribe = self._registry.subscribe(self._hear)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unsubscribe()
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _hear(self, _: RegistryEvent) -> None:
        """Take note of a change; from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._loop is not None and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(self._send_later())

    async def _send_later(self) -> None:
        # Changes during a message are in the next one.
        while self._sent_version != self._registry.version:
            await asyncio.sleep(self._interval_s)
            self._sent_version = self._registry.version
            try:
                await self._send()
            except Exception:  # noqa: BLE001  # a client may have gone; the next message goes on
                log_failure(_log, "a change of the registry could not be sent")
