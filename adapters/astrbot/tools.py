"""AstrBot's tools and histories as this library has them; loads nothing of AstrBot.

From 4.26 on, AstrBot wraps every plugin and MCP tool in a permission guard, so that
what a tool is shows only behind the guard, and what runs it is the guard.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tool_search.adapters.wire.values import label_of, mappings_of, text_of
from tool_search.catalog.tool import Tool, ToolKind
from tool_search.conversation.record import message_from_dict
from tool_search.errors import InvalidToolError
from tool_search.messages import Message
from tool_search.search.index.protocol import SearchResult

__all__ = [
    "TranslatedTools",
    "behind_guard",
    "kind_of",
    "neutral_history",
    "shown_parameters",
    "text_behind",
]

_HANDOFF, _MCP, _PLAIN = "HandoffTool", "MCPTool", "FunctionTool"
_OWN_PACKAGE = "astrbot.core."
_ROLES = ("user", "assistant", "tool")
_log = logging.getLogger(__name__)


def behind_guard(tool: Any) -> Any:
    """The tool itself, where AstrBot's permission guard stands before it."""
    wrapped = getattr(tool, "_wrapped", None)
    return tool if wrapped is None else wrapped


def kind_of(tool: Any, is_builtin: Callable[[str], bool]) -> ToolKind:
    """Where a tool of AstrBot's comes from.

    Args:
        tool: As a request has it, guarded or not.
        is_builtin: AstrBot's own answer by name; always no where it gives none.
    """
    raw = behind_guard(tool)
    classes = {cls.__name__ for cls in type(raw).__mro__}
    if _HANDOFF in classes:
        return "handoff"
    if _MCP in classes:
        return "mcp"
    if is_builtin(raw.name):
        return "builtin"
    is_own = type(raw).__module__.startswith(_OWN_PACKAGE) and type(raw).__name__ != _PLAIN
    return "builtin" if is_own and not getattr(raw, "handler_module_path", None) else "plugin"


class TranslatedTools:
    """Definitions of AstrBot's tools, each made once for its content."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[Any, ...], Tool]] = {}

    def definitions(
        self, tools: Iterable[Any], is_builtin: Callable[[str], bool]
    ) -> dict[str, Tool]:
        """The definitions by name; what no definition can be made of is left out."""
        made = {}
        for tool in tools:
            try:
                made[tool.name] = self._definition(tool, is_builtin)
            except InvalidToolError as exc:
                _log.warning("a tool stays as AstrBot sends it: %s", exc)
        return made

    def _definition(self, tool: Any, is_builtin: Callable[[str], bool]) -> Tool:
        raw = behind_guard(tool)
        kind = kind_of(tool, is_builtin)
        server = getattr(raw, "mcp_server_name", None)
        content = (kind, server, tool.description, tool.parameters)
        known = self._known.get(tool.name) if isinstance(tool.name, str) else None
        if known is not None and known[0] == content:
            return known[1]
        made = Tool(
            name=tool.name,
            description=tool.description or "",
            parameters=tool.parameters or {},
            kind=kind,
            server=server if isinstance(server, str) else None,
            title=text_of(getattr(getattr(raw, "mcp_tool", None), "title", None)) or None,
        )
        self._known[tool.name] = (content, made)
        return made


def shown_parameters(tool: Tool) -> dict[str, Any]:
    """A definition's schema as AstrBot's tools have it."""
    return dict(tool.declared_schema.schema)


def neutral_history(contexts: Iterable[Any] | None) -> tuple[Message, ...]:
    """A request's `contexts` in the neutral form.

    System texts, AstrBot's checkpoints and the opening lines of a persona, which no
    history keeps, are left out.
    """
    found = []
    for said in contexts or ():
        content = plain_message(said)
        if content.get("role") in _ROLES and not content.get("_no_save"):
            found.append(message_from_dict(_readable(content)))
    return tuple(found)


def text_behind(result: str) -> str:
    """What a search's result says besides the tools: AstrBot's notices, and an error."""
    found = SearchResult.from_json(result)
    if found is None or found.error is not None:
        return result.strip()
    written = result.lstrip()
    _, end = json.JSONDecoder().raw_decode(written)
    return written[end:].strip()


def plain_message(said: Any) -> Mapping[str, Any]:
    """A message of AstrBot's as a mapping, which it is in some places only."""
    if isinstance(said, Mapping):
        return said
    dumped: Mapping[str, Any] = said.model_dump()
    return dumped


def _readable(content: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {
            **call,
            "id": label_of(call.get("id")),
            "function": {**call["function"], "name": label_of(call["function"].get("name"))},
        }
        for call in mappings_of(content.get("tool_calls"))
        if isinstance(call.get("function"), Mapping)
    ]
    return {
        "role": content["role"],
        "content": _without_own_parts(content.get("content")),
        "tool_calls": calls,
        "tool_call_id": label_of(content.get("tool_call_id")) or None,
    }


def _without_own_parts(content: Any) -> Any:
    """The content without parts that only AstrBot's providers read, as thinking."""
    if not isinstance(content, list | tuple):
        return content if isinstance(content, str) else ""
    known = ("text", "image_url")
    return [p for p in content if isinstance(p, str) or (p and p.get("type") in known)]
