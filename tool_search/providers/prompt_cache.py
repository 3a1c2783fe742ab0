"""What of a request a prompt cache can hold: where it may end, and what stays as it is.

Sources: Anthropic, "Prompt caching" (at most four breakpoints; `tools`, then `system`,
then `messages`); OpenAI and others, caches of equal prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tool_search.config.providers import CacheKind
from tool_search.messages import DeclaredTool, RequestPlan
from tool_search.providers.profiles import ProviderProfile

__all__ = ["CachePlan", "ListChange", "cache_plan", "marked_tool"]

ListChange = Literal["never", "at its end", "anew"]
"""How the next request's list may differ while catalog and core do not: not at all, by
more entries, or as a phase of `skills_like` wants it."""

_MOST_BREAKPOINTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """Where a request's prompt cache may end, and which part of it the next one repeats.

    Attributes:
        kind: How the provider caches; breakpoints are written where it is `explicit`.
        tool: The index of the tool that ends a cached prefix; None: no breakpoint.
        system: Whether one stands behind the system text.
        messages: The indexes of the plan's messages that one stands behind.
        tools_change: How the list of the next request may differ.
        stable_tools: How many of the list's entries, from the first on, the next request
            repeats byte for byte.
        stable_messages: How many of the plan's messages, likewise.
    """

    kind: CacheKind
    tool: int | None
    system: bool
    messages: tuple[int, ...]
    tools_change: ListChange
    stable_tools: int
    stable_messages: int

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The places that a breakpoint stands behind, in the order of a prompt."""
        tool = () if self.tool is None else (f"tools[{self.tool}]",)
        messages = (f"messages[{index}]" for index in self.messages)
        return (*tool, *(("system",) if self.system else ()), *messages)


def cache_plan(plan: RequestPlan, profile: ProviderProfile, *, reserved: int = 0) -> CachePlan:
    """The cache plan of a request.

    What stays is what a session's plans promise within a conversation; a cause that
    takes it back, a changed definition for instance, is announced by a notice.

    Args:
        plan: The request.
        profile: Who is asked.
        reserved: How many of the four breakpoints the request uses otherwise.
    """
    marked = marked_tool(plan.tools, profile)
    marks = profile.cache == "explicit"
    system = marks and plan.cache_system and bool(plan.system.strip())
    left = max(0, _MOST_BREAKPOINTS - reserved - (marked is not None) - system) if marks else 0
    phased = plan.phase in ("select", "detail")
    grows: ListChange = "at its end" if plan.strategy == "generic" else "never"
    return CachePlan(
        kind=profile.cache,
        tool=marked,
        system=system,
        messages=tuple(sorted(plan.cached_messages)[-left:] if left else ()),
        tools_change="anew" if phased else grows,
        stable_tools=0 if phased else len(plan.tools),
        stable_messages=0 if phased else len(plan.messages),
    )


def marked_tool(tools: Sequence[DeclaredTool], profile: ProviderProfile) -> int | None:
    """The index of the tool that ends a cached prefix: the plan's choice, or the last one.

    The mark is no part of what is cached, so it may move while a list grows. A
    deferred tool may not have it: such tools are no part of the prefix.
    """
    if profile.cache != "explicit" or not tools:
        return None
    last = None if tools[-1].deferred else len(tools) - 1
    return next((i for i, entry in enumerate(tools) if entry.cache_breakpoint), last)
