"""The view that a Claude model gets of an Anthropic Messages request.

Source: Anthropic, Tool search: a deferred definition is expanded at a
`tool_reference`, anywhere in the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import Any

from tool_search.testing.view import ModelView, ViewCall, ViewMessage, ViewResult, VisibleTool

__all__ = ["view_of"]

JSON = Mapping[str, Any]


def view_of(body: JSON) -> ModelView:
    """Return the view of a request that has passed the rules."""
    names: dict[str, str] = {}
    messages = [_system(body.get("system"))]
    messages += [_message(message, names) for message in _turns(body["messages"])]
    shown, withdrawn = _changes(body["messages"])
    inline = [{**tool, "defer_loading": True} for tool in _inline_definitions(body["messages"])]
    definitions = [*(body.get("tools") or ()), *inline]
    named = [tool for tool in definitions if "name" in tool and tool["name"] not in withdrawn]
    seen = [not tool.get("defer_loading") or tool["name"] in shown for tool in named]
    tools = [_tool(tool) for tool in named]
    return ModelView(
        dialect="anthropic",
        model=body["model"],
        tools=tuple(compress(tools, seen)),
        tool_choice=_tool_choice(body.get("tool_choice")),
        messages=tuple(message for message in messages if message is not None),
        hidden=tuple(tool for tool, is_seen in zip(tools, seen, strict=True) if not is_seen),
    )


def _turns(messages: Iterable[JSON]) -> Iterator[JSON]:
    """Yield the messages, with text after tool results in the message of the results.

    The service combines consecutive messages of one role into a single turn:
    https://platform.claude.com/docs/en/api/messages.
    """
    before: JSON | None = None
    for message in messages:
        is_after = before is not None and before["role"] == message["role"] == "user"
        if before is not None and is_after and _has_results(before):
            before = {**before, "content": [*before["content"], *_parts(message)]}
            continue
        if before is not None:
            yield before
        before = message
    if before is not None:
        yield before


def _has_results(message: JSON) -> bool:
    return any(block["type"] == "tool_result" for block in _parts(message))


def _parts(message: JSON) -> list[JSON]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _tool(tool: JSON) -> VisibleTool:
    return VisibleTool.of(
        tool,
        "input_schema",
        is_late=bool(tool.get("defer_loading")),
        cache_breakpoint=tool.get("cache_control") is not None,
    )


def _tool_choice(choice: JSON | None) -> str:
    if not choice:
        return "auto"
    return f"tool:{choice['name']}" if choice["type"] == "tool" else str(choice["type"])


def _system(system: str | list[JSON] | None) -> ViewMessage | None:
    text = _text(system or "")
    if not text:
        return None
    return ViewMessage(role="system", text=text, cache_breakpoint=_has_breakpoint(system))


def _has_breakpoint(content: str | list[JSON] | None) -> bool:
    """True if a prompt cache may end in this content, which counts as at its end."""
    if content is None or isinstance(content, str):
        return False
    return any(block.get("cache_control") is not None for block in content)


def _message(message: JSON, names: dict[str, str]) -> ViewMessage:
    """Return one message; the names of its calls are added to `names` for their results."""
    content = message["content"]
    blocks = [] if isinstance(content, str) else content
    calls = tuple(
        ViewCall(id=block["id"], name=block["name"], arguments=block.get("input") or {})
        for block in blocks
        if block["type"] in ("tool_use", "server_tool_use")
    )
    names.update((call.id, call.name) for call in calls)
    results = tuple(
        _result(block, names)
        for block in blocks
        if block["type"] in ("tool_result", "tool_search_tool_result")
    )
    return ViewMessage(
        role=message["role"],
        text=_text(content),
        calls=calls,
        results=results,
        brings=tuple(_additions(blocks)),
        cache_breakpoint=_has_breakpoint(content),
    )


def _additions(blocks: list[JSON]) -> Iterator[str]:
    for block in blocks:
        if block["type"] == "tool_addition":
            yield str(block["tool"].get("definition", block["tool"]).get("name"))


def _result(block: JSON, names: dict[str, str]) -> ViewResult:
    content = block.get("content") or ""
    if isinstance(content, Mapping):
        return ViewResult(
            call_id=block["tool_use_id"],
            name=names.get(block["tool_use_id"], ""),
            text=content.get("error_code", ""),
            references=tuple(item["tool_name"] for item in content.get("tool_references", ())),
            is_error="error_code" in content,
        )
    return ViewResult(
        call_id=block["tool_use_id"],
        name=names.get(block["tool_use_id"], ""),
        text=_text(content),
        references=tuple(_referenced_names(content)),
        is_error=bool(block.get("is_error")),
    )


def _referenced_names(content: str | list[JSON]) -> Iterator[str]:
    if isinstance(content, str):
        return
    for item in content:
        if item["type"] == "tool_reference":
            yield item["tool_name"]


def _text(content: str | list[JSON]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _blocks(messages: list[JSON]) -> Iterator[JSON]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from message["content"]


def _changes(messages: list[JSON]) -> tuple[set[str], set[str]]:
    """Return the names that the history reveals, and those that it withdraws."""
    shown: set[str] = set()
    withdrawn: set[str] = set()
    for block in _blocks(messages):
        kind = block["type"]
        if kind == "tool_result":
            shown.update(_referenced_names(block.get("content") or ""))
        elif kind == "tool_search_tool_result":
            found = block["content"].get("tool_references", ())
            shown.update(item["tool_name"] for item in found)
        elif kind in ("tool_addition", "tool_removal"):
            tool = block["tool"]
            name = str(tool.get("definition", tool).get("name"))
            (shown if kind == "tool_addition" else withdrawn).add(name)
            (withdrawn if kind == "tool_addition" else shown).discard(name)
    return shown, withdrawn


def _inline_definitions(messages: list[JSON]) -> Iterator[JSON]:
    for block in _blocks(messages):
        if block["type"] == "tool_addition" and "definition" in block["tool"]:
            yield block["tool"]["definition"]
