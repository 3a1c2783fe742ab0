"""What went wrong at a provider, as one `ProviderError` without a key in it.

Both adapters read their SDK's exceptions into a `Failure` through a table of
theirs; here is what the tables share.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from pydantic import SecretStr

from tool_search.adapters.wire.values import text_of
from tool_search.errors import ProviderError, ToolSearchError
from tool_search.values.redaction import redacted_text

__all__ = [
    "BROKEN_REPLY",
    "CONNECTION",
    "HTTP_LIBRARIES",
    "MALFORMED_REPLY",
    "REPLY_TOO_LARGE",
    "TIMEOUT",
    "ErrorMap",
    "Failure",
    "ReplyFailedError",
    "connection_failure",
    "error_in_body",
    "foreign_reply",
    "http_errors",
    "malformed_reply",
    "raise_failure",
    "read_failure",
    "reply_failure",
    "retry_after_s",
    "shown_body",
    "timeout_failure",
    "unknown_failure",
]

TIMEOUT = "timeout"
"""`ProviderError.code` where nothing came in time."""
CONNECTION = "connection"
"""`ProviderError.code` where the endpoint could not be reached or hung up."""
BROKEN_REPLY = "broken_reply"
"""`ProviderError.code` of a reply that stopped in the middle."""
MALFORMED_REPLY = "malformed_reply"
"""`ProviderError.code` of a reply that is not what the dialect documents."""
REPLY_TOO_LARGE = "reply_too_large"
"""`ProviderError.code` of a reply with more bytes or calls than any model writes."""

# openai before 3 and anthropic before 1 bring httpx, later ones httpx2; openai 2.54 takes
# clients of both. Neither is imported here: the installed SDK has loaded the right one.
HTTP_LIBRARIES = ("httpx", "httpx2")
"""The HTTP libraries that an SDK may use."""

_MAX_DETAIL_CHARS = 1_000
# Enough that no part of a key at its end is left after the cut to what is shown.
_MAX_MASKED_CHARS = 100_000
_KEY_LIKE = re.compile(r"\b(?:sk|key|xai|gsk)-[\w*.-]{6,}")
_MASK = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong, before it is anyone's error.

    Attributes:
        detail: The provider's message, or ours where none came.
        status: The HTTP status; for an error inside an answer of 200, the one its
            type stands for; None where no answer came.
        code: The provider's own type or code, or one of this module's.
        retry_after_s: The seconds after which it wants to be asked again, where it says so.
    """

    detail: str
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None


class ReplyFailedError(ToolSearchError):
    """An answer that is an error, or no reply; a provider raises it as `ProviderError`.

    Attributes:
        failure: What went wrong.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


ErrorMap = Mapping[type[Exception], Callable[[Any], Failure]]


def read_failure(exc: Exception, error_map: ErrorMap) -> Failure:
    """What an exception reports, by the nearest of its classes that the table has."""
    for kind in type(exc).__mro__:
        if kind in error_map:
            return error_map[kind](exc)
    return unknown_failure(exc)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a service wants to be asked again; None: it names none.

    Source: RFC 9110, Retry-After (seconds, or a date); `retry-after-ms` of OpenAI.
    """
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = _seconds_until(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _seconds_until(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return max(0.0, parsedate_to_datetime(written).timestamp() - time.time())


def raise_failure(
    failure: Failure, *, provider: str, secret: SecretStr, cause: Exception | None = None
) -> NoReturn:
    """Raises the failure as a `ProviderError` with the key masked.

    The cause is chained, unless its own text shows the key: a traceback prints it.
    """
    key = secret.get_secret_value()
    error = ProviderError(
        _masked(failure.detail[:_MAX_MASKED_CHARS], key)[:_MAX_DETAIL_CHARS],
        provider=provider,
        status=failure.status,
        code=failure.code,
        retry_after_s=failure.retry_after_s,
    )
    said = str(cause)
    if len(said) > _MAX_MASKED_CHARS or _masked(said, key) != said:
        cause = None
    raise error from cause


def _masked(text: str, secret: str) -> str:
    for written in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        text = text.replace(written, _MASK) if written else text
    return redacted_text(_KEY_LIKE.sub(_MASK, text))


def timeout_failure(exc: Exception) -> Failure:
    """Nothing came in time."""
    return Failure(detail=_with_cause(exc, "no answer in time"), code=TIMEOUT)


def connection_failure(exc: Exception) -> Failure:
    """The endpoint could not be reached, or hung up."""
    return Failure(detail=_with_cause(exc, "the connection failed"), code=CONNECTION)


def malformed_reply(exc: Exception) -> Failure:
    """The answer is not JSON, or not in UTF-8."""
    return Failure(
        detail=f"the reply cannot be read: {exc}",
        # Any other status would have been an error of its own.
        status=getattr(exc, "status_code", 200),
        code=MALFORMED_REPLY,
    )


def foreign_reply(reply: object, expected: str) -> Failure:
    """Return the failure of JSON that is not a reply of the dialect."""
    return Failure(
        detail=f"the reply is not a {expected}: {shown_body(reply)!r}",
        status=200,
        code=MALFORMED_REPLY,
    )


def unknown_failure(exc: Exception) -> Failure:
    """Return the failure of an exception that no other row of an error map names."""
    return Failure(detail=f"{type(exc).__name__}: {exc}")


def reply_failure(exc: ReplyFailedError) -> Failure:
    """What the answer itself reports."""
    return exc.failure


def http_errors() -> ErrorMap:
    """Return what each exception of a loaded HTTP library means.

    The SDKs let some of them through while a stream is read: anthropic does, and so
    does openai before 3.
    """
    meanings: dict[str, Callable[[Any], Failure]] = {
        "TimeoutException": timeout_failure,
        "HTTPError": connection_failure,
        "StreamError": connection_failure,
    }
    loaded = (sys.modules[name] for name in HTTP_LIBRARIES if name in sys.modules)
    return {
        getattr(library, name): meaning for library in loaded for name, meaning in meanings.items()
    }


def _with_cause(exc: Exception, summary: str) -> str:
    cause = exc.__cause__ or exc
    text = str(cause)
    # A client that cannot send a header quotes it, and the key is one.
    if not text or "header" in text.lower():
        return f"{summary} ({type(cause).__name__})"
    return f"{summary} ({type(cause).__name__}: {text})"


def error_in_body(body: object) -> tuple[Mapping[str, Any], str] | None:
    """The error object and its message in a parsed answer, or None where it is no error.

    Some compatible endpoints write `{"error": "..."}`.
    """
    # Google's compatible endpoint wraps the object in a list.
    if isinstance(body, list) and len(body) == 1:
        (body,) = body
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    # The SDK has taken the object off what is not a mapping only.
    if isinstance(error, list):
        return error_in_body(error)
    if not error:
        return None
    if isinstance(error, Mapping):
        return error, _with_upstream(error)
    return body, str(error)


def _with_upstream(error: Mapping[str, Any]) -> str:
    """The error's message, and the model's own provider's where a gateway passes it on.

    OpenRouter says "Provider returned error", and has the text in `metadata.raw`.
    """
    metadata = error.get("metadata")
    raw = text_of(metadata.get("raw")) if isinstance(metadata, Mapping) else ""
    return f"{shown_body(error)}: {raw}" if raw else shown_body(error)


def shown_body(body: object) -> str:
    """An answer's body for a message: its own text where it has one (FastAPI: `detail`)."""
    if isinstance(body, Mapping):
        named = text_of(body.get("message")) or text_of(body.get("detail"))
        return named or json.dumps(body, ensure_ascii=False, default=str)
    return str(body)
