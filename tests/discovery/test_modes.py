"""The mode of a catalog, and the reason for it."""

from __future__ import annotations

import pytest

from tests.conversations import tool, toolbox
from tool_search import ModeDecision, ToolCatalog
from tool_search.core.discoveries import Mode, ModeReason, tool_tokens
from tool_search.core.settings import SchemaMode
from tool_search.search.discovery import resolve_mode


def decided(configured: SchemaMode, count: int, **limits: int) -> tuple[Mode, ModeReason]:
    """The mode and the reason for so many deferred tools."""
    decision = resolve_mode(configured, ToolCatalog(toolbox(count)), **limits)
    return decision.mode, decision.reason


@pytest.mark.parametrize(
    ("count", "decision"),
    [
        (1, ("full", "below_threshold")),
        (25, ("full", "below_threshold")),
        (26, ("tool_search", "above_threshold")),
    ],
)
def test_auto_searches_above_the_threshold(count: int, decision: tuple[Mode, ModeReason]) -> None:
    assert decided("auto", count) == decision


def test_auto_counts_core_tools_too_and_inactive_ones_not() -> None:
    tools = [*toolbox(20, core=6), tool("off", active=False)]
    assert resolve_mode("auto", ToolCatalog(tools)).mode == "tool_search"
    assert resolve_mode("auto", ToolCatalog(tools[1:])).mode == "full"


def test_auto_searches_above_the_weight_if_one_is_set() -> None:
    catalog = ToolCatalog(toolbox(3))
    weight = sum(map(tool_tokens, catalog.active))
    at, above = (resolve_mode("auto", catalog, threshold_tokens=weight - n) for n in (0, 1))
    assert at.mode == "full"
    assert above == ModeDecision(mode="tool_search", reason="above_threshold_tokens")


@pytest.mark.parametrize("configured", ["full", "skills_like", "tool_search"])
@pytest.mark.parametrize("count", [1, 100])
def test_a_configured_mode_is_kept_whatever_the_number(configured: SchemaMode, count: int) -> None:
    """Thresholds are for `auto`."""
    assert decided(configured, count) == (configured, "configured")


@pytest.mark.parametrize("configured", ["auto", "full", "tool_search"])
def test_nothing_to_defer_means_full(configured: SchemaMode) -> None:
    """There would be nothing to search."""
    catalog = ToolCatalog(toolbox(0, core=40))
    decision = resolve_mode(configured, catalog, threshold=5)
    assert decision == ModeDecision(mode="full", reason="nothing_deferred")


@pytest.mark.parametrize("configured", ["full", "skills_like", "auto"])
def test_more_than_the_provider_takes_must_be_searched(configured: SchemaMode) -> None:
    """A list that would be refused is never a mode."""
    assert decided(configured, 128, max_tools=128, threshold=500)[0] != "tool_search"
    assert decided(configured, 129, max_tools=128, threshold=500) == (
        "tool_search", "above_provider_limit",
    )  # fmt: skip


def test_a_tool_weighs_its_name_description_and_schema() -> None:
    light = tool_tokens(tool("a"))
    assert tool_tokens(tool("a", description="Much longer words about it.")) > light
    assert tool_tokens(tool("a", parameters={})) < light
    assert tool_tokens(tool("a", tags=["never", "sent"])) == light
