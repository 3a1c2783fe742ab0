"""The question to the user, and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.tool import Tool
from tool_search.execution.permissions.grants import Scope
from tool_search.i18n import Language

__all__ = ["AskUser", "PermissionAnswer", "PermissionRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A question to the user.

    Attributes:
        tool: What would be called.
        arguments: With what.
        conversation: Where.
        language: What the user reads.
        user: Who is asked.
        question: What a tool asks by itself while it runs; empty: whether it may run.
        suggestions: Rules that an answer for longer may grant, the narrowest first.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    conversation: str
    language: Language
    user: str | None = None
    question: str = ""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """The user's answer.

    Attributes:
        allow: Whether the call is made.
        scope: How long a yes holds. `always` is for a user that the bot knows; of anybody
            else it holds in the conversation.
        rule: What a yes for longer grants; default: the tool, whatever the arguments. It
            holds for definitions as they are now: one that changes is asked about again.
        message: What the model is told with a no.
    """

    allow: bool
    scope: Scope = "once"
    rule: str | None = None
    message: str = ""


AskUser = Callable[[PermissionRequest], Awaitable[PermissionAnswer | bool]]
