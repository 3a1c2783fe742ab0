"""Errors in the bodies of OpenAI's APIs and of compatible ones; needs no SDK."""

from __future__ import annotations

from tool_search.adapters.sdk.failures import Failure, error_in_body
from tool_search.adapters.wire.values import text_of

__all__ = ["body_failure"]

# Source: OpenAI, "Error codes": the status that each type or code has outside a stream.
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "requests": 429,
    "tokens": 429,
    "server_error": 500,
    "api_error": 500,
    "service_unavailable_error": 503,
    "overloaded_error": 503,
}


def body_failure(body: object, *, status: int | None) -> Failure | None:
    """Return the error that an answer reports, or None if it reports none.

    Args:
        body: Parsed JSON: `{"error": {...}}`, or `{"error": "...", "code": "..."}`.
        status: The HTTP status; 200 if the error came inside a reply.
    """
    found = error_in_body(body)
    if found is None:
        return None
    error, message = found
    kind, code = error.get("type"), error.get("code")
    # OpenRouter writes the status of the model's own provider here, as a number.
    number = code if isinstance(code, int) else 0
    named = str(code) if code not in (None, "") else text_of(kind) or None
    if status == 200:
        fallback = _STATUS_OF.get(named or "") or _STATUS_OF.get(text_of(kind))
        status = number if 400 <= number < 600 else fallback
    return Failure(detail=message, status=status, code=named)
