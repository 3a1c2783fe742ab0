"""A request that is longer than the model's context, and what the service says.

Sources: Anthropic, Context windows (`prompt is too long: ... tokens > ... maximum`); OpenAI,
Error codes (`context_length_exceeded`, worded differently by its two APIs).
"""

from __future__ import annotations

from tool_search.testing.violations import Violation, invalid

__all__ = ["context_violation"]


def context_violation(dialect: str, tokens: int, limit: int) -> Violation:
    """The refusal of a request with more tokens than the context has."""
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
