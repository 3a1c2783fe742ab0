"""How many calls may run at the same time: of a tool, of a server, of a bot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tool_search.catalog.tool import Tool
from tool_search.config.history import MAX_RESULT_CHARS
from tool_search.errors import ConfigurationError

__all__ = ["CallLimits", "ConcurrencyLimiter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits of a bot's calls, over all its conversations; None: no limit.

    Attributes:
        overall: Calls at the same time.
        per_tool: Of one tool; one number for each tool, or by canonical name.
        per_server: Of one server's tools; one number for each, or by name.
        timeout_s: Seconds a call may take, whatever runs it; functions have a
            time-out of their own besides.
        grace_s: Seconds that cancelled calls have for their clean-up.
        longest_error: Characters of an error; of a longer one both ends are kept.
        longest_result: Characters of a result that a model reads; of a longer one both ends
            are kept. What another tool asked for is not cut.
        cancels_siblings: Whether one failure ends the calls that run beside it.

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
    """The places that calls take while they run.

    Attributes:
        limits: How many there are.
    """

    limits: CallLimits
    _places: dict[tuple[str, str], asyncio.Semaphore] = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        limits = self.limits
        return (limits.overall, limits.per_tool, limits.per_server) != (None, None, None)

    def free(self, tool: Tool) -> bool:
        """Whether a call of a tool need not wait."""
        return not any(place.locked() for place in self._of(tool))

    @asynccontextmanager
    async def taken(self, tool: Tool) -> AsyncGenerator[None, None]:
        """Holds the places of one call, the scarcest taken first."""
        async with AsyncExitStack() as stack:
            for place in self._of(tool):
                await stack.enter_async_context(place)
            yield

    def _of(self, tool: Tool) -> list[asyncio.Semaphore]:
        limits = self.limits
        wanted = (
            ("tool", tool.name, limits.per_tool),
            ("server", tool.server or "", limits.per_server if tool.server else None),
            ("overall", "", limits.overall),
        )
        places = []
        for kind, name, limit in wanted:
            most = limit.get(name) if isinstance(limit, Mapping) else limit
            if most is not None:
                known = self._places.get((kind, name))
                if known is None:
                    known = self._places[kind, name] = asyncio.Semaphore(most)
                places.append(known)
        return places
