"""What a chat provider is to the runner: a plan in, a reply out, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from tool_search.messages import Message, RequestPlan, ToolCall
from tool_search.providers.profiles import ProviderProfile

__all__ = [
    "CallDelta",
    "ChatProvider",
    "ConnectedProvider",
    "ReplyDelta",
    "ReplyEnd",
    "ReplyEvent",
    "StopReason",
    "Usage",
]

StopReason = Literal["answer", "calls", "length", "refusal", "pause", "other"]
"""Why a model stopped, in one word on every provider: `answer`, it had said all; `calls`,
it waits for results; `length`, the reply was cut at its longest, or where the context is
full; `refusal`, the model declined, or a filter of the service ended the reply; `pause`, the
service wants the reply back to go on with it; `other`, anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more requests, as the provider counted them.

    Attributes:
        input_tokens: All that was read, cached tokens included.
        output_tokens: All that was written.
        cache_read_tokens: Of the input: read from the prompt cache.
        cache_write_tokens: Of the input: written to the prompt cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def uncached_tokens(self) -> int:
        """Of the input: what was read anew, written to the cache or not."""
        return max(0, self.input_tokens - self.cache_read_tokens)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class ReplyDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A tool call that is complete, before the reply is."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnd:
    """The whole reply; always the last event.

    Attributes:
        message: An assistant message under canonical names.
        stop_reason: Why the model stopped.
        usage: What the request cost.
        detail: What the service says about the reason; empty: nothing.
    """

    message: Message
    stop_reason: StopReason
    usage: Usage
    detail: str = ""


ReplyEvent = ReplyDelta | CallDelta | ReplyEnd


class ChatProvider(Protocol):
    """One model at one endpoint.

    Attributes:
        profile: What it can do; a runner replaces it where the endpoint teaches it
            otherwise, and the next request is written by the new one.
    """

    profile: ProviderProfile

    def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """Sends the request; yields the reply as it comes, `ReplyEnd` last.

        Raises:
            ProviderError: The provider refused, could not be reached, or broke off;
                what was yielded before is then void.
        """
        ...


class ConnectedProvider(ChatProvider, Protocol):
    """A provider that holds connections, and lets them go at the end of a `with` block.

    Attributes:
        id: Names it in errors.
    """

    id: str

    async def aclose(self) -> None:
        """Closes its connections; a second call does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
