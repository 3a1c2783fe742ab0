"""Which tools a Responses request brings, and in which namespace each is.

A plainly declared function is in the default namespace. One that is deferred, or
that an item of the input brings, is in a namespace of its own name unless it came
in another; recorded calls say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    JSON = Mapping[str, Any]

__all__ = ["brought_by", "members", "namespaces_of"]

_BRING = ("tool_search_output", "additional_tools")


def members(tools: Sequence[JSON], *, brought: bool) -> Iterator[tuple[str | None, JSON]]:
    """The functions of a list, each with its namespace; None for the default one.

    Args:
        tools: Definitions.
        brought: An item of the input brings them.
    """
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((tool["name"], member) for member in tool["tools"])
        elif tool["type"] == "function":
            own = brought or tool.get("defer_loading")
            yield (tool["name"] if own else None), tool


def brought_by(items: Sequence[JSON]) -> Iterator[tuple[str | None, JSON]]:
    """The functions that the input's items bring, in order, each with its namespace."""
    for item in items:
        if item.get("type") in _BRING:
            yield from members(item["tools"], brought=True)


def namespaces_of(tools: Sequence[JSON], items: Sequence[JSON]) -> dict[str, set[str | None]]:
    """The namespaces that each name is in, over the whole request."""
    homes: dict[str, set[str | None]] = {}
    for namespace, tool in (*members(tools, brought=False), *brought_by(items)):
        homes.setdefault(str(tool.get("name")), set()).add(namespace)
    return homes
