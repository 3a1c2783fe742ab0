"""The source of each registered tool in a catalog, which its name there belongs to.

Tools of several namespaces and versions may have one name, and so one source. The first of
them keeps it, also after it is gone, so that a name is never another tool's later.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.errors import InvalidToolError

__all__ = ["SourceBook"]

# Sources of tools that are gone: a server may list ever new ones.
_MAX_GONE = 10_000


class SourceBook:
    """The id that each source belongs to; the caller takes care of threads."""

    def __init__(self) -> None:
        self._owners: dict[Source, str] = {}
        self._claimed: dict[str, Source] = {}
        # Ids without a tool, the one that went first before the others.
        self._gone: OrderedDict[str, None] = OrderedDict()

    def claim(self, tool: Tool) -> Tool:
        """Return a tool with a source of its own, as catalogs have it.

        Raises:
            InvalidToolError: Too many ids are of the same tool of one server.
        """
        known = self._claimed.get(tool.id)
        for candidate in _candidates(tool):
            source = candidate.source
            if self._owners.get(source, tool.id) == tool.id and known in (None, source):
                self._owners[source] = tool.id
                self._claimed[tool.id] = source
                self._gone.pop(tool.id, None)
                return candidate
        raise InvalidToolError(
            f"tool {tool.id!r}: {tool.source[1]!r} of the server {tool.server!r} is registered "
            "under three other ids; unregister one of them"
        )

    def release(self, tool_id: str) -> None:
        """Take note that a tool is gone; of more than 10,000 the first ones are forgotten."""
        if tool_id not in self._claimed:
            return
        self._gone[tool_id] = None
        if len(self._gone) > _MAX_GONE:
            oldest, _ = self._gone.popitem(last=False)
            del self._owners[self._claimed.pop(oldest)]


def _candidates(tool: Tool) -> Iterator[Tool]:
    """Yield a tool under its plain source, and under others if that is taken."""
    yield tool
    listed = tool.source[1]
    if tool.is_third_party:
        # Permission rules look at a server's name for its tool, with or without these prefixes.
        others = [f"{tool.server}__{listed}", f"mcp__{tool.server}__{listed}"]
    else:
        # No tool's name ends in a space, so no tool has this source by its name.
        others = [f"{tool.id} "]
    parts = (tool.namespace, tool.name, tool.version)
    name = "__".join(part for part in parts if part)
    yield from (replace(tool, name=name, listed_name=other) for other in others)
