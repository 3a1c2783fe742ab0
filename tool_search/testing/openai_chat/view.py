"""The view that a model gets of an OpenAI Chat Completions request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_search.testing.openai_chat.rules_messages import loaded_by
from tool_search.testing.view import (
    ModelView,
    ViewCall,
    ViewMessage,
    ViewResult,
    VisibleTool,
    read_arguments,
)

__all__ = ["view_of"]

JSON = Mapping[str, Any]


def view_of(body: JSON) -> ModelView:
    """Return the view of a request that has passed the rules."""
    names: dict[str, str] = {}
    tools = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
    late = [tool["function"] for tool in loaded_by(body["messages"]) if "function" in tool]
    shown = _allowed_tools(tools, body.get("tool_choice"))
    return ModelView(
        dialect="openai_chat",
        model=body["model"],
        tools=(
            *(VisibleTool.of(tool) for tool in shown),
            *(VisibleTool.of(tool, is_late=True) for tool in late),
        ),
        tool_choice=_tool_choice(body.get("tool_choice")),
        messages=tuple(_message(message, names) for message in body["messages"]),
    )


def _tool_choice(choice: str | JSON | None) -> str:
    if isinstance(choice, Mapping):
        if "function" in choice:
            return f"tool:{choice['function']['name']}"
        mode = choice.get("allowed_tools", {}).get("mode", "auto")
        return "any" if mode == "required" else "auto"
    return {"required": "any", "none": "none"}.get(choice or "auto", "auto")


def _allowed_tools(tools: list[JSON], choice: str | JSON | None) -> list[JSON]:
    if not isinstance(choice, Mapping) or "allowed_tools" not in choice:
        return tools
    allowed = {
        tool["function"]["name"]
        for tool in choice["allowed_tools"]["tools"]
        if tool["type"] == "function"
    }
    return [tool for tool in tools if tool["name"] in allowed]


def _message(message: JSON, names: dict[str, str]) -> ViewMessage:
    """Return one message; the names of its calls are added to `names` for their results."""
    role = message["role"]
    text = _text(message.get("content"))
    if role == "tool":
        call_id = message["tool_call_id"]
        result = ViewResult(call_id=call_id, name=names.get(call_id, ""), text=text)
        return ViewMessage(role="user", results=(result,))
    calls = tuple(
        ViewCall(
            id=call["id"],
            name=call["function"]["name"],
            arguments=read_arguments(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
        if "function" in call
    )
    names.update((call.id, call.name) for call in calls)
    if role == "assistant":
        return ViewMessage(role="assistant", text=text, calls=calls)
    brings = tuple(tool["function"]["name"] for tool in message.get("tools") or ())
    return ViewMessage(role="user" if role == "user" else "system", text=text, brings=brings)


def _text(content: str | list[JSON] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")
