"""Checks of `permissions`: rules that no call can match, and rules that never decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.config.permissions import PermissionSettings
from tool_search.runner.execution.permissions.rule_checks import (
    UnmatchedRule,
    rule_levels,
    unmatched_rules,
)
from tool_search.runner.execution.permissions.rule_names import ToolsByRule, named_tools
from tool_search.runner.execution.permissions.rules import Rule

__all__ = ["check_permissions"]

_LIKE = 0.8
_STRICTER: Mapping[str, tuple[str, ...]] = {"allow": ("deny", "ask"), "ask": ("deny",)}


def check_permissions(bot: Examined) -> Iterator[Finding]:
    """Yield rules that match nothing, and rules that a stricter one always overrules."""
    settings = bot.settings.permissions
    tools = ToolsByRule(bot.catalog.active)
    for rule in unmatched_rules(settings, tools):
        if not _may_name_a_server(rule, bot):
            yield Finding(
                code="rule_unmatched",
                path=("permissions", *rule.path),
                values={"rule": rule.rule, "problem": rule.problem},
                wrong=rule.rule.partition("(")[0],
                instead=_meant(rule, bot),
            )
    yield from _check_overruled(settings, tools)


def _may_name_a_server(rule: UnmatchedRule, bot: Examined) -> bool:
    """True if a server that was not asked may have what a rule names."""
    servers = bot.unknown_servers
    if not servers:
        return False
    if rule.path[0] == "trusted_servers":
        return rule.rule in servers
    name = rule.rule.partition("(")[0]
    meant = named_tools(name)
    if meant.servers is None:
        is_own = name in bot.catalog or _near(rule, bot)
        return rule.path[-2] != "allow" and not is_own
    return any(name.startswith(f"mcp__{server}__") for server in servers) or "*" in meant.servers


def _meant(rule: UnmatchedRule, bot: Examined) -> str | None:
    """Return the name that is certainly meant, so that it may be written without a question."""
    near, name = _near(rule, bot), rule.rule.partition("(")[0]
    if len(near) != 1 or not bot.knows_servers:
        return None
    # A guess may make a rule stricter, and never wider.
    is_certain = near[0].casefold() == name.casefold() or rule.path[-2] != "allow"
    return near[0] if is_certain else None


def _near(rule: UnmatchedRule, bot: Examined) -> list[str]:
    """Return names of own tools that a misspelt name is like."""
    name = rule.rule.partition("(")[0]
    if name in bot.catalog or rule.path[0] == "trusted_servers" or "*" in name:
        return []
    own = [tool.name for tool in bot.catalog.active if not tool.is_third_party]
    same = [each for each in own if each.casefold() == name.casefold()]
    return same or get_close_matches(name, own, n=2, cutoff=_LIKE)


def _check_overruled(settings: PermissionSettings, tools: ToolsByRule) -> Iterator[Finding]:
    """Yield rules whose every tool a stricter rule for everybody takes whole."""
    strict = {
        kind: [
            rule
            for level in (settings, settings.policy)
            for rule in map(Rule.read, getattr(level, kind))
            if rule.pattern is None
        ]
        for kind in ("ask", "deny")
    }
    for place, level in rule_levels(settings):
        for kind, stricter in _STRICTER.items():
            for index, written in enumerate(getattr(level, kind)):
                named = list(tools.named(Rule.read(written).name, allows=kind == "allow"))
                rules = [rule for each in stricter for rule in strict[each]]
                over = [next((rule for rule in rules if rule.names(tool)), None) for tool in named]
                if named and all(over):
                    yield Finding(
                        code="rule_overruled",
                        path=("permissions", *place, kind, index),
                        values={"rule": written, "by": over[0].name if over[0] else ""},
                    )
