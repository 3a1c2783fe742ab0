"""A monitor of the event loop: code that held it, so that no other conversation went on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tool_search.core.values.redaction import log_failure
from tool_search.errors import ConfigurationError

__all__ = ["LoopMonitor"]

_INTERVAL_S = 0.05
# Twenty lines a second would fill a log.
_LOG_EVERY_S = 10.0
_log = logging.getLogger(__name__)


class LoopMonitor:
    """A task that is woken every 50 ms, and measures how late it is.

    Args:
        hold_s: Seconds from which a delay counts as a hold.
        on_hold: Called with the seconds of each hold, such as `OpenTelemetry.on_hold`.

    Example:
        ::

            async with LoopMonitor(hold_s=0.1, on_hold=telemetry.on_hold):
                ...

    Raises:
        ConfigurationError: `hold_s` is not above 0.
    """

    def __init__(
        self, *, hold_s: float = 0.1, on_hold: Callable[[float], object] | None = None
    ) -> None:
        if not hold_s > 0:
            raise ConfigurationError(f"hold_s is {hold_s!r}: must be above 0, in seconds")
        self._hold_s = hold_s
        self._on_hold = on_hold
        self._task: asyncio.Task[None] | None = None
        self._unlogged: list[float] = []
        self._logged_at = float("-inf")

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), name="tool-search loop monitor")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._write()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _INTERVAL_S
            await asyncio.sleep(_INTERVAL_S)
            now = loop.time()
            if now - due >= self._hold_s:
                self._report(now - due)
            if self._unlogged and now - self._logged_at >= _LOG_EVERY_S:
                self._logged_at = now
                self._write()

    def _report(self, held_s: float) -> None:
        self._unlogged.append(held_s)
        if self._on_hold is not None:
            try:
                self._on_hold(held_s)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end the monitor
                log_failure(_log, "a callback for holds of the event loop failed")

    def _write(self) -> None:
        if self._unlogged:
            _log.warning(
                "the event loop was held %d times, for up to %.0f ms: a tool, a hook or another "
                "part of this process computes or waits in it; run that in a thread "
                "(asyncio.to_thread)",
                len(self._unlogged),
                max(self._unlogged) * 1000,
            )
            self._unlogged.clear()
