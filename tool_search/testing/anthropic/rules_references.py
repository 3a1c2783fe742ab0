"""Anthropic's rules for references to tools, anywhere in the history.

Source: Anthropic, Tool search tool; Mid-conversation tool changes; recorded
errors; the anthropic SDK's `ToolReferenceUnresolvedErrorDetails`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.anthropic.rules_tools import supports_tool_search
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["reference_violations"]

# Fable and Mythos 5 and later, Opus 4.8, 5 and 5.5; names of other models are accepted.
_NO_TOOL_CHANGES = re.compile(r"claude-(?:sonnet|haiku|\d|instant|opus-4(?!-8))")


def reference_violations(
    messages: list[JSON], tools: list[JSON], model: str
) -> Iterator[Violation]:
    """Yield references to tools that the request lacks or the model does not support."""
    names = {tool["name"] for tool in tools if "name" in tool}
    # The service alone knows the tools of an MCP server.
    open_ended = any(tool.get("type") == "mcp_toolset" for tool in tools)
    for index, message in enumerate(messages):
        for place, block in enumerate(_blocks(message)):
            where = f"messages.{index}.content.{place}"
            if block["type"] in ("tool_addition", "tool_removal"):
                yield from _change(where, block, names, model)
                continue
            for name in _references(block):
                if not supports_tool_search(model):
                    yield invalid(f"{where}: '{model}' does not support `tool_reference` blocks.")
                if name not in names and not open_ended:
                    yield invalid(f"Tool reference '{name}' not found in available tools")


def _blocks(message: JSON) -> list[JSON]:
    return [] if isinstance(message["content"], str) else message["content"]


def _references(block: JSON) -> Iterator[str]:
    content = block.get("content")
    if block["type"] == "tool_result" and isinstance(content, list):
        found = [item for item in content if item["type"] == "tool_reference"]
    elif block["type"] == "tool_search_tool_result" and content is not None:
        found = content.get("tool_references", [])
    else:
        found = []
    for item in found:
        yield item["tool_name"]


def _change(where: str, block: JSON, names: set[str], model: str) -> Iterator[Violation]:
    """Yield the violations of a change of tools; an inline definition adds its name."""
    if _NO_TOOL_CHANGES.search(model):
        yield invalid(f"{where}: '{model}' does not support `{block['type']}` blocks.")
    tool = block["tool"]
    kind = tool.get("type")
    if kind == "tool_definition":
        definition = tool.get("definition")
        if not isinstance(definition, dict) or not isinstance(definition.get("name", ""), str):
            yield invalid(f"{where}.tool.definition: Input should be a valid dictionary")
            return
        name = str(definition.get("name"))
        if name in names:
            yield invalid(
                f"{where}.tool.definition.name: '{name}' is the name of another available tool",
                code="tool_name_conflict",
            )
        names.add(name)
    elif kind == "tool_reference" and str(tool.get("name")) not in names:
        yield invalid(
            f"tool_addition/tool_removal references unknown tool '{tool.get('name')}'",
            code="tool_reference_unresolved",
        )
