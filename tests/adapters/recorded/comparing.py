"""Recorded and written requests of each dialect without what may differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tool_search.i18n import LANGUAGES, text

JSON = Mapping[str, Any]

SEARCH_TOOLS = ("search_tools", "tool_search", "tool_search_tool_bm25", "tool_search_tool_regex")
MESSAGES = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input"}
_WORDING = ("description", "cache_control")
_BOUNDARIES = [text("search.loaded", language) for language in LANGUAGES]


class _Ids:
    """Says of an id which call it is: the first, the second, …; the newest of one id."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._count = 0

    def made(self, call_id: str) -> int:
        """Return the number of a new call."""
        self._calls[call_id] = self._count = self._count + 1
        return self._count

    def answered(self, call_id: str) -> int:
        """Return the number of the call that a result answers."""
        return self._calls[call_id]


def _tools(entries: Iterable[JSON], *, search: bool) -> list[JSON]:
    shown = [_tool(entry) for entry in entries]
    kept = [tool for tool in shown if search or not _is_search(tool)]
    if any(tool.get("type") == "tool_search" for tool in shown):
        return kept
    return sorted(kept, key=lambda tool: str(tool["name"]))


def _is_search(tool: JSON) -> bool:
    return tool.get("name") == "search" or tool.get("type") == "tool_search"


def _tool(entry: JSON) -> JSON:
    function = {key: value for key, value in entry.items() if key not in _WORDING}
    if "function" in function:
        return _tool({**function["function"], "type": "function"})
    if function.get("type") == "tool_search":
        function.pop("parameters", None)
    elif function.get("name") in SEARCH_TOOLS:
        kind = function.get("type", "function")
        return {"name": "search"} if kind == "function" else {"name": "search", "type": kind}
    return function


def _body(body: JSON, left_out: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in (*_WORDING, *left_out)}


def _anthropic(body: JSON, *, search: bool) -> dict[str, Any]:
    ids = _Ids()
    return {
        **_body(body, ("system",)),
        "tools": _tools(body.get("tools") or (), search=search),
        "messages": [
            {**message, "content": list(_blocks(message["content"], ids))}
            for message in body["messages"]
        ],
    }


def _blocks(content: Any, ids: _Ids) -> Iterator[JSON]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    refers = "tool_reference" in json.dumps(blocks)
    for given in blocks:
        block = {key: value for key, value in given.items() if key not in _WORDING}
        if refers and block.get("text") in _BOUNDARIES:
            continue
        if block["type"] == "tool_use":
            block["id"] = ids.made(block["id"])
            if block["name"] in SEARCH_TOOLS:
                block |= {"name": "search", "input": {}}
        elif block["type"] == "tool_result":
            block["tool_use_id"] = ids.answered(block["tool_use_id"])
        yield block


def _openai_chat(body: JSON, *, search: bool) -> dict[str, Any]:
    ids, searches = _Ids(), set[int]()
    messages = body["messages"]
    instructed = messages[0]["role"] == "system"
    return {
        **_body(body, ()),
        "tools": _tools(body.get("tools") or (), search=search),
        "messages": [_chat_message(m, ids, searches) for m in messages[instructed:]],
    }


def _chat_message(message: JSON, ids: _Ids, searches: set[int]) -> JSON:
    if message["role"] == "tool":
        call, content = ids.answered(message["tool_call_id"]), message["content"]
        if call in searches:
            result = json.loads(content)
            content = [m["name"] for m in result.get("matches", result.get("discovered_tools"))]
        return {**message, "tool_call_id": call, "content": content}
    calls = []
    for call in message.get("tool_calls") or ():
        number, function = ids.made(call["id"]), call["function"]
        if function["name"] in SEARCH_TOOLS:
            searches.add(number)
            function = {"name": "search"}
        calls.append({**call, "id": number, "function": function})
    return {**message, "tool_calls": calls} if calls else message


def _openai_responses(body: JSON, *, search: bool) -> dict[str, Any]:
    ids, searches = _Ids(), set[int]()
    items = body["input"]
    listed = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return {
        **_body(body, ("instructions",)),
        "tools": _tools(body.get("tools") or (), search=search),
        "input": [_item(item, ids, searches) for item in listed],
    }


def _item(given: JSON, ids: _Ids, searches: set[int]) -> JSON:
    item = {key: value for key, value in given.items() if key not in ("id", *_WORDING)}
    kind = item.get("type", "message")
    if "tools" in item:
        item["tools"] = [_tool(tool) for tool in item["tools"]]
    if item.get("call_id") is not None:
        is_call = kind in ("function_call", "tool_search_call")
        item["call_id"] = (ids.made if is_call else ids.answered)(item["call_id"])
    if kind == "tool_search_call":
        del item["arguments"]
    elif kind == "function_call" and item["name"] in SEARCH_TOOLS:
        searches.add(item["call_id"])
        item |= {"name": "search", "arguments": ""}
    elif kind == "function_call_output" and item["call_id"] in searches:
        result = json.loads(item["output"])
        item["output"] = [m["name"] for m in result.get("matches", result.get("discovered_tools"))]
    elif item.get("role") == "assistant":
        content = item["content"]
        plain = content if isinstance(content, str) else "".join(part["text"] for part in content)
        return {"content": plain, **{k: item[k] for k in item if k in ("role", "phase")}}
    return item


COMPARERS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
}
