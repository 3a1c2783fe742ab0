"""The error of a provider's service for an invalid request."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Violation", "context_violation", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One error, independent of the dialect that writes its body.

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
    """Return the violation that both vendors answer with 400 `invalid_request_error`.

    Source: Anthropic, API errors; OpenAI, Error codes; both recorded.
    """
    return Violation(
        status=400, error_type="invalid_request_error", message=message, param=param, code=code
    )


def context_violation(dialect: str, tokens: int, limit: int) -> Violation:
    """Return the violation of a request with more tokens than the context has.

    Source: Anthropic, Context windows; OpenAI, Error codes (`context_length_exceeded`,
    worded differently by its two APIs).
    """
    if dialect == "anthropic":
        return invalid(f"prompt is too long: {tokens} tokens > {limit} maximum")
    if dialect == "openai_chat":
        return invalid(
            f"This model's maximum context length is {limit} tokens. However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    return invalid(
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        param="input",
        code="context_length_exceeded",
    )
