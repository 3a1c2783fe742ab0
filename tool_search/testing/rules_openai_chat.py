"""The documented rules of OpenAI Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.violations import Violation

__all__ = ["check_openai_chat"]

_VENDOR = Endpoint()


def check_openai_chat(body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR) -> Violation | None:
    """The first documented rule that a request breaks, or None."""
    del body, endpoint
    return None
