"""The first request of a bot to each provider: its tokens, and what a prompt cache keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.requests import figures_of, planned_request
from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.discoveries import Mode, tool_tokens
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import SessionError
from tool_search.providers.prompt_cache import cache_plan

__all__ = ["ProviderCost", "provider_costs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCost:
    """The first request to one provider, and facts about its model; tokens are estimates.

    Attributes:
        provider: The provider's `id`.
        model: Its model.
        strategy: The strategy of its requests.
        mode: The mode of a conversation that begins with it.
        is_forced: True if its limit of tools demands the mode.
        is_native: True if the strategy is the tool search of the model's own family.
        max_tools: The longest tool list; None: no limit is known.
        returns_reasoning: True if a reply's reasoning goes back to it.
        tools_declared: The length of the tool list in this mode.
        tokens: The tokens of the definitions in the model's view, and of the system text.
        search_tokens: The same in the mode `tool_search`.
        full_tokens: The same in the mode `full`.
        break_even_tools: The number of tools of the usual size from which on `tool_search`
            sends fewer tokens; None without tools.
        break_even_searches: The number of searches in a conversation whose results, at most,
            take no more than the first request saves; None if it saves nothing.
        cache: The kind of prompt cache.
        cached_tokens: The tokens of this request that the next one repeats from its beginning.
        tools_change: The change of the tool list in the next request.
    """

    provider: str
    model: str
    strategy: str
    mode: Mode
    is_forced: bool
    is_native: bool
    max_tools: int | None
    returns_reasoning: bool
    tools_declared: int
    tokens: int
    search_tokens: int
    full_tokens: int
    break_even_tools: int | None
    break_even_searches: int | None
    cache: str
    cached_tokens: int
    tools_change: str

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def provider_costs(bot: Examined) -> dict[str, ProviderCost]:
    """Return the cost of each provider that has a profile, by its `id`."""
    costs = {}
    for name, profile in bot.profiles.items():
        try:
            costs[name] = _cost(name, profile, bot)
        except SessionError:
            # A catalog that no conversation can have is a finding of `check_tools`.
            continue
    return costs


def _cost(name: str, profile: ProviderProfile, bot: Examined) -> ProviderCost:
    settings = bot.settings.tool_search
    now = planned_request(bot.catalog, profile, config=settings, max_tools=bot.max_tools)
    searching = settings.model_copy(update={"tool_schema_mode": "tool_search"})
    search = planned_request(bot.catalog, profile, config=searching, max_tools=bot.max_tools)
    sizes: Mapping[str, int] = {
        key: figures_of(each.plan, b"", bot.catalog).tokens + _system_tokens(bot, each.plan.system)
        for key, each in (("now", now), ("search", search))
    }
    every = [tool_tokens(tool) for tool in bot.catalog.active]
    full = sum(every) + _system_tokens(bot, "")
    plan = cache_plan(now.plan, profile)
    usual = sum(every) / len(every) if every else 0.0
    core = sum(map(tool_tokens, bot.catalog.core))
    fixed = sizes["search"] - core - _system_tokens(bot, "")
    found = settings.max_results_total * usual
    return ProviderCost(
        provider=name,
        model=profile.model,
        strategy=now.plan.strategy,
        mode=now.decision.mode,
        is_forced=now.decision.reason == "above_provider_limit",
        is_native=profile.is_native,
        max_tools=profile.max_tools,
        returns_reasoning=profile.returns_reasoning,
        tools_declared=len(now.plan.tools),
        tokens=sizes["now"],
        search_tokens=sizes["search"],
        full_tokens=full,
        break_even_tools=len(bot.catalog.core) + math.ceil(fixed / usual) if usual else None,
        break_even_searches=math.floor((full - sizes["search"]) / found)
        if found and full > sizes["search"]
        else None,
        cache=profile.cache,
        cached_tokens=0 if plan.kind == "none" or not plan.stable_tools else sizes["now"],
        tools_change=plan.tools_change,
    )


def _system_tokens(bot: Examined, instructions: str) -> int:
    return estimate_tokens("\n\n".join(filter(None, (bot.settings.system_prompt, instructions))))
