"""Canonical names for the tool names in a reply."""

from __future__ import annotations

from collections.abc import Callable

from tool_search.messages import RequestPlan
from tool_search.names import NameRule, wire_name

__all__ = ["canonical_names"]


def canonical_names(plan: RequestPlan, rule: NameRule) -> Callable[[str], str]:
    """Gives a declared tool's canonical name for its wire name, any other unchanged."""

    def canonical(name: str) -> str:
        if plan.tools.declares(name):
            return name
        declared = (entry.tool.name for entry in plan.tools)
        return next((known for known in declared if wire_name(known, rule) == name), name)

    return canonical
