"""Chat over OpenAI's Chat Completions API, and over every endpoint compatible with it.

SDK: openai 3.52 or later, its asynchronous client. The way to DeepSeek, Qwen, Kimi,
GLM, Gemini, Ollama, vLLM and others too, by their `base_url`. The format is in
`openai_chat_wire` and `openai_chat_reply`, which need no SDK.
Source: OpenAI, "Chat Completions API", "Error codes".

Usage::

    from tool_search.adapters.openai_chat import OpenAIChatProvider
    from tool_search.profiles import profile_for

    profile = profile_for("openai_chat", "gpt-5.4")
    async with OpenAIChatProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

try:
    import openai
except ImportError as exc:
    raise ImportError(
        "the openai_chat adapter needs the openai SDK: pip install 'tool-search-middleware[openai]'"
    ) from exc

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
    timeout_failure,
)
from tool_search.adapters.openai_chat_reply import (
    StreamedReply,
    body_failure,
    events_of,
    from_wire,
)
from tool_search.adapters.openai_chat_wire import encode, encode_tools, to_wire
from tool_search.messages import RequestPlan
from tool_search.profiles import ProviderProfile
from tool_search.providers import ReplyEvent

__all__ = [
    "OpenAIChatProvider",
    "encode",
    "encode_tools",
    "from_wire",
    "to_wire",
]

_PATH = "/chat/completions"
_BASE_URL = "https://api.openai.com/v1"


def _status_failure(exc: openai.APIStatusError) -> Failure:
    """An error of the service; the SDK keeps what stands under `error`."""
    return body_failure({"error": exc.body}, status=exc.status_code) or Failure(
        detail=exc.message, status=exc.status_code
    )


def _api_failure(exc: openai.APIError) -> Failure:
    """An error inside a stream, which the SDK raises without a status."""
    return body_failure({"error": exc.body}, status=200) or Failure(detail=exc.message)


def _other_failure(exc: Exception) -> Failure:
    return Failure(detail=f"{type(exc).__name__}: {exc}")


_ERROR_MAP: ErrorMap = {
    openai.APIStatusError: _status_failure,
    openai.APITimeoutError: timeout_failure,
    openai.APIConnectionError: connection_failure,
    openai.APIResponseValidationError: malformed_reply,
    openai.APIError: _api_failure,
    openai.OpenAIError: _other_failure,
    # What the SDK lets through while it reads a reply.
    ValueError: malformed_reply,
    ReplyFailedError: reply_failure,
}


class OpenAIChatProvider:
    """One model of OpenAI, or behind a compatible endpoint.

    Belongs to the event loop it is first used in.

    Args:
        profile: What the model can do.
        api_key: The key; in no message, log or error.
        base_url: The endpoint; None: OpenAI's own.
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
        id: str = "openai",  # noqa: A002 - the configuration's word
        timeout_s: float = 60.0,
        max_retries: int = 0,
        extra_body: Mapping[str, Any] | None = None,
        streaming: bool = True,
        client: openai.AsyncOpenAI | None = None,
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
            stream_cls=openai.AsyncStream[object],
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
            for event in reply.end():
                yield event

    async def _whole(self, body: bytes, plan: RequestPlan) -> AsyncGenerator[ReplyEvent]:
        reply = await self._connected().post(_PATH, content=body, cast_to=object)
        for event in events_of(reply, plan, self.profile):
            yield event

    def _connected(self) -> openai.AsyncOpenAI:
        """The client, made when it is first needed."""
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                api_key=self._api_key,
                # Not what OPENAI_BASE_URL says: the profile was made for this address.
                base_url=self._base_url or _BASE_URL,
                timeout=openai.Timeout(
                    self._timeout_s, connect=min(self._timeout_s, CONNECT_TIMEOUT_S)
                ),
                max_retries=self._max_retries,
                http_client=openai.DefaultAsyncHttpxClient(verify=tls_context()),
            )
        return self._client
