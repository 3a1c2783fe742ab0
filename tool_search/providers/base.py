"""The interface of chat providers: a plan in, a streamed reply out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile

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
"""The reason for the end of a reply, the same on every provider: `answer`, it is complete;
`calls`, the model waits for results; `length`, the reply reached its limit or filled the
context; `refusal`, the model declined, or a filter of the service ended the reply; `pause`,
the service continues the reply when it is sent back; `other`, anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more requests, as the provider counted them.

    Attributes:
        input_tokens: All input tokens, cached ones included.
        output_tokens: All output tokens.
        cache_read_tokens: Input tokens that were read from the prompt cache.
        cache_write_tokens: Input tokens that were written to the prompt cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def uncached_tokens(self) -> int:
        """Input tokens that were not read from the prompt cache."""
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
    """A complete tool call of a reply that goes on."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnd:
    """The whole reply; always the last event.

    Attributes:
        message: An assistant message under canonical names.
        stop_reason: The reason for the end of the reply.
        usage: The tokens of the request.
        detail: The service's own words about the reason; empty if it gave none.
        id: The service's id of the reply; empty if it gave none.
        model: The model that answered, as the service names it; likewise.
    """

    message: Message
    stop_reason: StopReason
    usage: Usage
    detail: str = ""
    id: str = ""
    model: str = ""


ReplyEvent = ReplyDelta | CallDelta | ReplyEnd


class ChatProvider(Protocol):
    """One model at one endpoint.

    Attributes:
        profile: Its capabilities. A runner replaces the profile when a refusal of the
            endpoint corrects it; the next request is written by the new one.
    """

    profile: ProviderProfile

    def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """Send the request, and yield the reply as it arrives, `ReplyEnd` last.

        Raises:
            ProviderError: The provider refused, could not be reached, or broke off;
                discard the events that were yielded before.
        """
        ...


class ConnectedProvider(ChatProvider, Protocol):
    """A provider that holds connections and closes them at the end of a `with` block.

    Attributes:
        id: Its name in errors.
    """

    id: str

    async def aclose(self) -> None:
        """Close its connections; a second call does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
