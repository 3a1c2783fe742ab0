"""Chat over Anthropic's Messages API, and over endpoints that are compatible with it.

SDK: anthropic 0.73 or later, its asynchronous client. The format is in
`anthropic_wire`, `anthropic_reply` and `anthropic_history`, which need no SDK.
Source: Anthropic, "Messages API", "Streaming Messages", "Errors".

Usage::

    from tool_search.adapters.anthropic import AnthropicProvider
    from tool_search.providers.profiles import profile_for

    profile = profile_for("anthropic", "claude-sonnet-4-6")
    async with AnthropicProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

try:
    import anthropic
except ImportError as exc:
    raise ImportError(
        "the anthropic adapter needs the anthropic SDK: "
        "pip install 'tool-search-middleware[anthropic]'"
    ) from exc

from tool_search.adapters.anthropic.history import history_from_wire
from tool_search.adapters.anthropic.reply import (
    StreamedReply,
    body_failure,
    events_of,
    from_wire,
)
from tool_search.adapters.anthropic.wire import MAX_TOKENS, encode, encode_tools, to_wire
from tool_search.adapters.sdk.bounded_responses import bounded_client
from tool_search.adapters.sdk.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    connection_failure,
    malformed_reply,
    reply_failure,
    shown_body,
    timeout_failure,
)
from tool_search.adapters.sdk.provider import ProviderOptions, ReplyReader, SDKProvider
from tool_search.messages import RequestPlan
from tool_search.providers.base import ReplyEvent

__all__ = [
    "MAX_TOKENS",
    "AnthropicProvider",
    "encode",
    "encode_tools",
    "from_wire",
    "history_from_wire",
    "to_wire",
]

_PATH = "/v1/messages"
_BASE_URL = "https://api.anthropic.com"


def _status_failure(exc: anthropic.APIStatusError) -> Failure:
    """An error of the service, in an answer's body or as an event of a stream."""
    status = exc.status_code
    return body_failure(exc.body, status=status) or Failure(
        detail=shown_body(exc.body) if exc.body else exc.message,
        status=None if status == 200 else status,
    )


def _other_failure(exc: anthropic.AnthropicError) -> Failure:
    return Failure(detail=f"{type(exc).__name__}: {exc}")


_ERROR_MAP: ErrorMap = {
    anthropic.APIStatusError: _status_failure,
    anthropic.APITimeoutError: timeout_failure,
    anthropic.APIConnectionError: connection_failure,
    anthropic.APIResponseValidationError: malformed_reply,
    anthropic.AnthropicError: _other_failure,
    # What the SDK lets through while it reads a stream.
    ValueError: malformed_reply,
    ReplyFailedError: reply_failure,
}


class AnthropicProvider(SDKProvider):
    """One Claude model, or one model behind a compatible endpoint.

    Args:
        options: As of `SDKProvider`; `id` is `anthropic` unless it is given.
    """

    _path = _PATH
    _error_map = _ERROR_MAP
    _stream_class = anthropic.AsyncStream[object]

    def __init__(self, *, id: str = "anthropic", **options: Unpack[ProviderOptions]) -> None:  # noqa: A002 - the configuration's word
        super().__init__(id=id, **options)

    def _encode(self, plan: RequestPlan) -> bytes:
        return encode(plan, self.profile, stream=self._streaming, extra_body=self._extra_body)

    def _events_of(self, reply: object, plan: RequestPlan) -> Iterable[ReplyEvent]:
        return events_of(reply, plan, self.profile)

    def _reader(self, plan: RequestPlan) -> ReplyReader:
        return StreamedReply(plan, self.profile)

    def _connect(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            api_key=self._api_key.get_secret_value(),
            # Not what ANTHROPIC_BASE_URL says: the profile was made for this address.
            base_url=self._base_url or _BASE_URL,
            timeout=self._timeouts(anthropic.Timeout),
            max_retries=self._max_retries,
            http_client=bounded_client(anthropic.DefaultAsyncHttpxClient),
        )
