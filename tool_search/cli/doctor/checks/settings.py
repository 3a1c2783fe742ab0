"""Checks of the `tool_search` section: what has no effect, and what costs more than it saves."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import get_args

from tool_search.cli.doctor.costs import ProviderCost
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.config.search import EmbedderSettings
from tool_search.core.catalog.catalog import CorePolicy
from tool_search.core.discoveries import resolve_mode, tool_tokens
from tool_search.core.settings import SchemaMode
from tool_search.errors import ConfigurationError, SearchError
from tool_search.search import build_index

__all__ = ["check_search", "check_settings"]

# A model's vectors need its package, its files or its service: `--live` asks for them.
_WITH_MODEL = ("semantic", "hybrid")
_MIN_SAVED_TOKENS = 1_000
_MIN_SAVED_SHARE = 0.5
_MAX_CORE_SHARE = 0.5
_LIKE = 0.75
_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)


def check_settings(bot: Examined, costs: dict[str, ProviderCost]) -> Iterator[Finding]:
    """Yield settings without effect, and those that cost more than they save."""
    yield from _check_core(bot)
    yield from _check_idle(bot)
    yield from _check_mode(bot, costs)


def _check_core(bot: Examined) -> Iterator[Finding]:
    settings = bot.settings.tool_search
    for index, pattern in enumerate(settings.always_loaded_tools):
        alone = CorePolicy(always_loaded_tools=(pattern,), auto_always_load_builtin=False)
        if any(tool.kind != "handoff" and alone.is_core(tool) for tool in bot.catalog.active):
            continue
        near = get_close_matches(pattern, bot.catalog.names, n=2, cutoff=_LIKE)
        if not bot.knows_servers and not near:
            # A server that was not asked may have it.
            continue
        yield Finding(
            code="always_loaded_unmatched",
            path=("tool_search", "always_loaded_tools", index),
            values={"pattern": pattern, "near": ", ".join(near) or "-"},
            wrong=pattern,
            instead=near[0] if len(near) == 1 and bot.knows_servers else None,
        )
    every = sum(map(tool_tokens, bot.catalog.active))
    core = sum(map(tool_tokens, bot.catalog.core))
    if _searches(bot) and core > _MAX_CORE_SHARE * every and core > _MIN_SAVED_TOKENS:
        yield Finding(
            code="core_large",
            path=("tool_search", "always_loaded_tools"),
            values={
                "core": len(bot.catalog.core),
                "tools": len(bot.catalog.active),
                "tokens": core,
                "share": round(100 * core / every),
            },
        )


def _searches(bot: Examined) -> bool:
    settings = bot.settings.tool_search
    decision = resolve_mode(
        settings.tool_schema_mode,
        bot.catalog,
        threshold=settings.threshold,
        threshold_tokens=settings.threshold_tokens,
        max_tools=bot.max_tools,
    )
    return decision.mode == "tool_search"


def _check_idle(bot: Examined) -> Iterator[Finding]:
    """Yield settings that the file sets, and that another setting makes idle."""
    settings = bot.settings.tool_search
    fixed = settings.tool_schema_mode != "auto"
    by_score = settings.preload > 0 or settings.second_chance
    idle = {
        "threshold": (fixed, "tool_schema_mode: auto"),
        "threshold_tokens": (fixed, "tool_schema_mode: auto"),
        "listing_tokens": (settings.listing == "none", "listing"),
        "preload_score": (not by_score, "preload, second_chance"),
    }
    for key, (is_idle, needs) in idle.items():
        if is_idle and bot.file.sets("tool_search", key):
            yield _idle(("tool_search", key), needs)
    kind = bot.settings.store.type
    for key, needed in (("path", "sqlite"), ("synchronous", "sqlite"), ("prefix", "redis")):
        if kind != needed and bot.file.sets("store", key):
            yield _idle(("store", key), f"store.type: {needed}")


def _idle(path: tuple[str, str], needs: str) -> Finding:
    values = {"setting": ".".join(path), "needs": needs}
    return Finding(code="setting_idle", path=path, values=values)


def _check_mode(bot: Examined, costs: dict[str, ProviderCost]) -> Iterator[Finding]:
    mode, count = bot.settings.tool_search.tool_schema_mode, len(bot.catalog.active)
    for index, provider in enumerate(bot.settings.providers):
        profile = bot.profiles.get(provider.id)
        limit = None if profile is None else profile.max_tools
        if mode not in ("auto", "tool_search") and limit is not None and count > limit:
            yield Finding(
                code="mode_overridden",
                path=("tool_search", "tool_schema_mode"),
                values={"mode": mode, "tools": count, "provider": provider.id, "limit": limit},
            )
            return
        if index == 0 and provider.id in costs:
            yield from _check_cost(bot, costs[provider.id])


def _check_cost(bot: Examined, cost: ProviderCost) -> Iterator[Finding]:
    """Yield a warning if the primary provider's requests cost more than they have to."""
    path = ("tool_search", "tool_schema_mode")
    values = {
        "provider": cost.provider,
        "tools": len(bot.catalog.active),
        "full": cost.full_tokens,
        "search": cost.search_tokens,
    }
    saved = cost.full_tokens - cost.search_tokens
    if cost.mode == "tool_search" and saved <= 0 and not cost.is_forced:
        yield Finding(code="search_costs_more", path=path, values=values)
    least = max(_MIN_SAVED_TOKENS, _MIN_SAVED_SHARE * cost.full_tokens)
    # In shadow mode the operator measures just that.
    is_tried = bot.settings.tool_search.tool_schema_mode == "shadow"
    if cost.mode != "tool_search" and not is_tried and bot.catalog.deferred and saved >= least:
        yield Finding(code="search_off", path=path, values=values)


def check_search(bot: Examined, *, live: bool) -> Iterator[Finding]:
    """Yield a finding if the search of the settings cannot be built."""
    settings = bot.settings.tool_search.search
    embedder = settings.embedder
    variable = embedder.api_key_env if isinstance(embedder, EmbedderSettings) else None
    if variable is not None and not bot.environment.get(variable, "").strip():
        yield Finding(
            code="embedder_key_missing",
            path=("tool_search", "search", "embedder", "api_key_env"),
            values={"variable": variable},
        )
        return
    if settings.engine in _WITH_MODEL and not live:
        return
    try:
        build_index(bot.catalog.deferred, settings)
    except (ConfigurationError, SearchError) as exc:
        yield Finding(
            code="search_unavailable",
            path=("tool_search", "search", "engine"),
            values={"engine": settings.engine, "problem": str(exc)},
        )
