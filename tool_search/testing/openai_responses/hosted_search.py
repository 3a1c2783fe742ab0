"""The search that OpenAI's service runs itself, within one reply.

The model sends `paths`, which are names of functions or namespaces, or words. The
service answers with definitions, and the model continues. Both items are in the
reply, without a `call_id`.

Source: recorded replies (`test_openai_native_tool_search*`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.models.likeness import likeness, words
from tool_search.testing.openai_responses.rules_tools import loaded_by, members
from tool_search.testing.openai_responses.view import items_of
from tool_search.testing.view import VisibleTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    JSON = Mapping[str, Any]

__all__ = ["hosted_search"]

_MAX_COUNT = 5


def hosted_search(body: JSON, arguments: JSON, *, made: str) -> tuple[JSON, tuple[JSON, ...]]:
    """Return the conversation after a hosted search, and the items of that search.

    Args:
        body: The request, with earlier searches in its input.
        arguments: `paths`, or words under any other name.
        made: The suffix of the items' ids.
    """
    call = {
        "id": f"tsc_{made}",
        "type": "tool_search_call",
        "status": "completed",
        "arguments": dict(arguments),
        "call_id": None,
        "execution": "server",
    }
    output = {
        "id": f"tso_{made}",
        "type": "tool_search_output",
        "status": "completed",
        "call_id": None,
        "execution": "server",
        "tools": list(_found_definitions(body, arguments)),
    }
    return {**body, "input": [*items_of(body), call, output]}, (call, output)


def _found_definitions(body: JSON, arguments: JSON) -> Iterator[JSON]:
    """Yield the found definitions as the request declares them, in their namespaces."""
    tools = body.get("tools") or ()
    loaded = {tool["name"] for _, tool in loaded_by(items_of(body))}
    waiting = [
        (namespace, tool)
        for namespace, tool in members(tools, loaded=False)
        if tool.get("defer_loading") and tool["name"] not in loaded
    ]
    chosen = _choose_names(waiting, arguments)
    for tool in tools:
        if tool["type"] == "function" and tool["name"] in chosen:
            yield tool
        elif tool["type"] == "namespace":
            inner = [member for member in tool["tools"] if member["name"] in chosen]
            if inner:
                yield {**tool, "tools": inner}


def _choose_names(waiting: list[tuple[str | None, JSON]], arguments: JSON) -> set[str]:
    paths = arguments.get("paths")
    if isinstance(paths, list):
        return {tool["name"] for space, tool in waiting if {tool["name"], space} & set(paths)}
    asked = words(" ".join(map(str, arguments.values())))
    scores = {tool["name"]: likeness(VisibleTool.of(tool), asked) for _, tool in waiting}
    best = sorted(scores, key=lambda name: -scores[name])[:_MAX_COUNT]
    return {name for name in best if scores[name] > 0}
