"""Definitions that a message brings into a request, in any dialect that takes them late."""

from __future__ import annotations

from tool_search.catalog.tool import Tool
from tool_search.messages import Message, ReferencePart

__all__ = ["late_tools"]


def late_tools(message: Message) -> list[Tool]:
    """The definitions in a message's content, in order."""
    parts = () if isinstance(message.content, str) else message.content
    return [tool for part in parts if isinstance(part, ReferencePart) for tool in part.tools]
