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

from collections.abc import Iterable
from typing import Unpack

try:
    import openai
except ImportError as exc:
    raise ImportError(
        "the openai_chat adapter needs the openai SDK: pip install 'tool-search-middleware[openai]'"
    ) from exc

from tool_search.adapters.connection import CONNECT_TIMEOUT_S, tls_context
from tool_search.adapters.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    connection_failure,
    malformed_reply,
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
from tool_search.adapters.sdk_provider import ProviderOptions, ReplyReader, SDKProvider
from tool_search.messages import RequestPlan
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


class OpenAIChatProvider(SDKProvider):
    """One model of OpenAI, or behind a compatible endpoint.

    Args:
        options: As of `SDKProvider`; `id` is `openai` unless it is given.
    """

    _path = _PATH
    _error_map = _ERROR_MAP
    _stream_class = openai.AsyncStream[object]

    def __init__(self, *, id: str = "openai", **options: Unpack[ProviderOptions]) -> None:  # noqa: A002 - the configuration's word
        super().__init__(id=id, **options)

    def _encode(self, plan: RequestPlan) -> bytes:
        return encode(plan, self.profile, stream=self._streaming, extra_body=self._extra_body)

    def _events_of(self, reply: object, plan: RequestPlan) -> Iterable[ReplyEvent]:
        return events_of(reply, plan, self.profile)

    def _reader(self, plan: RequestPlan) -> ReplyReader:
        return StreamedReply(plan, self.profile)

    def _connect(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            api_key=self._api_key,
            # Not what OPENAI_BASE_URL says: the profile was made for this address.
            base_url=self._base_url or _BASE_URL,
            timeout=openai.Timeout(
                self._timeout_s, connect=min(self._timeout_s, CONNECT_TIMEOUT_S)
            ),
            max_retries=self._max_retries,
            http_client=openai.DefaultAsyncHttpxClient(verify=tls_context()),
        )
