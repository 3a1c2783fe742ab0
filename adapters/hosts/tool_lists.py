"""The tools of hosts as catalogs, each made once for its content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock
from typing import Any

from tool_search.catalog.formats import tool_from_definition
from tool_search.catalog.functions import described_function
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import compact_json, shown
from tool_search.errors import InvalidToolError

__all__ = ["HostTools"]

_MAX_LISTS = 64
_MAX_DEFINITIONS = 20_000


class HostTools:
    """Catalogs of the lists that a host hands over; equal lists are one catalog.

    Args:
        warn: Takes the reason for which a tool is left out.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = Lock()
        self._catalogs: OrderedDict[Hashable, ToolCatalog] = OrderedDict()
        self._definitions: OrderedDict[Hashable, Tool | None] = OrderedDict()

    def catalog(self, tools: Iterable[Any]) -> ToolCatalog:
        """Return the catalog of a request's tools; of two of one name the first counts.

        Raises:
            InvalidToolError: An item is not a tool, or a function cannot be described.
        """
        if isinstance(tools, ToolCatalog):
            return tools
        items = [(_content_key(item), item) for item in tools]
        key = tuple(each for each, _ in items)
        with self._lock:
            known = self._catalogs.get(key)
            if known is not None:
                self._catalogs.move_to_end(key)
                return known
            made = ToolCatalog(self._without_repeated(self._tools(items)))
            self._catalogs[key] = made
            while len(self._catalogs) > _MAX_LISTS:
                self._catalogs.popitem(last=False)
        return made

    def own_catalog(self, tools: Iterable[Any], *, names: NameBook | None = None) -> ToolCatalog:
        """Return the catalog of a bot's own tools.

        Args:
            tools: The tools.
            names: Names that belong to tools already.

        Raises:
            DuplicateToolError: Two tools have the same name.
            InvalidToolError: An item is not a tool, or a function cannot be described.
        """
        if isinstance(tools, ToolCatalog):
            return tools
        items = [(_content_key(item), item) for item in tools]
        with self._lock:
            return ToolCatalog(self._tools(items), names=names)

    def _tools(self, items: Iterable[tuple[Hashable, Any]]) -> list[Tool]:
        found = (self._tool(key, item) for key, item in items)
        return [tool for tool in found if tool is not None]

    def _tool(self, key: Hashable, item: Any) -> Tool | None:
        if (tool := _own_definition(item)) is not None:
            return tool
        if key in self._definitions:
            self._definitions.move_to_end(key)
            return self._definitions[key]
        tool = self._read_tool(item)
        self._definitions[key] = tool
        while len(self._definitions) > _MAX_DEFINITIONS:
            self._definitions.popitem(last=False)
        return tool

    def _read_tool(self, item: Any) -> Tool | None:
        if isinstance(item, Mapping):
            # Servers write definitions: one that is wrong must not take the others away.
            try:
                return tool_from_definition(item)
            except InvalidToolError as exc:
                self._warn(f"a tool is left out: {exc}")
                return None
        if callable(item):
            return described_function(item)[0]
        raise InvalidToolError(
            f"a tool must be a Tool, a function, or a definition as OpenAI, Anthropic or MCP "
            f"write it, not {shown(item)}"
        )

    def _without_repeated(self, tools: Iterable[Tool]) -> list[Tool]:
        found: dict[Source, Tool] = {}
        for tool in tools:
            first = found.setdefault(tool.source, tool)
            if first != tool:
                self._warn(
                    f"two tools have the name {tool.name!r}: the first counts, the other is left "
                    "out; rename one"
                )
        return list(found.values())


def _own_definition(item: Any) -> Tool | None:
    """Return a tool, or the tool of one with a function; None for anything else."""
    tool = getattr(item, "tool", item)
    return tool if isinstance(tool, Tool) else None


def _content_key(item: Any) -> Hashable:
    """Return what makes a tool equal to another; definitions may be changed in place."""
    if (tool := _own_definition(item)) is not None:
        return tool.fingerprint
    if not isinstance(item, Mapping):
        return _Identity(item)
    try:
        return compact_json(item if isinstance(item, dict) else dict(item))
    except (TypeError, ValueError, RecursionError):
        return _Identity(item)  # reading it gives the reason


class _Identity:
    """The identity of an object that is kept, so that no other object gets it."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.item is self.item

    def __hash__(self) -> int:
        return id(self.item)
