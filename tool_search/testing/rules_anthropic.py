"""The documented rules of Anthropic Messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.violations import Violation

__all__ = ["check_anthropic"]

_VENDOR = Endpoint()


def check_anthropic(
    body: Mapping[str, Any], *, endpoint: Endpoint = _VENDOR, counting: bool = False
) -> Violation | None:
    """The first documented rule that a request breaks, or None."""
    del body, endpoint, counting
    return None
