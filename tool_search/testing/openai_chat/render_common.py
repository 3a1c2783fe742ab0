"""What both of OpenAI's APIs have in common: keys, errors, headers.

Source: OpenAI, Error codes; recorded errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.server.dialect import StreamEvent, dumped
from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CREATED", "OpenAIErrors"]

CREATED = 1_767_225_600
"""When every reply was made: without a clock, the same request gets the same bytes."""

# Source: OpenAI, Error codes. What is not in its list has the generic text.
_DOCUMENTED: dict[int, tuple[str, str, str | None]] = {
    401: ("invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    403: (
        "request_forbidden",
        "Country, region, or territory not supported",
        "unsupported_country_region_territory",
    ),
    404: ("invalid_request_error", "The model does not exist.", "model_not_found"),
    408: ("invalid_request_error", "Request timed out.", None),
    409: ("invalid_request_error", "The resource was updated by another request.", None),
    413: ("invalid_request_error", "Request too large.", None),
    429: ("requests", "Rate limit reached for requests.", "rate_limit_exceeded"),
    500: ("server_error", "The server had an error while processing your request.", None),
    503: (
        "service_unavailable_error",
        "The engine is currently overloaded, please try again later.",
        None,
    ),
}


class OpenAIErrors:
    """The part of a dialect that says no, and what a stream says that has nothing to say."""

    keep_alive = b": keep-alive\n\n"

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """A bearer key is required, any value will do."""
        if headers.get("authorization"):
            return None
        return Violation(
            status=401,
            error_type="invalid_request_error",
            message=(
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
            ),
        )

    def unreadable(self, reason: str) -> Violation:
        """The answer to a body that is not a JSON object."""
        return invalid(
            "We could not parse the JSON body of your request. (HINT: This likely means you "
            f"aren't using your HTTP library correctly. {reason})"
        )

    def documented(self, status: int) -> Violation:
        """The error that OpenAI documents for a status."""
        fallback = "server_error" if status >= 500 else "invalid_request_error"
        error_type, message, code = _DOCUMENTED.get(status, (fallback, f"Error {status}", None))
        return Violation(status=status, error_type=error_type, message=message, code=code)

    def error_body(self, violation: Violation, request_id: str) -> Mapping[str, Any]:  # noqa: ARG002 - it travels in a header
        """An error object."""
        return {
            "error": {
                "message": violation.message,
                "type": violation.error_type,
                "param": violation.param,
                "code": violation.code,
            }
        }

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """The error as an event of a stream."""
        return StreamEvent(data=dumped(self.error_body(violation, request_id)))

    def headers(self, request_id: str) -> Mapping[str, str]:
        """The headers of every answer."""
        return {"x-request-id": request_id}
