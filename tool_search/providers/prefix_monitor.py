"""Whether what a provider was sent stays a prefix of what it is sent.

Lists and histories are kept so that it does, and what cannot be helped is announced
by name. This looks at the plans themselves: a prefix that moves without an announced
cause costs a bot its prompt cache, and is found nowhere else but on the bill.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tool_search.messages import (
    DeclaredTool,
    Message,
    NoticeCode,
    ReferencePart,
    RequestPlan,
    ToolList,
)
from tool_search.providers.profiles import ProviderProfile

__all__ = ["LATE_CALL", "PrefixWatch", "first_move"]

LATE_CALL = "which called a tool before it was there"
"""The one move that is the model's doing: the definition has to come before the call now."""
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


class PrefixWatch:
    """Remembers the last request of one conversation to each provider."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def forget(self, provider: str) -> None:
        """Expects nothing of the next request: what the last one taught changes it."""
        self._sent.pop(provider, None)

    def look(
        self,
        provider: str,
        profile: ProviderProfile,
        plan: RequestPlan,
        *,
        history: Sequence[Message],
        announced: Collection[NoticeCode] = (),
    ) -> str | None:
        """Where a request leaves the prefix of the last one unannounced, or None.

        Args:
            provider: Its `id`.
            profile: What it can do; what was learned since begins a new prefix.
            plan: The request that will be sent.
            history: The neutral history behind it; where a bot has replaced its own, by
                a compaction for instance, it needs not be told.
            announced: What was announced since the last request.
        """
        if not _CAUSES.isdisjoint(announced):
            self._sent.clear()
        if plan.phase in ("select", "detail"):
            return None
        before = self._sent.get(provider)
        self._sent[provider] = _Sent(profile, plan, history)
        if before is None or before.profile != profile or before.plan.strategy != plan.strategy:
            return None
        if _messages_move(before.history, history) is not None:
            return None
        return first_move(before.plan, plan)


def first_move(before: RequestPlan, after: RequestPlan) -> str | None:
    """The first place where the next plan is not what the last one was, or None.

    A filtered list may grow at its end, any history likewise; a list of a strategy
    with native search may not change. Replies' own blocks are not compared: those of
    bound thinking are left out where they no longer hold.

    Args:
        before: The last request to a provider.
        after: The next one to the same, by the same strategy.
    """
    place = _tools_move(before.tools, after.tools, may_grow=after.strategy == "generic")
    if place is not None:
        return place
    if before.system != after.system:
        return "system"
    return _messages_move(before.messages, after.messages)


def _tools_move(before: ToolList, after: ToolList, *, may_grow: bool) -> str | None:
    if before is after or before.fingerprint == after.fingerprint:
        return None
    for index, old in enumerate(before):
        if index >= len(after) or _shown(old) != _shown(after[index]):
            return f"tools[{index}] ({old.tool.name})"
    if may_grow or len(after) == len(before):
        return None
    return f"tools[{len(before)}] ({after[len(before)].tool.name})"


def _shown(entry: DeclaredTool) -> tuple[str, bool]:
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
    """Whether a reply stands behind definitions that its calls need."""
    parts = () if isinstance(message.content, str) else message.content
    return message.role == "assistant" and any(isinstance(part, ReferencePart) for part in parts)
