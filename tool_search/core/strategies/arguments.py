"""Arguments of calls, translated between a tool's own keys in a history and those on the wire.

Keys on the wire are the same in every dialect, so that a call made through one provider
reads the same when the history is sent to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tool_search.core.catalog.schemas import Declared, TooComplexError
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, ToolCall
from tool_search.core.values.arguments import read_arguments
from tool_search.core.values.json import compact_json

__all__ = ["inner_call", "on_wire", "under_own_keys"]

Find = Callable[[str], Tool | None]
_Declare = Callable[[Tool], Declared]
_Translate = Callable[[Declared, str], str]


def under_own_keys(
    message: Message, find: Find, call_tool_name: str, declared: _Declare
) -> Message:
    """Return a reply whose calls have arguments under the tools' own keys.

    Unreadable arguments stay as they are, and so do those with a key under both its names:
    the decision about the call reports them.

    Args:
        message: The reply.
        find: Returns the tool of a name.
        call_tool_name: The name of the tool that calls other tools.
        declared: Returns the schema of a tool as it is declared.
    """
    return _translate(message, find, call_tool_name, declared, _own_text)


def on_wire(message: Message, find: Find, call_tool_name: str, declared: _Declare) -> Message:
    """Return a reply whose calls have arguments under the keys on the wire.

    Args:
        message: The reply.
        find: Returns the tool of a name.
        call_tool_name: The name of the tool that calls other tools.
        declared: Returns the schema of a tool as it is declared.
    """
    return _translate(message, find, call_tool_name, declared, _wire_text)


def inner_call(arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the call inside `call_tool`; arguments written as a JSON string are read too."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    if not isinstance(name, str):
        return None
    if inner is None or isinstance(inner, str):
        inner = read_arguments(inner or "")
    return (name, inner) if isinstance(inner, Mapping) else None


def _translate(
    message: Message, find: Find, call_tool_name: str, declared: _Declare, text: _Translate
) -> Message:
    calls = tuple(_call(call, find, call_tool_name, declared, text) for call in message.tool_calls)
    unchanged = all(a is b for a, b in zip(calls, message.tool_calls, strict=True))
    return message if unchanged else replace(message, tool_calls=calls)


def _call(
    call: ToolCall, find: Find, call_tool_name: str, declared: _Declare, text: _Translate
) -> ToolCall:
    tool = find(call.name)
    if call.name != call_tool_name or (tool is not None and tool.name != call_tool_name):
        return call if tool is None else _with(call, text(declared(tool), call.arguments))
    given = read_arguments(call.arguments)
    inner = inner_call(given) if given is not None else None
    tool = find(inner[0]) if inner is not None else None
    if given is None or inner is None or tool is None or not declared(tool).is_renamed:
        return call
    before = compact_json(inner[1])
    after = text(declared(tool), before)
    if after == before:
        return call
    return _with(call, compact_json({**given, "arguments": read_arguments(after)}))


def _with(call: ToolCall, arguments: str) -> ToolCall:
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _own_text(declared: Declared, arguments: str) -> str:
    return _read_own(declared, arguments) if declared.is_renamed else arguments


def _wire_text(declared: Declared, arguments: str) -> str:
    return _read_wire(declared, arguments) if declared.is_renamed else arguments


# A request repeats every call of its history.
@lru_cache(maxsize=512)
def _read_wire(declared: Declared, arguments: str) -> str:
    given = read_arguments(arguments)
    if given is None:
        return arguments
    try:
        written = declared.on_wire(given)
    except TooComplexError:
        return arguments
    return arguments if written == given else compact_json(written)


@lru_cache(maxsize=512)
def _read_own(declared: Declared, arguments: str) -> str:
    given = read_arguments(arguments)
    if given is None:
        return arguments
    try:
        own, twice = declared.canonical(given)
    except TooComplexError:
        return arguments
    return arguments if twice or own == given else compact_json(own)
