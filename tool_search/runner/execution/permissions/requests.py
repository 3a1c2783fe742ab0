"""Permission questions to the user, and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.core.catalog.tool import Tool
from tool_search.i18n import Language
from tool_search.runner.execution.permissions.grants import Scope

__all__ = ["AskUser", "PermissionAnswer", "PermissionRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A question to the user.

    Attributes:
        tool: The tool that would be called.
        arguments: The call's arguments.
        conversation: The conversation's key.
        language: The language that the user reads.
        user: The user who is asked.
        question: The question of a running tool; empty: permission for the call.
        suggestions: Rules that a lasting answer may grant, the narrowest first.
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
        allow: True if the call is allowed.
        scope: The duration of a yes. `always` needs a user that the bot knows; for others it
            means the conversation.
        rule: The rule that a lasting yes grants; default: the tool with any arguments. The
            grant is pinned to the current definitions: changed ones ask again.
        message: A text for the model after a no.
    """

    allow: bool
    scope: Scope = "once"
    rule: str | None = None
    message: str = ""


AskUser = Callable[[PermissionRequest], Awaitable[PermissionAnswer | bool]]
