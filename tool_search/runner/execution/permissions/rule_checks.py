"""A check for rules that no call can match: their tool, argument or value does not exist.

A misspelt rule denies nothing, and nobody notices. When the tools are known, each such rule
gives a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from tool_search.config.permissions import PermissionRules, PermissionSettings
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.patterns import NAMED_PATTERN, read_pattern
from tool_search.runner.execution.permissions.argument_values import (
    declared_names,
    declares,
    values_declared,
)
from tool_search.runner.execution.permissions.rule_names import (
    ToolsByRule,
    rule_of_server,
    rule_of_tool,
)
from tool_search.runner.execution.permissions.rules import PermissionDecision, Rule

__all__ = ["UnmatchedRule", "rule_levels", "unmatched_rules"]

_SPACED = re.compile(r"\s*([\w.-]+)\s*=")
_KINDS: tuple[PermissionDecision, ...] = ("allow", "ask", "deny")
_MAX_NAMED = 5
# Similar names are searched among the first tools only: each costs about 20 microseconds.
_MAX_COMPARED = 400


class UnmatchedRule(NamedTuple):
    """A rule that no call can match.

    Attributes:
        path: The keys and the index that lead to it, below `permissions`.
        rule: The rule; for a trusted server, its name.
        problem: Why it matches nothing.
    """

    path: tuple[str | int, ...]
    rule: str
    problem: str

    def __str__(self) -> str:
        place = ".".join(map(str, ("permissions", *self.path[:-1])))
        if self.path[0] == "trusted_servers":
            return f"{place}: {self.problem}"
        return f"{place}: the rule {self.rule!r} {self.problem}"


def unmatched_rules(settings: PermissionSettings, tools: ToolsByRule) -> Iterator[UnmatchedRule]:
    """Yield each rule that none of these tools can match.

    Args:
        settings: The rules.
        tools: The tools; a server that is not connected yet has no tools.
    """
    for place, level in rule_levels(settings):
        for kind in _KINDS:
            for index, written in enumerate(getattr(level, kind)):
                problem = _problem(Rule.read(written), kind, tools)
                if problem is not None:
                    yield UnmatchedRule((*place, kind, index), written, problem)
    for index, server in enumerate(settings.trusted_servers):
        if server not in tools.servers:
            near = get_close_matches(server, tools.servers, n=_MAX_NAMED, cutoff=0.6)
            problem = f"no tool is from a server {server!r}{_known_names(near)}"
            yield UnmatchedRule(("trusted_servers", index), server, problem)


def rule_levels(settings: PermissionSettings) -> Iterator[tuple[tuple[str, ...], PermissionRules]]:
    """Yield the rules of each level of the settings, with their place."""
    yield (), settings
    yield ("policy",), settings.policy
    for role, rules in settings.roles.items():
        yield ("roles", role), rules


def _problem(rule: Rule, kind: PermissionDecision, tools: ToolsByRule) -> str | None:
    """Return why a rule matches nothing, or None if it may match."""
    first = None
    for tool in tools.named(rule.name, allows=kind == "allow"):
        problem = _pattern_problem(rule, kind, tool)
        if problem is None:
            return None
        first = first or problem
    return first or _unknown(rule, kind, tools)


def _unknown(rule: Rule, kind: PermissionDecision, tools: ToolsByRule) -> str:
    same = list(islice(tools.named(rule.name), _MAX_NAMED + 1)) if kind == "allow" else []
    if same:
        listed = _known_names(map(rule_of_tool, same))
        return (
            "allows no tool: it names tools of servers, which a rule that allows must name "
            f"with their server{listed}"
        )
    known = (
        name
        for tool in tools.named("*")
        for name in (rule_of_tool(tool), rule_of_server(tool))
        if name
    )
    by_fold = {name.casefold(): name for name in islice(known, _MAX_COMPARED)}
    wanted = rule.name.casefold()[:64]
    if wanted in by_fold:
        return f"names no tool: upper and lower case differ{_known_names([by_fold[wanted]])}"
    close = get_close_matches(wanted, by_fold, n=_MAX_NAMED, cutoff=0.7)
    return f"names no tool{_known_names(by_fold[one] for one in close)}"


def _pattern_problem(rule: Rule, kind: PermissionDecision, tool: Tool) -> str | None:
    """Return why no arguments of a tool can match, or None if some may."""
    if rule.pattern is None:
        return None
    found = NAMED_PATTERN.fullmatch(rule.pattern)
    named = rule.argument(tool)
    spaced = _SPACED.match(rule.pattern)
    if found is None and spaced is not None and spaced[1] in declared_names(tool):
        return f"has a space next to =, so it names no argument; write {spaced[1]}=pattern"
    if found is None or (named is None and _is_assignment(found[1])):
        if kind == "allow" and not rule.may_allow(tool):
            return (
                f"allows nothing: {tool.name!r} is a server's tool, so the rule must name the "
                f"argument, as in {rule.name}({_first(tool)}={rule.pattern})"
            )
        return None
    path, pattern = found[1], found[2]
    names = declared_names(tool)
    if names and not declares(tool, path):
        near = get_close_matches(path, names, n=_MAX_NAMED, cutoff=0.5) or names
        return f"names {path!r}, which is not an argument of {tool.name!r}{_known_names(near)}"
    values = values_declared(tool, path)
    if values and not any(read_pattern(pattern).may_fit(value) for value in values):
        listed = _known_names([str(value) for value in values])
        return f"never matches: {path!r} of {tool.name!r} has other values{listed}"
    return None


def _is_assignment(name: str) -> bool:
    """Return True for `A` in `run(A=1 make)`: a variable of a command, not an argument."""
    return name.isupper()


def _first(tool: Tool) -> str:
    return next(iter(declared_names(tool)), "argument")


def _known_names(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = ", ..." if len(listed) > _MAX_NAMED else ""
    return f"; known: {', '.join(map(repr, listed[:_MAX_NAMED]))}{more}" if listed else ""
