"""A registry for models: five tools that list, search, describe and run all others.

They are those of metatools-mcp, tooldiscovery's own front over MCP; the results are JSON
objects with its keys. A gateway offers them instead of the tools themselves.

Source: metatools-mcp, https://github.com/jonwraymond/metatools-mcp, package `metatools`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.core.values.clean_text import cut_schema, cut_text
from tool_search.core.values.json import compact_json, plain_copy, shown
from tool_search.errors import RegistryError, UnstableOrderError
from tool_search.i18n import Language, text
from tool_search.runner.execution.call_runner import CallOptions, CallRunner
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.functions import ExecutableTool
from tool_search.runner.execution.results import ExecutionResult, Failure
from tool_search.sources.registry.pages import Page

if TYPE_CHECKING:
    from tool_search.sources.registry.registry import ToolRegistry

__all__ = ["RegistryFront"]

_USUAL_LIMIT = 20
_MAX_LIMIT = 100
_MAX_EXAMPLES = 5
_MAX_TITLE_CHARS = 200
_LIMITS = TextLimits()
_TEXT: Mapping[str, Any] = {"type": "string"}
_LIMIT: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": _MAX_LIMIT, "default": 20}
_ID: Mapping[str, Any] = {"type": "string", "minLength": 1}
_LEVELS: Mapping[str, Any] = {"enum": ["summary", "schema", "full"], "default": "summary"}
_FILTERS: Mapping[str, Any] = {
    "namespace": _TEXT,
    "tags": {"type": "array", "items": _TEXT},
    "category": _TEXT,
}
_PARAMETERS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "search_tools": ({"query": _TEXT, "limit": _LIMIT, "cursor": _TEXT, **_FILTERS}, ()),
    "list_namespaces": ({"limit": _LIMIT, "cursor": _TEXT}, ()),
    "describe_tool": ({"id": _ID, "level": _LEVELS}, ("id",)),
    "list_tool_examples": (
        {"id": _ID, "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_EXAMPLES}},
        ("id",),
    ),
    "run_tool": ({"id": _ID, "arguments": {"type": "object"}}, ("id",)),
}


class RegistryFront:
    """Five functions over a registry, and the same as tools.

    What does not exist or is not valid raises a `RegistryError`; as a tool it is a failed
    result with that text. Nothing here blocks an event loop.

    Args:
        registry: The registry.
        language: The language of the tools' descriptions.
        options: Permissions, hooks and limits of the calls that `run_tool` makes.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        language: Language = "en-US",
        options: CallOptions | None = None,
    ) -> None:
        self._registry = registry
        self._language = language
        self._runner = CallRunner(
            catalog=registry.catalog, executor=registry.executor, options=options
        )

    @property
    def tools(self) -> tuple[ExecutableTool, ...]:
        """The functions as tools, for a `CallRunner`, a session or an MCP server."""
        return tuple(
            ExecutableTool(
                tool=Tool(
                    name=name,
                    description=text(f"registry.{name}", self._language),
                    parameters={
                        "type": "object",
                        "properties": properties,
                        **({"required": list(required)} if required else {}),
                    },
                    kind="builtin",
                    annotations={"read_only": name != "run_tool"},
                ),
                function=getattr(self, name),
            )
            for name, (properties, required) in _PARAMETERS.items()
        )

    async def search_tools(
        self,
        query: str = "",
        *,
        limit: int = _USUAL_LIMIT,
        cursor: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        category: str | None = None,
    ) -> dict[str, Any]:
        """Return `{"tools": [...], "nextCursor"}`: summaries, best first.

        Args:
            query: The query; empty for all tools by id.
            limit: The most tools, from 1 to 100.
            cursor: `nextCursor` of the page before.
            namespace: Only tools of this namespace.
            tags: Only tools with one of these tags.
            category: Only tools of this category.

        Raises:
            RegistryError: The cursor cannot be used. An engine without a stable order gives no
                cursor.
        """
        size = _clamp(limit)
        filters: dict[str, Any] = {"namespace": namespace, "tags": tags, "category": category}
        try:
            page = await asyncio.to_thread(
                self._registry.page, query, limit=size, cursor=cursor, **filters
            )
        except UnstableOrderError:
            if cursor:
                raise
            found = await asyncio.to_thread(self._registry.search, query, limit=size, **filters)
            page = Page(found)
        return _page_object("tools", page, [item.to_dict() for item in page.items])

    async def list_namespaces(
        self, limit: int = _USUAL_LIMIT, cursor: str | None = None
    ) -> dict[str, Any]:
        """Return `{"namespaces": [...], "nextCursor"}`, sorted.

        Args:
            limit: The most namespaces, from 1 to 100.
            cursor: `nextCursor` of the page before.

        Raises:
            RegistryError: The cursor cannot be used.
        """
        page = self._registry.page_namespaces(limit=_clamp(limit), cursor=cursor)
        return _page_object("namespaces", page, list(page.items))

    async def describe_tool(self, id: str, level: str = "summary") -> dict[str, Any]:  # noqa: A002  # the name in its schema
        """Return a tool at a level of detail: `summary`, `schema` or `full`.

        Raises:
            RegistryError: The tool or the level is unknown.
        """
        known: Any = level
        found = self._registry.describe(id, known)
        content = found.to_dict()
        if found.tool is not None:
            content["tool"] = _definition(found.tool)
        return content

    async def list_tool_examples(self, id: str, limit: int = _MAX_EXAMPLES) -> dict[str, Any]:  # noqa: A002  # the name in its schema
        """Return `{"examples": [...]}`, at most five.

        Raises:
            RegistryError: The tool is unknown.
        """
        asked = min(max(_number(limit), 1), _MAX_EXAMPLES)
        return {"examples": [one.to_dict() for one in self._registry.examples(id, limit=asked)]}

    async def run_tool(
        self,
        id: str,  # noqa: A002  # the name in its schema
        arguments: Mapping[str, Any] | None = None,
        context: ToolContext | None = None,
    ) -> ExecutionResult:
        """Run a tool; arguments, permissions, hooks and limits are checked as for any call.

        Args:
            id: The tool's id, or its name in the registry's catalog.
            arguments: The arguments, as its schema wants them.
            context: Who asks; None for nobody in particular.

        Raises:
            RegistryError: The tool is unknown.
        """
        snapshot = await asyncio.to_thread(self._registry.snapshot)
        name = snapshot.names.get(self._registry.tool_id(id))
        if name is None:
            raise RegistryError(f"the tool {shown(id)} was removed meanwhile; search again")
        if self._runner.catalog is not snapshot.catalog:
            self._runner.replace(snapshot.catalog, self._registry.executor)
        if context is None:
            context = self._runner.context("registry", self._language)
        call = ToolCall(
            id=context.call_id or "run_tool", name=name, arguments=compact_json(arguments or {})
        )
        (done,) = await self._runner.results([call], context)
        failure: Failure = "denied" if done.outcome == "denied" else "failed"
        return ExecutionResult(
            content=done.content,
            is_error=done.is_error,
            parts=tuple(done.parts),
            failure=failure if done.is_error else None,
        )


def _definition(tool: Tool) -> dict[str, Any]:
    """Return a definition in MCP's form; what a server wrote is cut as for any model."""
    shown_tool = _LIMITS.cut(tool)
    content: dict[str, Any] = {"name": tool.name, "description": shown_tool.description}
    if tool.title:
        content["title"] = cut_text(tool.title, _MAX_TITLE_CHARS)
    content["inputSchema"] = json.loads(shown_tool.parameters_json)
    if tool.output_schema is not None:
        content["outputSchema"] = plain_copy(tool.output_schema)
        if tool.is_third_party:
            cut_schema(content["outputSchema"], _LIMITS.schema_text)
    return content


def _page_object(key: str, page: Page[Any], items: list[Any]) -> dict[str, Any]:
    content: dict[str, Any] = {key: items}
    if page.next_cursor is not None:
        content["nextCursor"] = page.next_cursor
    return content


def _clamp(limit: object) -> int:
    return min(max(_number(limit), 1), _MAX_LIMIT)


def _number(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise RegistryError(f"limit must be a whole number, not {shown(limit)}")
    return limit
