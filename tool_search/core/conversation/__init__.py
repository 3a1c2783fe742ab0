"""One conversation: with messages of its own, or in view of a host's."""

from __future__ import annotations

from tool_search.core.conversation.session import Session
from tool_search.core.conversation.view import View

__all__ = ["Session", "View"]
