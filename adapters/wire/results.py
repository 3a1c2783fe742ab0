"""One search result in a dialect's form, for hosts that write their own requests."""

from __future__ import annotations

from dataclasses import replace

from tool_search.core.catalog.names import wire_name
from tool_search.core.messages import ReferencePart
from tool_search.core.profiles import ProviderProfile
from tool_search.core.results import SearchResult
from tool_search.core.strategies import strategy_class

__all__ = ["refers", "result_text"]


def refers(result: SearchResult, profile: ProviderProfile) -> bool:
    """True if a provider's strategy writes a result as references to the tools it found."""
    strategy = strategy_class(profile.strategy)()
    return result.error is None and isinstance(strategy.format_result(result), ReferencePart)


def result_text(result: SearchResult, profile: ProviderProfile) -> str:
    """Return a result as JSON text, under the names that a request calls by."""
    rule = profile.name_rule
    named = replace(
        result,
        matches=tuple(replace(m, name=wire_name(m.name, rule)) for m in result.matches),
        loaded=tuple(wire_name(name, rule) for name in result.loaded),
    )
    return named.to_json()
