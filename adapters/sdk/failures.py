"""Failures of providers, each raised as a `ProviderError` that never shows a key.

Every adapter has a table that reads its SDK's exceptions into a `Failure`; the parts that
the tables share are here.
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
from urllib.parse import urlsplit

from pydantic import SecretStr

from tool_search.adapters.wire.incoming import TooLargeError
from tool_search.adapters.wire.requests import named_picture
from tool_search.adapters.wire.values import list_of, mapping_of, text_of
from tool_search.core.values.redaction import redacted_text
from tool_search.errors import ProviderError, ToolSearchError

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
    "body_failure",
    "body_text",
    "connection_failure",
    "foreign_reply",
    "http_errors",
    "malformed_reply",
    "raise_failure",
    "read_failure",
    "reply_failure",
    "retry_after_s",
    "timeout_failure",
    "unknown_failure",
]

TIMEOUT = "timeout"
"""`ProviderError.code` if nothing came in time."""
CONNECTION = "connection"
"""`ProviderError.code` if the endpoint could not be reached or hung up."""
BROKEN_REPLY = "broken_reply"
"""`ProviderError.code` of a reply that stopped in the middle."""
MALFORMED_REPLY = "malformed_reply"
"""`ProviderError.code` of a reply that does not follow the dialect's documentation."""
REPLY_TOO_LARGE = "reply_too_large"
"""`ProviderError.code` of a reply with more bytes or calls than any model writes."""

# openai before 3 and anthropic before 1 bring httpx, later ones httpx2; openai 2.54 takes
# clients of both. Neither is imported here: the installed SDK has loaded the right one.
HTTP_LIBRARIES = ("httpx", "httpx2")
"""The HTTP libraries that an SDK may use."""

_KEY_REFUSED = 401
_NO_PATH = 404
# FastAPI, Go's net/http (Ollama), Express, OpenAI, LM Studio and nginx know no such path.
_BARE_404 = re.compile(
    r"^\W*(?:error\W+)?(?:404\W+)?(?:\w+ )?not found\W*(?:\(not_found\w*\))?\W*$"
    r"|\bcannot post\b|invalid url|unexpected endpoint|<html",
    re.IGNORECASE,
)
_MAX_DETAIL_CHARS = 1_000
# Far longer than the shown text, so that the cut there cannot leave a part of a key.
_MAX_MASKED_CHARS = 100_000
_MAX_CODE_CHARS = 2_000
_KEY_LIKE = re.compile(r"\b(?:sk|key|xai|gsk)-[\w*.-]{6,}")
_MASK = "***"

# Gateways wrap an error in two or three others. A list may have an error for each message.
_MAX_PARTS = 100
_SAYING = (
    "message", "msg", "detail", "error", "errors", "error_msg", "error_message", "errormessage",
    "innererror", "metadata", "raw",
)  # fmt: skip
# The status that each type or code has outside a stream. Sources: Anthropic, "Errors"; OpenAI,
# "Error codes".
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "requests": 429,
    "tokens": 429,
    "server_error": 500,
    "api_error": 500,
    "service_unavailable_error": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# An object, or one that was written into a text once more.
_JSON_INSIDE = re.compile(r'\{\s*"|"\s*\{\s*\\"')
# An HTTP status, or a type that every refusal has.
_MEANINGLESS = re.compile(r"|[1-5]\d\d|error|invalid_request_error|upstream_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure that no exception was made of yet.

    Attributes:
        detail: The provider's message, or ours if none came.
        status: The HTTP status; for an error inside an answer of 200, the status that
            its type has elsewhere; None if no answer came.
        code: The provider's own type or code, or one of this module's.
        retry_after_s: The seconds after which the service asks for a retry, if it does.
    """

    detail: str
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None


class ReplyFailedError(ToolSearchError):
    """An answer that is an error or not a reply; providers raise it as `ProviderError`.

    Attributes:
        failure: The failure.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


ErrorMap = Mapping[type[Exception], Callable[[Any], Failure]]


def read_failure(exc: Exception, error_map: ErrorMap) -> Failure:
    """Return the failure of an exception, by the nearest of its classes in the table."""
    for kind in type(exc).__mro__:
        if kind in error_map:
            return error_map[kind](exc)
    return unknown_failure(exc)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a service asks for a retry; None if it names none.

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
    failure: Failure,
    *,
    provider: str,
    secret: SecretStr,
    cause: Exception | None = None,
    key_env: str | None = None,
    body: bytes = b"{}",
    base_url: str | None = None,
) -> NoReturn:
    """Raise the failure as a `ProviderError` with the key masked.

    The cause is chained, unless its own text shows the key: a traceback prints it.

    Args:
        failure: The failure.
        provider: The provider's `id`.
        secret: Its key.
        cause: The exception that reported the failure.
        key_env: The environment variable that the key came from, for the advice.
        body: The request's body, the names of whose fields the error has.
        base_url: The address below which the dialect's path has no version; None: it has one,
            or the address is the vendor's own.
    """
    key = secret.get_secret_value()
    masked = _mask_secret(_shorten(failure.detail, _MAX_MASKED_CHARS), key)
    error = ProviderError(
        _shorten(masked, _MAX_DETAIL_CHARS),
        provider=provider,
        status=failure.status,
        code=None if failure.code is None else _mask_secret(failure.code[:_MAX_CODE_CHARS], key),
        retry_after_s=failure.retry_after_s,
        fields=json.loads(body),
        remedy=_advice(failure, key_env, base_url),
        picture=named_picture(masked, body),
    )
    said = str(cause)
    if len(said) > _MAX_MASKED_CHARS or _mask_secret(said, key) != said:
        cause = None
    raise error from cause


