"""What a provider's service says when it refuses a request."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Violation", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One refusal, independent of the dialect that words its body.

    Attributes:
        status: The HTTP status.
        error_type: The `error.type` of the body.
        message: The `error.message` of the body.
        param: OpenAI's `error.param`: the parameter that is wrong.
        code: OpenAI's `error.code`, Anthropic's `error.details.error_code`.
    """

    status: int
    error_type: str
    message: str
    param: str | None = None
    code: str | None = None


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Violation:
    """The violation that both vendors answer with 400 `invalid_request_error`.

    Source: Anthropic, API errors; OpenAI, Error codes; both recorded.
    """
    return Violation(
        status=400, error_type="invalid_request_error", message=message, param=param, code=code
    )
