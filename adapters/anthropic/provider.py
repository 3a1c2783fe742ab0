"""Chat over Anthropic's Messages API and over compatible endpoints.

SDK: the asynchronous client of anthropic 0.73 or later. The format is in `wire`, `reply` and
`history` of this folder, which need no SDK.
Source: Anthropic, "Messages API", "Streaming Messages", "Errors".

Usage::

    from tool_search.adapters.anthropic import AnthropicProvider
    from tool_search.providers.profile_choice import profile_for

    profile = profile_for("anthropic", "claude-sonnet-4-6")
    async with AnthropicProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from typing import Unpack

try:
    import anthropic
except ImportError as exc:
    raise ImportError(
        "the anthropic adapter needs the anthropic SDK: "
        "pip install 'tool-search-middleware[anthropic]'; in a clone: pip install '.[anthropic]'"
    ) from exc

from tool_search.adapters.anthropic.history import history_from_wire
from tool_search.adapters.anthropic.reply import StreamedReply, body_failure, events_of, from_wire
from tool_search.adapters.anthropic.wire import MAX_TOKENS, encode, encode_tools, to_wire
from tool_search.adapters.sdk.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    connection_failure,
    malformed_reply,
    reply_failure,
    timeout_failure,
    unknown_failure,
)
from tool_search.adapters.sdk.provider import SDK, ProviderOptions, SDKProvider, WireFormat

__all__ = [
    "MAX_TOKENS",
    "AnthropicProvider",
    "encode",
    "encode_tools",
    "from_wire",
    "history_from_wire",
    "to_wire",
]


def _status_failure(exc: anthropic.APIStatusError) -> Failure:
    """Return the service's error, which is an answer's body or an event of a stream."""
    status = exc.status_code
    return (
        body_failure(exc.body, status=status)
        or body_failure({"error": exc.body}, status=status)
        or Failure(detail=exc.message, status=None if status == 200 else status)
    )


ERROR_MAP: ErrorMap = {
    anthropic.APIStatusError: _status_failure,
    anthropic.APITimeoutError: timeout_failure,
    anthropic.APIConnectionError: connection_failure,
    anthropic.APIResponseValidationError: malformed_reply,
    anthropic.AnthropicError: unknown_failure,
    # What the SDK lets through while it reads a stream.
    ValueError: malformed_reply,
    ReplyFailedError: reply_failure,
}
"""The meaning of each exception that the SDK raises or lets through."""


class AnthropicProvider(SDKProvider):
    """One Claude model, or one model of a compatible endpoint.

    Args:
        options: The options of `SDKProvider`; `id` is `anthropic` by default.
    """

    _sdk = SDK(
        client=anthropic.AsyncAnthropic,
        http_client=anthropic.DefaultAsyncHttpxClient,
        timeout=anthropic.Timeout,
        stream=anthropic.AsyncStream[object],
        base_url="https://api.anthropic.com",
        errors=ERROR_MAP,
    )
    _format = WireFormat(
        path="/v1/messages",
        encode=encode,
        events_of=events_of,
        reader=StreamedReply,
    )

    def __init__(self, *, id: str = "anthropic", **options: Unpack[ProviderOptions]) -> None:  # noqa: A002 - the configuration's word
        super().__init__(id=id, **options)
