"""The base of providers for both of OpenAI's dialects: the client, and its exceptions.

SDK: openai 2.20 or later. Source: OpenAI, "Error codes".
"""

from __future__ import annotations

from contextlib import suppress
from typing import Unpack

try:
    import openai
except ImportError as exc:
    raise ImportError(
        "the OpenAI adapters need the openai SDK: "
        "pip install 'tool-search-middleware[openai]'; in a clone: pip install '.[openai]'"
    ) from exc

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
from tool_search.adapters.sdk.openai_failures import body_failure
from tool_search.adapters.sdk.provider import SDK, ProviderOptions, SDKProvider

__all__ = ["ERROR_MAP", "OpenAIProvider"]


def _status_failure(exc: openai.APIStatusError) -> Failure:
    """Return the service's error; the SDK keeps the object under `error` alone."""
    body: object = None
    if isinstance(exc.body, str):
        # xAI has a sentence there, and its code beside it.
        with suppress(ValueError, RecursionError):
            body = exc.response.json()
    status = exc.status_code
    return (
        body_failure(body, status=status)
        or body_failure({"error": exc.body}, status=status)
        or Failure(detail=exc.message, status=status)
    )


def _api_failure(exc: openai.APIError) -> Failure:
    """Return an error inside a stream, which the SDK raises without a status."""
    return body_failure({"error": exc.body}, status=200) or Failure(detail=exc.message)


ERROR_MAP: ErrorMap = {
    openai.APIStatusError: _status_failure,
    openai.APITimeoutError: timeout_failure,
    openai.APIConnectionError: connection_failure,
    openai.APIResponseValidationError: malformed_reply,
    openai.APIError: _api_failure,
    openai.OpenAIError: unknown_failure,
    # What the SDK lets through while it reads a reply.
    ValueError: malformed_reply,
    ReplyFailedError: reply_failure,
}
"""The meaning of each exception that the SDK raises or lets through."""


class OpenAIProvider(SDKProvider):
    """A provider through OpenAI's client; each of OpenAI's dialects has its own.

    Args:
        options: The options of `SDKProvider`; `id` is `openai` by default.
    """

    _sdk = SDK(
        client=openai.AsyncOpenAI,
        http_client=openai.DefaultAsyncHttpxClient,
        timeout=openai.Timeout,
        stream=openai.AsyncStream[object],
        base_url="https://api.openai.com/v1",
        errors=ERROR_MAP,
    )

    def __init__(self, *, id: str = "openai", **options: Unpack[ProviderOptions]) -> None:  # noqa: A002 - the configuration's word
        super().__init__(id=id, **options)
