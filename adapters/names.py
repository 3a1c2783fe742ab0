"""Canonical names for the tool names in a reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tool_search.messages import ReferencePart, RequestPlan
from tool_search.names import NameRule, wire_name

__all__ = ["canonical_names"]


def canonical_names(plan: RequestPlan, rule: NameRule) -> Callable[[str], str]:
    """Gives a known tool's canonical name for its wire name, any other unchanged.

    Known are the tools that the plan declares, and those that its messages bring.
    """

    def canonical(name: str) -> str:
        if plan.tools.declares(name):
            return name
        return next((known for known in _known(plan) if wire_name(known, rule) == name), name)

    return canonical


def _known(plan: RequestPlan) -> Iterator[str]:
    yield from (entry.tool.name for entry in plan.tools)
    for message in plan.messages:
        for part in () if isinstance(message.content, str) else message.content:
            if isinstance(part, ReferencePart):
                yield from (tool.name for tool in part.tools)