def _shorten(text: str, max_chars: int) -> str:
    """Return the text without its middle, if it is too long: the inmost error comes last."""
    end = max_chars // 3
    gap = " ... "
    is_long = len(text) > max_chars
    return f"{text[: max_chars - end - len(gap)]}{gap}{text[-end:]}" if is_long else text


def _advice(failure: Failure, variable: str | None, base_url: str | None) -> str:
    """Return what to do about a failure; empty: nothing is known."""
    if failure.status == _NO_PATH and base_url and not urlsplit(base_url).path.strip("/"):
        # Not quoted: an address may hold a password.
        is_bare = _BARE_404.search(failure.detail)
        return "base_url has no path: most services want /v1 at its end" if is_bare else ""
    if failure.status != _KEY_REFUSED:
        return ""
    named = f"the environment variable {variable}" if variable else "api_key"
    return f"the key in {named} is not accepted: set it to a key of this service, then start again"


def _mask_secret(text: str, secret: str) -> str:
    for written in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        text = text.replace(written, _MASK) if written else text
    return redacted_text(_KEY_LIKE.sub(_MASK, text))


def timeout_failure(exc: Exception) -> Failure:
    """Return the failure of an answer that did not come in time."""
    return Failure(detail=_with_cause(exc, "no answer in time"), code=TIMEOUT)


def connection_failure(exc: Exception) -> Failure:
    """Return the failure of an endpoint that could not be reached, or hung up."""
    return Failure(detail=_with_cause(exc, "the connection failed"), code=CONNECTION)


def malformed_reply(exc: Exception) -> Failure:
    """Return the failure of an answer that is not JSON in UTF-8."""
    return Failure(
        detail=f"the reply cannot be read: {exc}",
        # Any other status would have been an error of its own.
        status=getattr(exc, "status_code", 200),
        code=MALFORMED_REPLY,
    )


def foreign_reply(reply: object, expected: str) -> Failure:
    """Return the error that JSON reports in place of a reply, or that it is no reply."""
    return body_failure(reply, status=200) or Failure(
        detail=f"the reply is not a {expected}: {body_text(reply)!r}",
        status=200,
        code=MALFORMED_REPLY,
    )


def too_large_failure(exc: Exception) -> Failure:
    """Return the failure of a reply beyond a bound."""
    return Failure(detail=f"the reply was abandoned: {exc}", code=REPLY_TOO_LARGE)


def unknown_failure(exc: Exception) -> Failure:
    """Return the failure of an exception that no other row of an error map names."""
    return Failure(detail=f"{type(exc).__name__}: {exc}")


def reply_failure(exc: ReplyFailedError) -> Failure:
    """Return the failure that the answer itself reports."""
    return exc.failure


def http_errors() -> ErrorMap:
    """Return the meaning of each exception of a loaded HTTP library.

    anthropic, and openai before 3, let some of them through while a stream is read.
    """
    meanings: dict[str, Callable[[Any], Failure]] = {
        "TimeoutException": timeout_failure,
        "HTTPError": connection_failure,
        "StreamError": connection_failure,
    }
    loaded = (sys.modules[name] for name in HTTP_LIBRARIES if name in sys.modules)
    return {TooLargeError: too_large_failure} | {
        getattr(library, name): meaning for library in loaded for name, meaning in meanings.items()
    }


def _with_cause(exc: Exception, summary: str) -> str:
    cause = exc.__cause__ or exc
    text = str(cause)
    # A client that cannot send a header quotes it, and the key is one.
    if not text or "header" in text.lower():
        return f"{summary} ({type(cause).__name__})"
    return f"{summary} ({type(cause).__name__}: {text})"


