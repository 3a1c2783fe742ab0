"""Reports of requests: what was declared and searched, for logs and for the inspector."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tool_search.proxy.tools import ClientTools

if TYPE_CHECKING:
    from tool_search.proxy.turn import Turn

__all__ = ["Report"]

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Report:
    """A request of a client.

    Attributes:
        dialect: The format.
        model: The model.
        upstream: The id of the provider.
        client: The name of the client's rule.
        at: The time of the request, in seconds since the epoch.
        status: The status of the reply; 0: it has not ended.
        turn: The turn, with its searches; None for a request that was passed on as it came.
        whole_tokens: The estimated tokens of the client's definitions.
        provider_s: Seconds in which the provider was waited for.
        seconds: Seconds from the request to its end.
    """

    dialect: str
    model: str
    upstream: str
    client: str = ""
    at: float = field(default_factory=time.time)
    status: int = 0
    turn: Turn | None = None
    whole_tokens: int = 0
    provider_s: float = 0.0
    seconds: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Begin anew: the request is one with tools."""
        self._began = time.monotonic()

    def tools(self, tools: ClientTools) -> None:
        """Take in the client's tools."""
        self.whole_tokens = sum(tools.tokens.values()) + tools.other_tokens

    @asynccontextmanager
    async def waits(self) -> AsyncIterator[None]:
        """Count the time of a block as the provider's."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.provider_s += time.monotonic() - began

    @property
    def declared_tokens(self) -> int:
        """The estimated tokens of the definitions that the last request declared in full."""
        if self.turn is None:
            return self.whole_tokens
        return self.turn.declared_tokens

    def header(self) -> str:
        """Return the value of the reply's `x-tool-search`."""
        turn = self.turn
        if turn is None:
            return ""
        deferred = turn.tools.count - sum(
            entry.wire is not None and not entry.deferred for entry in turn.listed
        )
        return (
            f"declared={len(turn.listed) - sum(entry.deferred for entry in turn.listed)} "
            f"deferred={deferred} searches={len(turn.searches)} "
            f"tokens_in={self.declared_tokens} tokens_full={self.whole_tokens}"
        )

    def end(self, status: int) -> None:
        """Take in the end of the reply, and log it."""
        self.status = status
        self.seconds = time.monotonic() - self._began
        if self.turn is not None:
            _log.info(
                "%s %s: %s status=%d seconds=%.3f provider=%.3f",
                self.client,
                self.model,
                self.header(),
                status,
                self.seconds,
                self.provider_s,
            )
