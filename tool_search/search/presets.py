"""Rankings of other systems, as one setting: `search.preset`.

A preset fixes engine and weights as its system has them. `astrbot` is the engine
`rank_bm25` and tooldiscovery's default search the engine `lexical`; what is here are
the rankings that no engine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tool_search.catalog.catalog import Tool
from tool_search.compat.oh_my_pi.ranking import oh_my_pi_recipe
from tool_search.compat.tooldiscovery import tooldiscovery_recipe
from tool_search.compat.weighted_bm25 import Bm25Recipe, WeightedBm25Index

__all__ = ["preset_index"]

_RECIPES: Mapping[tuple[str, str], Callable[[], Bm25Recipe]] = {
    ("oh-my-pi", "bm25"): oh_my_pi_recipe,
    ("tooldiscovery", "bm25"): tooldiscovery_recipe,
}


def preset_index(
    tools: Iterable[Tool], *, preset: str | None, engine: str, min_relevance: float
) -> WeightedBm25Index | None:
    """The index of a preset, or None where its engine has the ranking.

    Args:
        tools: What is searched.
        preset: `search.preset`.
        engine: `search.engine`.
        min_relevance: Hits below it are none, from 0 to 1.
    """
    recipe = _RECIPES.get((preset or "", engine))
    return WeightedBm25Index(tools, recipe(), min_relevance=min_relevance) if recipe else None
