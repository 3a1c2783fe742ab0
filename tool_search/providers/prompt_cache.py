"""The prompt cache of requests: its breakpoints, and the prefix that the next one repeats.

Sources: Anthropic, "Prompt caching" (at most four breakpoints; `tools`, then `system`,
then `messages`); OpenAI and others, caches of equal prefixes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tool_search.core.messages import (
    DeclaredTool,
    Message,
    NoticeCode,
    ReferencePart,
    RequestPlan,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import CacheKind

__all__ = [
    "LATE_CALL",
    "CachePlan",
    "ListChange",
    "PrefixMonitor",
    "cache_plan",
    "first_divergence",
    "marked_tool",
]


ListChange = Literal["never", "at its end", "anew"]
"""The change of the next request's list while catalog and core stay: none, more entries at
its end, or another list for a phase of `skills_like`."""

_MAX_BREAKPOINTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """The breakpoints of a request's prompt cache, and the part that the next one repeats.

    Attributes:
        kind: The provider's kind of cache; breakpoints are written for `explicit`.
        tool: The index of the tool that ends a cached prefix; None: no breakpoint.
        system: True if a breakpoint follows the system text.
        messages: The indexes of the plan's messages that a breakpoint follows.
        tools_change: The change of the next request's list.
        stable_tools: The number of the list's entries, from the first, that the next
            request repeats byte for byte.
        stable_messages: The number of the plan's messages, likewise.
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
        """The places that a breakpoint follows, in the order of a prompt."""
        tool = () if self.tool is None else (f"tools[{self.tool}]",)
        messages = (f"messages[{index}]" for index in self.messages)
        return (*tool, *(("system",) if self.system else ()), *messages)


def cache_plan(plan: RequestPlan, profile: ProviderProfile, *, reserved: int = 0) -> CachePlan:
    """Return the cache plan of a request.

    Its stable part is what a session's plans promise within a conversation. A notice
    announces what breaks the promise, such as a changed definition.

    Args:
        plan: The request.
        profile: The provider.
        reserved: The number of the four breakpoints that the request uses otherwise.
    """
    marked = marked_tool(plan.tools, profile)
    marks = profile.cache == "explicit"
    system = marks and plan.cache_system and bool(plan.system.strip())
    left = max(0, _MAX_BREAKPOINTS - reserved - (marked is not None) - system) if marks else 0
    phased = plan.phase in ("select", "detail")
    grows: ListChange = "at its end" if plan.facts.list_grows else "never"
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
    """Return the index of the tool that ends a cached prefix, or None.

    It is the plan's choice, or the last tool.
    """
    # The mark is not cached itself, so it may move while a list grows. A deferred tool may
    # not have it: the prefix does not include such tools.
    if profile.cache != "explicit" or not tools:
        return None
    last = None if tools[-1].deferred else len(tools) - 1
    return next((i for i, entry in enumerate(tools) if entry.cache_breakpoint), last)


# A prefix that changes without an announced cause costs a bot its prompt cache, and would be
# found nowhere else but on the bill: the monitor compares the plans themselves.

LATE_CALL = "which called a tool before it was there"
"""The only change that a model causes: the definition now has to come before its call."""
_CAUSES: frozenset[NoticeCode] = frozenset(
    {
        "core_tool_gone",
        "catalog_changed",
        "schema_changed",
        "mode_changed",
        "search_unavailable",
        "settings_changed",
        "permitted_tools_changed",
        "results_shortened",
        "turns_left_out",
        "content_left_out",
    }
)


@dataclass(frozen=True, slots=True)
class _Sent:
    profile: ProviderProfile
    plan: RequestPlan
    history: Sequence[Message]


class PrefixMonitor:
    """Compares each request with the last one of its conversation to the same provider.

    Attributes:
        is_kept: True if the last checked request repeats the one before it as its prefix;
            None: there was none to compare it with.
    """

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}
        self.is_kept: bool | None = None

    def forget(self, provider: str) -> None:
        """Expect nothing of the next request: the provider's answer to the last one changes it."""
        self._sent.pop(provider, None)

    def check(
        self,
        provider: str,
        profile: ProviderProfile,
        plan: RequestPlan,
        *,
        history: Sequence[Message],
        announced: Collection[NoticeCode] = (),
    ) -> str | None:
        """Return where a request leaves the last one's prefix without notice, or None.

        Args:
            provider: The provider's `id`.
            profile: The provider; a corrected profile begins a new prefix.
            plan: The request that will be sent.
            history: The neutral history of the request. A bot that replaced its own, such as
                by a compaction, causes the change itself.
            announced: The codes of notices since the last request.
        """
        self.is_kept = None
        is_announced = not _CAUSES.isdisjoint(announced)
        if is_announced:
            self.is_kept = False if provider in self._sent else None
            self._sent.clear()
        is_last = profile.takes_tools and not profile.declares_tools(plan.phase)
        if is_last or plan.phase in ("select", "detail"):
            return None
        before = self._sent.get(provider)
        self._sent[provider] = _Sent(profile, plan, history)
        if before is None:
            return None
        self.is_kept = False
        if before.profile != profile or before.plan.strategy != plan.strategy:
            return None
        if _messages_move(before.history, history) is not None:
            return None
        moved = first_divergence(before.plan, plan)
        self.is_kept = moved is None
        return moved


def first_divergence(before: RequestPlan, after: RequestPlan) -> str | None:
    """Return the first place at which the next plan differs from the last one, or None.

    A history may grow at its end, and so may the list of a strategy with `list_grows`.
    Replies' own blocks are not compared: those of bound thinking are left out when they
    are no longer valid.

    Args:
        before: The last request to a provider.
        after: The next request to it, by the same strategy.
    """
    place = _tools_move(before.tools, after.tools, may_grow=after.facts.list_grows)
    if place is not None:
        return place
    if before.system != after.system:
        return "system"
    return _messages_move(before.messages, after.messages)


def _tools_move(before: ToolList, after: ToolList, *, may_grow: bool) -> str | None:
    if before is after or before.fingerprint == after.fingerprint:
        return None
    for index, old in enumerate(before):
        if index >= len(after) or _show(old) != _show(after[index]):
            return f"tools[{index}] ({old.tool.name})"
    if may_grow or len(after) == len(before):
        return None
    return f"tools[{len(before)}] ({after[len(before)].tool.name})"


def _show(entry: DeclaredTool) -> tuple[str, bool]:
    return entry.tool.shown_fingerprint, entry.deferred


def _messages_move(before: Sequence[Message], after: Sequence[Message]) -> str | None:
    # Equal tuples are compared by identity first: an unchanged history takes no time.
    if tuple(after[: len(before)]) == tuple(before):
        return None
    for index, old in enumerate(before):
        new = after[index] if index < len(after) else None
        if new is old:
            continue
        if new is None or replace(old, native=None) != replace(new, native=None):
            late = new is not None and old.content != new.content and _is_introduced(new)
            why = f", {LATE_CALL}" if late else ""
            return f"messages[{index}] ({old.role}{why})"
    return None


def _is_introduced(message: Message) -> bool:
    """True if a reply follows definitions that its calls need."""
    parts = () if isinstance(message.content, str) else message.content
    return message.role == "assistant" and any(isinstance(part, ReferencePart) for part in parts)
