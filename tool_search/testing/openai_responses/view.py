"""The view that a model gets of an OpenAI Responses request.

Source: OpenAI, Tool search: a deferred definition is shown at the
`tool_search_output` or `additional_tools` item that loads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_responses.rules_messages import kind_of
from tool_search.testing.openai_responses.rules_tools import loaded_by, members
from tool_search.testing.view import (
    ModelView,
    ViewCall,
    ViewMessage,
    ViewResult,
    VisibleTool,
    read_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    JSON = Mapping[str, Any]

__all__ = ["SEARCH_NAME", "items_of", "view_of"]

SEARCH_NAME = "tool_search"
"""The name, in a view, of the dialect's own search tool; it has none on the wire."""


def view_of(body: JSON) -> ModelView:
    """Return the view of a request that has passed the rules."""
    items = items_of(body)
    choice = body.get("tool_choice")
    shown, hidden = _tools(body.get("tools") or (), items)
    names: dict[str, str] = {}
    instructions = body.get("instructions")
    opening = (ViewMessage(role="system", text=instructions),) if instructions else ()
    return ModelView(
        dialect="openai_responses",
        model=body["model"],
        tools=tuple(_allowed_tools(shown, choice)),
        tool_choice=_tool_choice(choice),
        messages=(*opening, *_messages(items, names)),
        hidden=hidden,
    )


def items_of(body: JSON) -> Sequence[JSON]:
    """Return the input as items; text is one user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given or []


def _tools(
    tools: Sequence[JSON], items: Sequence[JSON]
) -> tuple[tuple[VisibleTool, ...], tuple[VisibleTool, ...]]:
    """Return the visible tools and the hidden ones, each in order of declaration."""
    shown: dict[tuple[str | None, str], VisibleTool] = {}
    hidden: dict[tuple[str | None, str], VisibleTool] = {}
    for tool in tools:
        if tool["type"] == "tool_search":
            hosted = tool.get("execution") != "client"
            named = {**tool, "name": SEARCH_NAME}
            shown[(None, SEARCH_NAME)] = VisibleTool.of(named, is_hosted=hosted, is_search=True)
        for namespace, function in members([tool], loaded=False):
            place = hidden if function.get("defer_loading") else shown
            place[(namespace, function["name"])] = VisibleTool.of(function, namespace=namespace)
    for namespace, function in loaded_by(items):
        key = (namespace, function["name"])
        hidden.pop(key, None)
        shown[key] = VisibleTool.of(function, namespace=namespace, is_late=True)
    return tuple(shown.values()), tuple(hidden.values())


def _allowed_tools(tools: tuple[VisibleTool, ...], choice: Any) -> Iterator[VisibleTool]:
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        yield from tools
        return
    names = {tool.get("name") or SEARCH_NAME for tool in choice["tools"]}
    yield from (tool for tool in tools if tool.name in names)


def _tool_choice(choice: Any) -> str:
    if isinstance(choice, dict):
        if choice["type"] == "function":
            return f"tool:{choice['name']}"
        return "any" if choice.get("mode") == "required" else "auto"
    return {"required": "any", "none": "none"}.get(choice or "auto", "auto")


def _messages(items: Sequence[JSON], names: dict[str, str]) -> Iterator[ViewMessage]:
    """Yield each item as a message; names of calls are added to `names` for their results."""
    for index, item in enumerate(items):
        kind = kind_of(item)
        if kind == "message":
            role = item["role"]
            text = _text(item["content"])
            yield ViewMessage(role="system" if role == "developer" else role, text=text)
        elif kind in ("function_call", "tool_search_call"):
            call = _call(index, item)
            names[call.id] = call.name
            yield ViewMessage(role="assistant", calls=(call,))
        elif kind in ("function_call_output", "tool_search_output"):
            yield ViewMessage(role="user", results=(_result(index, item, names),))
        elif kind == "additional_tools":
            found = tuple(function["name"] for _, function in loaded_by([item]))
            yield ViewMessage(role="system", brings=found)


def _call(index: int, item: JSON) -> ViewCall:
    if kind_of(item) == "tool_search_call":
        name, arguments = SEARCH_NAME, item["arguments"]
    else:
        name, arguments = item["name"], read_arguments(item["arguments"])
    return ViewCall(id=_call_id(index, item), name=name, arguments=arguments)


def _result(index: int, item: JSON, names: dict[str, str]) -> ViewResult:
    call_id = _call_id(index, item)
    if kind_of(item) == "tool_search_output":
        found = tuple(function["name"] for _, function in loaded_by([item]))
        return ViewResult(call_id=call_id, name=SEARCH_NAME, references=found)
    return ViewResult(call_id=call_id, name=names.get(call_id, ""), text=_text(item["output"]))


def _call_id(index: int, item: JSON) -> str:
    """Return the id that pairs call and result; hosted searches get one of their own."""
    return str(item.get("call_id") or item.get("id") or f"search_{index}")


def _text(content: str | Sequence[JSON]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if "text" in part)