def body_failure(body: object, *, status: int | None) -> Failure | None:
    """Return the error that an answer reports, or None if it reports none.

    Args:
        body: Parsed JSON: `{"error": {...}}`, or `{"error": "...", "code": "..."}`.
        status: The HTTP status; 200 if the error came inside a reply.
    """
    found = _error_in_body(body)
    if found is None:
        return None
    error, message = found
    kind, code = text_of(error.get("type")), error.get("code")
    own = "" if code is None else str(code)
    named = text_of(mapping_of(error.get("details")).get("error_code")) or own or kind or None
    if status == 200:
        # OpenRouter writes the status of the model's own provider into `code`, as a number.
        number = code if isinstance(code, int) and 400 <= code < 600 else None
        status = number or _STATUS_OF.get(named or "") or _STATUS_OF.get(kind)
    return Failure(detail=message, status=status, code=named)


def _error_in_body(body: object) -> tuple[Mapping[str, Any], str] | None:
    """Return the error object in a parsed answer and all that it says; None if it has none.

    Some services write `{"error": "..."}`, and xAI the code beside it; Cloudflare has a list
    under `errors`.
    """
    # Google's compatible endpoint wraps the object in a list.
    first = next(iter(list_of(body)), body)
    if not isinstance(first, Mapping):
        return None
    error = first.get("error") or first.get("errors")
    if not error:
        return None
    # The SDK unwraps the object only if the body is a mapping.
    inner = next(iter(list_of(error)), error)
    if not isinstance(inner, Mapping):
        return first, body_text(first)
    nested = None if "message" in inner else _error_in_body(inner)
    return nested or (inner, body_text(error if len(list_of(error)) > 1 else inner))


def body_text(body: object) -> str:
    """Return all that an answer's body says, without repetition, or else its JSON.

    Sources: FastAPI (`detail`, in it `loc` and `msg`); Xiaomi (a sentence in `param`); Azure
    (`innererror`); Cloudflare (`errors`, `internalCode`); OpenRouter (`metadata.raw`), new-api,
    one-api and LiteLLM: the answer of the model's own provider as JSON inside a text.
    """
    said: list[str] = []
    labels: list[str] = []
    parts = [body]
    for _ in range(_MAX_PARTS):
        if not parts:
            break
        part = parts.pop()
        if isinstance(part, str):
            inner = _split_json(part)
            parts += inner
            if not inner and not any(part.strip() in text for text in said):
                said.append(part.strip())
        elif isinstance(part, list):
            parts += reversed(part[:_MAX_PARTS])
        elif isinstance(part, Mapping):
            parts += reversed(_statements(part))
            labels += _labels(part, is_outermost=part is body)
    text = ": ".join(said).replace(": (", " (")
    for label in labels if said else ():
        text += f" ({label})" if label not in text else ""
    return text or json.dumps(body, ensure_ascii=False, default=str)


def _statements(error: Mapping[str, Any]) -> list[object]:
    """Return the fields of an error that say something, the most exact name first."""
    loc, msg = list_of(error.get("loc")), text_of(error.get("msg"))
    if loc and msg:
        return [f"{'.'.join(map(str, loc))}: {msg}"]
    named = {str(key).lower(): value for key, value in error.items()}
    param = error.get("param")
    return [*map(named.get, _SAYING), param if isinstance(param, Mapping | list) else None]


def _labels(error: Mapping[str, Any], *, is_outermost: bool) -> list[str]:
    """Return the codes of an error, and the place that it names.

    The outermost code is `Failure.code`.
    """
    code = "" if is_outermost else error.get("code") or error.get("type")
    labels = (error.get("param"), code, error.get("internalCode"))
    named = [str(label) for label in labels if isinstance(label, str | int)]
    return [label for label in named if not _MEANINGLESS.fullmatch(label)]


def _split_json(text: str) -> list[object]:
    """Return the parts of a text around another error's JSON in it, last first; empty: none."""
    found = _JSON_INSIDE.search(text) if len(text) <= _MAX_MASKED_CHARS else None
    if found is None:
        return []
    try:
        inner, end = json.JSONDecoder().raw_decode(text, found.start())
    except (ValueError, RecursionError):
        return []
    # A quoted schema or message is a part of the sentence.
    if isinstance(inner, Mapping) and not any(_statements(inner)):
        return []
    around = [part.strip(" \t\r\n:,;-'[]") for part in (text[end:], text[: found.start()])]
    return [*filter(None, (around[0], inner, around[1]))]
