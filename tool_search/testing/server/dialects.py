"""The dialects of a stand-in server, and the rule checker over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.errors import ToolSearchError
from tool_search.testing.anthropic.render import AnthropicMessages
from tool_search.testing.openai_chat.render import OpenAIChat
from tool_search.testing.openai_responses.render import OpenAIResponses
from tool_search.testing.server.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.server.dialect import Dialect
    from tool_search.testing.violations import Violation

__all__ = ["DIALECTS", "UnknownDialectError", "check_request", "dialect_at"]

DIALECTS: tuple[Dialect, ...] = (AnthropicMessages(), OpenAIChat(), OpenAIResponses())

_VENDOR = Endpoint()


class UnknownDialectError(ToolSearchError):
    """The named dialect is not one of the stand-in server's."""


def check_request(
    dialect: str, body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR
) -> Violation | None:
    """Return the first documented rule that a request breaks, or None.

    Args:
        dialect: `anthropic`, `openai_chat` or `openai_responses`.
        body: The request's parsed JSON body.
        endpoint: The service that it is sent to; the vendor's own by default.

    Raises:
        UnknownDialectError: The dialect does not exist.
    """
    for known in DIALECTS:
        if known.name == dialect:
            return known.check(body, endpoint, counting=False)
    names = ", ".join(known.name for known in DIALECTS)
    raise UnknownDialectError(f"dialect {dialect!r} is not known; use one of {names}")


def dialect_at(path: str) -> Dialect | None:
    """Return the dialect that answers at a path (without its query), or None."""
    return next((known for known in DIALECTS if path in (known.path, known.count_path)), None)
