"""The mode of a conversation, and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.settings import SchemaMode

__all__ = ["Mode", "ModeDecision", "ModeReason", "resolve_mode", "tool_tokens"]

Mode = Literal["full", "skills_like", "tool_search"]
ModeReason = Literal[
    "configured",
    "nothing_deferred",
    "above_threshold",
    "above_threshold_tokens",
    "below_threshold",
    "above_provider_limit",
    "search_unavailable",
    "not_offered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeDecision:
    """The mode of a conversation.

    Attributes:
        mode: The mode.
        reason: The rule that decided it.
    """

    mode: Mode
    reason: ModeReason


def tool_tokens(tool: Tool) -> int:
    """Return the estimated tokens of a definition as a model is shown it."""
    return tool.estimated_tokens


def resolve_mode(
    configured: SchemaMode,
    catalog: ToolCatalog,
    *,
    threshold: int = 25,
    threshold_tokens: int | None = None,
    max_tools: int | None = None,
) -> ModeDecision:
    """Return the mode for a catalog, by the first rule that applies.

    Args:
        configured: `tool_schema_mode`.
        catalog: The tools.
        threshold: `auto` searches above this number of active tools.
        threshold_tokens: `auto` searches also above this number of tokens; None: no such limit.
        max_tools: The longest list that the provider takes.
    """
    if not catalog.deferred:
        mode: Mode = "skills_like" if configured == "skills_like" else "full"
        return ModeDecision(mode=mode, reason="nothing_deferred")
    count = len(catalog.active)
    if configured != "tool_search" and max_tools is not None and count > max_tools:
        return ModeDecision(mode="tool_search", reason="above_provider_limit")
    if configured == "shadow":
        return ModeDecision(mode="full", reason="configured")
    if configured != "auto":
        return ModeDecision(mode=configured, reason="configured")
    if count > threshold:
        return ModeDecision(mode="tool_search", reason="above_threshold")
    if threshold_tokens is not None and sum(map(tool_tokens, catalog.active)) > threshold_tokens:
        return ModeDecision(mode="tool_search", reason="above_threshold_tokens")
    return ModeDecision(mode="full", reason="below_threshold")
