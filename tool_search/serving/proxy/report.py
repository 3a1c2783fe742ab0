"""Reports of requests: what was declared and searched, for logs and for the inspector."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from tool_search.serving.proxy.tools import ClientTools

if TYPE_CHECKING:
    from tool_search.serving.proxy.requests import ClientRequest
    from tool_search.serving.proxy.turn import Turn

__all__ = ["CLIENT_LEFT", "PassReason", "Report"]

CLIENT_LEFT = 499
"""The status of a request whose client left before the end of its reply."""

PassReason = Literal[
    "", "emulated", "failed", "few_tools", "native", "no_tools", "not_deferred", "off", "refused"
]
"""The reason for which a request went on as it came; empty: it did not.

`native`: the client and the provider search by themselves; `emulated`: a client's deferred
tools were written as a provider takes them that has no search; `not_deferred`: the mode is
`emulate` and the client defers nothing; `failed`: preparing it failed, and was logged;
`refused`: the provider refuses each form of ours.
"""

_Event = TypeVar("_Event")
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
        client_s: Seconds in which the client was waited for, while it took its reply.
        seconds: Seconds from the request to its end.
        id: The id of its record.
        path: The path of the request.
        passed: The reason for which it was passed on as it came; empty: it was not.
        raw: The body of the client's request.
        sent: The bodies of the requests to the provider, in order.
        reply: The provider's own error; empty: there was none.
        request: The client's request, for a record of it; None before it was read.
    """

    dialect: str
    model: str
    upstream: str
    client: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    at: float = field(default_factory=time.time)
    status: int = 0
    turn: Turn | None = None
    whole_tokens: int = 0
    provider_s: float = 0.0
    client_s: float = 0.0
    seconds: float = 0.0
    path: str = ""
    passed: PassReason = ""
    raw: bytes = b""
    sent: list[bytes] = field(default_factory=list)
    reply: bytes = b""
    request: ClientRequest | None = field(default=None, repr=False)
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

    async def received(self, events: AsyncIterator[_Event]) -> AsyncIterator[_Event]:
        """Yield the events of a provider, and count the time until each as the provider's."""
        began = time.monotonic()
        async for event in events:
            self.provider_s += time.monotonic() - began
            yield event
            began = time.monotonic()
        self.provider_s += time.monotonic() - began

    @property
    def own_s(self) -> float:
        """Seconds in which neither the provider nor the client was waited for."""
        return max(0.0, self.seconds - self.provider_s - self.client_s)

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
