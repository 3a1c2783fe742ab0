"""The view that a model gets of a request, the same for every dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ModelView",
    "ViewCall",
    "ViewMessage",
    "ViewResult",
    "VisibleTool",
    "read_arguments",
]


def read_arguments(text: str) -> Mapping[str, Any]:
    """Return the arguments of a call; empty if the text is not a JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleTool:
    """A tool whose definition is in the model's context.

    Attributes:
        name: Its name on the wire.
        description: Its description.
        parameters: Its JSON Schema.
        namespace: The namespace that calls of it name (OpenAI Responses), or None.
        is_search: True if it is the dialect's own search tool.
        is_hosted: True if the service runs it, and the model continues in the same reply.
        is_late: True if its definition is in a message, not in the list of tools.
        cache_breakpoint: True if the prompt cache may end after it.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str | None = None
    is_search: bool = False
    is_hosted: bool = False
    is_late: bool = False
    cache_breakpoint: bool = False

    @classmethod
    def of(
        cls, definition: Mapping[str, Any], schema: str = "parameters", **more: Any
    ) -> VisibleTool:
        """Return the tool of a definition, whose schema is under a name."""
        return cls(
            name=definition["name"],
            description=definition.get("description") or "",
            parameters=definition.get(schema) or {},
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCall:
    """A tool call that an assistant message holds.

    Attributes:
        id: The id that its result names.
        name: The tool's name on the wire.
        arguments: The arguments; empty if they are not a JSON object.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewResult:
    """The result of one tool call.

    Attributes:
        call_id: The id of the call it answers.
        name: The called tool's name; empty if the history lacks it.
        text: Its text, blocks joined by line breaks.
        references: Names of the tools it reveals, in order.
        is_error: True if the call failed.
    """

    call_id: str
    name: str
    text: str = ""
    references: tuple[str, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMessage:
    """One message: its text, the calls it makes and the results it carries.

    Attributes:
        role: The author.
        text: Its text.
        calls: The calls it makes.
        results: The results it carries.
        brings: Names of the tools that it reveals itself, in addition to its results.
        cache_breakpoint: True if the prompt cache may end after it.
    """

    role: Literal["system", "user", "assistant"]
    text: str = ""
    calls: tuple[ViewCall, ...] = ()
    results: tuple[ViewResult, ...] = ()
    brings: tuple[str, ...] = ()
    cache_breakpoint: bool = False

    @property
    def revealed(self) -> tuple[str, ...]:
        """Every tool that this message reveals, in order."""
        found = (name for result in self.results for name in result.references)
        return (*self.brings, *found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One request as its model sees it.

    Attributes:
        dialect: `anthropic`, `openai_chat`, ...
        model: The model's name.
        tools: The tools in its context, in the order of the request's `tools`;
            deferred ones once they are referenced.
        tool_choice: `auto`, `none`, `any`, or the name of the one tool to call
            as `tool:NAME`.
        messages: The conversation, the system prompt first.
        hidden: The declared tools that are not in its context.
    """

    dialect: str
    model: str
    tools: tuple[VisibleTool, ...]
    tool_choice: str
    messages: tuple[ViewMessage, ...]
    hidden: tuple[VisibleTool, ...] = ()

    @property
    def may_call(self) -> bool:
        """True if the request lets the model call any tool."""
        return bool(self.tools) and self.tool_choice != "none"

    def tool(self, name: str) -> VisibleTool | None:
        """Return the visible tool of that name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def declared(self, name: str) -> VisibleTool | None:
        """Return the tool of that name, visible or hidden, or None."""
        return next((tool for tool in (*self.tools, *self.hidden) if tool.name == name), None)

    @property
    def turn(self) -> tuple[ViewMessage, ...]:
        """The last message of the user and everything after it.

        Text in a message with tool results belongs to the results (for instance Claude
        Code's "Tool loaded."), so such a message starts no turn.
        """
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if message.role == "user" and message.text and not message.results:
                return self.messages[index:]
        return self.messages

    @property
    def last_user_text(self) -> str:
        """The user's last text; empty if there is none."""
        turn = self.turn
        return turn[0].text if turn and turn[0].role == "user" else ""

    @property
    def results(self) -> tuple[ViewResult, ...]:
        """The tool results since the user's last message, in order."""
        return tuple(result for message in self.turn for result in message.results)

    @property
    def calls(self) -> tuple[ViewCall, ...]:
        """The tool calls since the user's last message, in order."""
        return tuple(call for message in self.turn for call in message.calls)
