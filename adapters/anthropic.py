"""Chat over Anthropic's Messages API, and over endpoints that are compatible with it.

SDK: anthropic 2.11 or later, its asynchronous client. The format is in
`anthropic_wire`, `anthropic_reply` and `anthropic_history`, which need no SDK.
Source: Anthropic, "Messages API", "Streaming Messages", "Errors".

Usage::

    from tool_search.adapters.anthropic import AnthropicProvider
    from tool_search.profiles import profile_for

    profile = profile_for("anthropic", "claude-sonnet-4-6")
    async with AnthropicProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

try:
    import anthropic
    import httpx2
except ImportError as exc:
    raise ImportError(
        "the anthropic adapter needs the anthropic SDK: "
        "pip install 'tool-search-middleware[anthropic]'"
    ) from exc

from tool_search.adapters.anthropic_history import history_from_wire
from tool_search.adapters.anthropic_reply import (
    StreamedReply,
    body_failure,
    events_of,
    from_wire,
)
from tool_search.adapters.anthropic_wire import MAX_TOKENS, encode, encode_tools, to_wire
from tool_search.adapters.connection import (
    CONNECT_TIMEOUT_S,
    check_extra_body,
    check_key,
    tls_context,
)
from tool_search.adapters.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    connection_failure,
    malformed_reply,
    raise_failure,
    read_failure,
    reply_failure,
    shown_body,
    timeout_failure,
)
from tool_search.messages import RequestPlan
from tool_search.profiles import ProviderProfile
from tool_search.providers import ReplyEvent

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
    httpx2.TimeoutException: timeout_failure,
    httpx2.HTTPError: connection_failure,
    httpx2.StreamError: connection_failure,
    ValueError: malformed_reply,
    ReplyFailedError: reply_failure,
}


class AnthropicProvider:
    """One Claude model, or one model behind a compatible endpoint.

    Belongs to the event loop it is first used in.

    Args:
        profile: What the model can do.
        api_key: The key; in no message, log or error.
        base_url: The endpoint; None: Anthropic's own.
        id: Names the provider in errors.
        timeout_s: Seconds without a byte before a request counts as failed.
        max_retries: How often the SDK repeats a request that failed before its reply.
        extra_body: More fields for every request; a null takes one of ours away,
            and `stream: false` switches streaming off.
        streaming: Whether replies come piece by piece.
        client: A client of the SDK to use, which the caller closes; then the four
            settings of the connection are the client's own.

    Attributes:
        id: Names the provider in errors.
        profile: What the model can do.
    """

    def __init__(
        self,
        *,
        profile: ProviderProfile,
        api_key: str,
        base_url: str | None = None,
        id: str = "anthropic",  # noqa: A002 - the configuration's word
        timeout_s: float = 60.0,
        max_retries: int = 0,
        extra_body: Mapping[str, Any] | None = None,
        streaming: bool = True,
        client: anthropic.AsyncAnthropic | None = None,
    ) -> None:
        self.id = id
        self.profile = profile
        self._api_key = check_key(api_key, provider=id)
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._extra_body = check_extra_body(extra_body, provider=id)
        self._streaming = streaming and self._extra_body.get("stream") is not False
        self._client = client
        self._owns_client = client is None

    async def stream(self, plan: RequestPlan) -> AsyncGenerator[ReplyEvent]:
        """Sends the request; yields the reply as it comes, `ReplyEnd` last.

        Raises:
            ProviderError: The provider refused, could not be reached, or broke off.
        """
        body = encode(plan, self.profile, stream=self._streaming, extra_body=self._extra_body)
        try:
            events = self._streamed(body, plan) if self._streaming else self._whole(body, plan)
            async with aclosing(events):
                async for event in events:
                    yield event
        except tuple(_ERROR_MAP) as exc:
            failure = read_failure(exc, _ERROR_MAP)
            raise_failure(failure, provider=self.id, secret=self._api_key, cause=exc)

    async def aclose(self) -> None:
        """Closes the connections, unless the client is the caller's."""
        if self._owns_client and self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _streamed(self, body: bytes, plan: RequestPlan) -> AsyncGenerator[ReplyEvent]:
        stream = await self._connected().post(
            _PATH,
            content=body,
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        async with stream:
            if "json" in stream.response.headers.get("content-type", ""):
                # An endpoint that knows no streams, or reports an error with status 200.
                whole = json.loads(await stream.response.aread())
                for event in events_of(whole, plan, self.profile):
                    yield event
                return
            reply = StreamedReply(plan, self.profile)
            async for wire_event in stream:
                for event in reply.read(wire_event):
                    yield event
            yield reply.end()

    async def _whole(self, body: bytes, plan: RequestPlan) -> AsyncGenerator[ReplyEvent]:
        reply = await self._connected().post(_PATH, content=body, cast_to=object)
        for event in events_of(reply, plan, self.profile):
            yield event

    def _connected(self) -> anthropic.AsyncAnthropic:
        """The client, made when it is first needed."""
        if self._client is None:
            self._client = anthropic.AsyncAnthropic(
                api_key=self._api_key,
                # Not what ANTHROPIC_BASE_URL says: the profile was made for this address.
                base_url=self._base_url or _BASE_URL,
                timeout=anthropic.Timeout(
                    self._timeout_s, connect=min(self._timeout_s, CONNECT_TIMEOUT_S)
                ),
                max_retries=self._max_retries,
                http_client=anthropic.DefaultAsyncHttpxClient(verify=tls_context()),
            )
        return self._client
