"""Canonical names for the tool names in a reply."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tool_search.messages import ReferencePart, RequestPlan
from tool_search.names import NameRule, wire_name

__all__ = ["canonical_names"]


def canonical_names(plan: RequestPlan, rule: NameRule) -> Callable[[str], str]:
    """Return what gives a known tool's canonical name for its wire name, any other unchanged.

    Known are the tools that the plan declares, and those that its messages bring. The
    name that a model was shown counts before an equal canonical name of another tool.
    """
    declared = plan.tools.by_wire_name(rule)

    @cache
    def brought() -> dict[str, str]:
        parts = (
            part
            for message in plan.messages
            for part in (() if isinstance(message.content, str) else message.content)
            if isinstance(part, ReferencePart)
        )
        return {wire_name(tool.name, rule): tool.name for part in parts for tool in part.tools}

    def canonical(name: str) -> str:
        return declared.get(name) or brought().get(name, name)

    return canonical
