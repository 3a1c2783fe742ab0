"""Limits of calls: concurrency of a tool, a server and a bot, time, and result size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tool_search.core.catalog.tool import Tool
from tool_search.core.settings import MAX_RESULT_CHARS
from tool_search.errors import ConfigurationError

__all__ = ["CallLimits", "ConcurrencyLimiter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits of a bot's calls, over all its conversations; None: no limit.

    Attributes:
        overall: Concurrent calls.
        per_tool: Concurrent calls of one tool: one number for all tools, or one by
            canonical name.
        per_server: Concurrent calls of one server's tools: one number, or one by name.
        timeout_s: Seconds that a call may take, with any executor; functions also have a
            timeout of their own.
        grace_s: Seconds that a cancelled call has for its clean-up.
        longest_error: Characters of an error; a longer one keeps both ends.
        longest_result: Characters of a result that a model reads; a longer one keeps both
            ends. The result of a nested call is not cut.
        cancels_siblings: True if a failure cancels the calls that run at the same time.

    Raises:
        ConfigurationError: A number is below 1.
    """

    overall: int | None = None
    per_tool: int | Mapping[str, int] | None = None
    per_server: int | Mapping[str, int] | None = None
    timeout_s: float | None = None
    grace_s: float = 5.0
    longest_error: int = 10_000
    longest_result: int | None = MAX_RESULT_CHARS
    cancels_siblings: bool = False

    def __post_init__(self) -> None:
        for key in ("overall", "per_tool", "per_server"):
            value = getattr(self, key)
            numbers = value.values() if isinstance(value, Mapping) else [value]
            if any(number is not None and number < 1 for number in numbers):
                raise ConfigurationError(f"{key} is {value!r}: a limit must be at least 1, or None")


@dataclass(slots=True)
class ConcurrencyLimiter:
    """Semaphores of the tools, the servers and the bot.

    Attributes:
        limits: The limits that the semaphores enforce.
    """

    limits: CallLimits
    _semaphores: dict[tuple[str, str], asyncio.Semaphore] = field(default_factory=dict)

    @property
    def is_limited(self) -> bool:
        """True if there is a limit of concurrency."""
        limits = self.limits
        return (limits.overall, limits.per_tool, limits.per_server) != (None, None, None)

    def has_room(self, tool: Tool) -> bool:
        """Return True if a call of a tool can start without waiting."""
        return not any(semaphore.locked() for semaphore in self._semaphores_of(tool))

    @asynccontextmanager
    async def acquire(self, tool: Tool) -> AsyncGenerator[None, None]:
        """Hold the semaphores of one call: tool, then server, then bot."""
        async with AsyncExitStack() as stack:
            for semaphore in self._semaphores_of(tool):
                await stack.enter_async_context(semaphore)
            yield

    def _semaphores_of(self, tool: Tool) -> list[asyncio.Semaphore]:
        limits = self.limits
        wanted = (
            ("tool", tool.name, limits.per_tool),
            ("server", tool.server or "", limits.per_server if tool.server else None),
            ("overall", "", limits.overall),
        )
        semaphores = []
        for kind, name, limit in wanted:
            count = limit.get(name) if isinstance(limit, Mapping) else limit
            if count is not None:
                known = self._semaphores.get((kind, name))
                if known is None:
                    known = self._semaphores[kind, name] = asyncio.Semaphore(count)
                semaphores.append(known)
        return semaphores
