"""What both of OpenAI's dialects take from its SDK: the client, and what its exceptions mean.

SDK: openai 2.20 or later. Source: OpenAI, "Error codes".
"""

from __future__ import annotations

from typing import Unpack

try:
    import openai
except ImportError as exc:
    raise ImportError(
        "the OpenAI adapters need the openai SDK: pip install 'tool-search-middleware[openai]'"
    ) from exc

from tool_search.adapters.sdk.bounded_responses import bounded_client
from tool_search.adapters.sdk.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    connection_failure,
    malformed_reply,
    reply_failure,
    timeout_failure,
)
from tool_search.adapters.sdk.openai_failures import body_failure
from tool_search.adapters.sdk.provider import ProviderOptions, SDKProvider

__all__ = ["ERROR_MAP", "OpenAIProvider"]

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


ERROR_MAP: ErrorMap = {
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
"""What each exception of the SDK means, and of what it lets through."""


class OpenAIProvider(SDKProvider):
    """A provider through OpenAI's client; a dialect of OpenAI's says the rest.

    Args:
        options: As of `SDKProvider`; `id` is `openai` unless it is given.
    """

    _error_map = ERROR_MAP
    _stream_class = openai.AsyncStream[object]

    def __init__(self, *, id: str = "openai", **options: Unpack[ProviderOptions]) -> None:  # noqa: A002 - the configuration's word
        super().__init__(id=id, **options)

    def _connect(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            api_key=self._api_key.get_secret_value(),
            # Not what OPENAI_BASE_URL says: the profile was made for this address.
            base_url=self._base_url or _BASE_URL,
            timeout=self._timeouts(openai.Timeout),
            max_retries=self._max_retries,
            http_client=bounded_client(openai.DefaultAsyncHttpxClient),
        )
