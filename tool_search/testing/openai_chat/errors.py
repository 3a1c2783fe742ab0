"""Errors and headers that both of OpenAI's APIs share.

Source: OpenAI, Error codes; recorded errors, and GitHub issues that quote the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.server.dialect import StreamEvent, dump_json
from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterator, Mapping

__all__ = [
    "CREATED",
    "OpenAIErrors",
    "empty_array",
    "missing",
    "rejected_schema",
    "text_violations",
    "too_long",
    "type_violations",
    "unknown_parameters",
    "unmatched",
    "unsupported_value",
    "wrong_type",
]

CREATED = 1_767_225_600
"""The creation time of every reply, fixed so that equal requests get equal bytes."""

# Source: OpenAI, Error codes. Other statuses have the generic text.
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

_JSON_TYPES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}


class OpenAIErrors:
    """The errors and keep-alives of an OpenAI dialect."""

    keep_alive = b": keep-alive\n\n"

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """Return a violation if the bearer key is missing; any value will do."""
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

    def unreadable_body(self, reason: str) -> Violation:
        """Return the answer to a body that is not a JSON object."""
        return invalid(
            "We could not parse the JSON body of your request. (HINT: This likely means you "
            f"aren't using your HTTP library correctly. {reason})"
        )

    def documented_error(self, status: int) -> Violation:
        """Return the error that OpenAI documents for a status."""
        fallback = "server_error" if status >= 500 else "invalid_request_error"
        error_type, message, code = _DOCUMENTED.get(status, (fallback, f"Error {status}", None))
        return Violation(status=status, error_type=error_type, message=message, code=code)

    def error_body(self, violation: Violation, request_id: str) -> Mapping[str, Any]:  # noqa: ARG002 - it travels in a header
        """Return an error object."""
        return {
            "error": {
                "message": violation.message,
                "type": violation.error_type,
                "param": violation.param,
                "code": violation.code,
            }
        }

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """Return the error as an event of a stream."""
        return StreamEvent(data=dump_json(self.error_body(violation, request_id)))

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Return the headers of every answer."""
        return {"x-request-id": request_id}


def missing(where: str) -> Violation:
    """Return the violation of a required value that is missing."""
    return invalid(
        f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
    )


def rejected_schema(where: str, name: str) -> Violation:
    """Return the violation of a schema for a reason that the service does not document."""
    return invalid(
        f"Invalid schema for function '{name}': it is not valid under any of the given schemas.",
        param=f"{where}.parameters",
        code="invalid_function_parameters",
    )


def wrong_type(where: str, expected: str, value: object) -> Violation:
    """Return the violation of a value's JSON type; `expected` has its article."""
    got = "null" if value is None else _JSON_TYPES.get(type(value), "a number")
    return invalid(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.",
        param=where,
        code="invalid_type",
    )


def unsupported_value(where: str, value: object, supported: Collection[str]) -> Violation:
    """Return the violation of a value that is not one of the supported ones."""
    listed = ", ".join(f"'{name}'" for name in supported)
    return invalid(
        f"Invalid value: '{value}'. Supported values are: {listed}.",
        param=where,
        code="invalid_value",
    )


def empty_array(where: str) -> Violation:
    """Return the violation of a list without an entry."""
    return invalid(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=where,
        code="empty_array",
    )


def too_long(where: str, value: str, most: int) -> Violation:
    """Return the violation of a string over its maximum length."""
    return invalid(
        f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but "
        f"got a string with length {len(value)} instead.",
        param=where,
        code="string_above_max_length",
    )


def unmatched(where: str, pattern: str) -> Violation:
    """Return the violation of a string that does not match its pattern."""
    return invalid(
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the "
        f"pattern '{pattern}'.",
        param=where,
        code="invalid_value",
    )


def type_violations(
    where: str, value: object, kind: type, expected: str, *, required: bool = False
) -> Iterator[Violation]:
    """Yield the violation of a value that is missing or has another JSON type."""
    if value is not None and not isinstance(value, kind):
        yield wrong_type(where, expected, value)
    elif value is None and required:
        yield missing(where)


def text_violations(
    where: str, value: Any, *, most: int | None = None, pattern: re.Pattern[str] | None = None
) -> Iterator[Violation]:
    """Yield the violations of a required string, which is not empty unless the pattern says so."""
    yield from type_violations(where, value, str, "a string", required=True)
    if not value and pattern is None:
        yield invalid(
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got "
            "an empty string instead.",
            param=where,
            code="empty_string",
        )
    if most is not None and len(value) > most:
        yield too_long(where, value, most)
    if pattern is not None and not pattern.fullmatch(value):
        yield unmatched(where, f"^{pattern.pattern}$")


def unknown_parameters(
    where: str, value: Mapping[str, object], known: Collection[str]
) -> Iterator[Violation]:
    """Yield a violation for each unknown member."""
    for name in value:
        if name not in known:
            at = f"{where}.{name}" if where else name
            yield invalid(f"Unknown parameter: '{at}'.", param=at, code="unknown_parameter")
