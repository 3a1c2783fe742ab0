"""Messages about changes of a registry, at most one in a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tool_search.core.values.redaction import log_failure
from tool_search.sources.following import Follower

if TYPE_CHECKING:
    from tool_search.sources.registry.registry import ToolRegistry

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
        self._follower = Follower(self._send_later, name="registry:notifier")
        self._unsubscribe: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        self._sent_version = self._registry.version
        self._follower.start()
        self._unsubscribe = self._registry.subscribe(self._follower.hear)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unsubscribe()
        await self._follower.aclose()

    async def _send_later(self) -> None:
        await asyncio.sleep(self._interval_s)
        if self._sent_version == self._registry.version:
            return
        self._sent_version = self._registry.version
        try:
            await self._send()
        except Exception:  # noqa: BLE001  # a client may have gone; the next message goes on
            log_failure(_log, "a change of the registry could not be sent")
