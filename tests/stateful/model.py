"""A model that does what a test tells it to, and the checks of what it was sent."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tool_search.core.catalog.naming import wire_name
from tool_search.testing import CapturedRequest, ModelCall, ModelReply, ModelView


@dataclass
class ObedientModel:
    """Gives the replies that are queued, then an answer; searches find what is there."""

    replies: deque[ModelReply] = field(default_factory=deque)

    def reply(self, view: ModelView) -> ModelReply:
        """The next queued reply, where the request lets tools be called."""
        if not self.replies or not view.may_call:
            return ModelReply(text="That is all.", thinking="Nothing is left.")
        reply = self.replies.popleft()
        shown = {tool.name: tool.parameters.get("properties", {}) for tool in view.tools}
        calls = tuple(_hidden(call, shown) for call in reply.calls)
        # Models that may think do not always; the same request has the same answer.
        thinking = "What next?" if len(view.messages) % 3 else None
        return ModelReply(text=reply.text, calls=calls, thinking=thinking)


def _hidden(call: ModelCall, shown: Mapping[str, Mapping[str, Any]]) -> ModelCall:
    """The call by its name on the wire; a model writes the keys that it is shown."""
    name, arguments = wire_name(call.name), call.arguments
    if isinstance(arguments, Mapping) and "$filter" in arguments:
        key = next((key for key in shown.get(name, ()) if "filter" in key), "$filter")
        arguments = {key if k == "$filter" else k: value for k, value in arguments.items()}
    return ModelCall(name=name, arguments=arguments, hidden=True)


def tools_of(request: CapturedRequest) -> list[bytes]:
    """The entries of a request's tool list, each as bytes that compare: no cache marks."""
    tools = request.body.get("tools") or ()
    return [
        json.dumps({key: value for key, value in tool.items() if key != "cache_control"}).encode()
        for tool in tools
    ]


def references_of(request: CapturedRequest) -> set[str]:
    """The wire names that a Claude request refers to or has called, or Responses items bring."""
    if request.dialect == "openai_responses":
        brought = [tool for item in request.body["input"] for tool in item.get("tools", ())]
        return {member["name"] for tool in brought for member in tool.get("tools", [tool])}
    found = set()
    for message in request.body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] == "tool_use":
                found.add(block["name"])
            elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
                found |= {part["tool_name"] for part in block["content"] if "tool_name" in part}
    return found


def is_callable(name: str, request: CapturedRequest) -> bool:
    """Whether a request lets the model call a discovered tool without a search."""
    return not uncallable([name], request)


def uncallable(names: Iterable[str], request: CapturedRequest) -> list[str]:
    """Those of the discovered tools that the model could not call without a search."""
    listed = set(request.tool_names)
    if request.dialect == "openai_responses":
        if "previous_response_id" in request.body:
            # What a kept reply's history brought in lies with the service.
            return []
        return _missing(names, listed | references_of(request))
    if any("defer_loading" in tool for tool in request.body.get("tools") or ()):
        return _missing(names, listed & references_of(request))
    late = [tool for message in request.body["messages"] for tool in message.get("tools", ())]
    missing = _missing(names, listed | {tool["function"]["name"] for tool in late})
    if not missing or "call_tool" not in listed:
        return missing
    texts = [_text(part) for message in request.body["messages"] for part in _parts(message)]
    schemas = [text for text in texts if '"parameters"' in text]
    return [name for name in missing if not _is_shown(name, schemas)]


def _missing(names: Iterable[str], there: AbstractSet[str]) -> list[str]:
    return [name for name in names if wire_name(name) not in there]


def _is_shown(name: str, schemas: Iterable[str]) -> bool:
    mark = f'"name":"{wire_name(name)}"'
    return any(mark in text for text in schemas)


def _parts(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _text(part: Mapping[str, Any]) -> str:
    if part.get("type") == "tool_result":
        content = part["content"]
        return content if isinstance(content, str) else "".join(map(_text, content))
    return str(part.get("text", ""))
