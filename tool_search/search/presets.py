"""Rankings of other systems, as one setting: `search.preset`.

A preset fixes engine and weights as its system has them. `astrbot` is the engine
`rank_bm25` and tooldiscovery's default search the engine `lexical`; what is here are
the rankings that no engine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import cast

from tool_search.catalog.tool import Tool
from tool_search.search.index.protocol import ToolSearchIndex

__all__ = ["preset_index"]

# By preset and engine: the function that builds the index, loaded when it is chosen.
_RANKINGS: Mapping[tuple[str, str], str] = {
    ("oh-my-pi", "bm25"): "tool_search.compat.oh_my_pi.ranking:build",
    ("tooldiscovery", "bm25"): "tool_search.compat.tooldiscovery:build",
}


def preset_index(
    tools: Iterable[Tool], *, preset: str | None, engine: str, min_relevance: float
) -> ToolSearchIndex | None:
    """Return the index of a preset, or None if the engine itself has the ranking.

    Args:
        tools: The tools to search.
        preset: `search.preset`.
        engine: `search.engine`.
        min_relevance: Hits below it are dropped, from 0 to 1.
    """
    home = _RANKINGS.get((preset or "", engine))
    if home is None:
        return None
    module, _, name = home.partition(":")
    build = cast(
        "Callable[[Sequence[Tool], float], ToolSearchIndex]", getattr(import_module(module), name)
    )
    return build(tuple(tools), min_relevance)
