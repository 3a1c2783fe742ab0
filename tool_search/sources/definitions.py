"""The definitions that a server lists, made into tools one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.formats import tool_from_definition
from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import shown
from tool_search.errors import InvalidToolError

__all__ = ["ListedTools", "read_definitions"]

# What the protocol defines. Anything else that a server writes there is not for the bot:
# `roles`, `active` or `tags` are the owner's.
_KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_MAX_TOOLS = 20_000
_MAX_PROBLEMS = 20
_MAX_PROBLEM_CHARS = 500
# What a tool keeps; what a model reads of it is cut further, by the settings of a bot.
_KEPT = TextLimits(description=100_000, schema_text=20_000)
_MAX_SCHEMA_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTools:
    """The tools of a server, and what was wrong with its list.

    Attributes:
        tools: The tools, in the order of the list.
        problems: A sentence for each definition that was left out, without the server.
    """

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def read_definitions(definitions: Iterable[object], *, server: str) -> ListedTools:
    """Return the tools that a server lists; a wrong definition leaves out that tool alone.

    Of two definitions with one name the first counts. Takes about 40 ms for 1,000 tools.

    Args:
        definitions: The entries of `tools/list`, as the server sent them.
        server: The server's name.
    """
    tools: dict[Source, Tool] = {}
    problems: list[str] = []
    for number, definition in enumerate(definitions):
        if number >= _MAX_TOOLS:
            problems.append(f"lists more than {_MAX_TOOLS:,} tools; the rest is left out")
            break
        try:
            tool = _tool(definition, server)
        except (InvalidToolError, RecursionError) as exc:
            problems.append(f"definition {number} is left out: {exc}")
            continue
        if tool.source in tools:
            problems.append(f"lists the tool {tool.source[1]!r} twice; the first one counts")
        else:
            tools[tool.source] = tool
    return ListedTools(tools=tuple(tools.values()), problems=_cap(problems))


def _tool(definition: object, server: str) -> Tool:
    if not isinstance(definition, Mapping):
        raise InvalidToolError(f"{shown(definition)} is not an object")
    content: dict[str, Any] = {key: definition[key] for key in _KEYS if key in definition}
    description = content.get("description")
    if isinstance(description, str):
        # Before it is cleaned: 10 MB would take a second.
        content["description"] = description[: 2 * _KEPT.description]
    hints = content.get("annotations")
    if isinstance(hints, Mapping):
        content["annotations"] = {key: hints[key] for key in _HINTS if key in hints}
    tool = tool_from_definition(content, server=server)
    if tool is None or len(tool.parameters_json) > _MAX_SCHEMA_CHARS:
        raise InvalidToolError(
            f"tool {str(definition.get('name'))[:60]!r}: its schema has more than "
            f"{_MAX_SCHEMA_CHARS:,} characters"
        )
    return _KEPT.cut(tool)


def _cap(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - _MAX_PROBLEMS
    rest = [f"has {more} more wrong definitions"] if more > 0 else []
    return tuple(problem[:_MAX_PROBLEM_CHARS] for problem in problems[:_MAX_PROBLEMS] + rest)
