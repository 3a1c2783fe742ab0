"""Search engines that other distributions bring, by entry point.

A distribution names the function that builds its engine in the group
`tool_search.engines`::

    [project.entry-points."tool_search.engines"]
    mine = "my_package.search:build"

`build(tools, settings)` takes a sequence of `Tool` and the `SearchSettings`, and returns a
`ToolSearchIndex`. The name can then be chosen as an engine, in a configuration too. No
distribution is imported before its engine is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENGINE_GROUP", "installed_engines"]

ENGINE_GROUP = "tool_search.engines"


def installed_engines() -> dict[str, EntryPoint]:
    """Return the engines of other distributions by name; of two of one name, the first."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and mostly not asked for

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=ENGINE_GROUP):
        found.setdefault(entry.name, entry)
    return found
