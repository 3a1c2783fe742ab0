"""Permission rules: the calls that a rule matches, and the precedence of rules.

A rule is `tool` or `tool(pattern)`; `rule_names.py` has the names. The pattern is compared
with values of arguments (`argument_values.py`, `core/values/patterns.py`):

- `send_mail(to=*@example.com)`: the argument of that name; dots separate nested names.
- `run(git *)`: the subjects that the tool's author names, or else the first required
  argument. A server's schema cannot choose the argument: for a server's tool, such a rule
  denies or asks if any argument matches, and allows nothing.

A rule that allows must match every value in every reading. A rule that denies or asks needs
one value that matches in any reading, or that cannot be read for certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tool_search.config.permissions import PermissionRules
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.patterns import NAMED_PATTERN, ValuePattern, read_pattern
from tool_search.runner.execution.permissions.argument_values import (
    CallArguments,
    FoundValues,
    Subjects,
    declared_names,
    declares,
)
from tool_search.runner.execution.permissions.rule_names import (
    named_tools,
    rule_of_server,
    rule_of_tool,
    server_of,
)

__all__ = ["PermissionDecision", "Rule", "RuleSet", "suggested_rules"]

PermissionDecision = Literal["allow", "ask", "deny"]
_ORDER: tuple[PermissionDecision, ...] = ("deny", "ask", "allow")
_KINDS = ("domain:", "email:", "nocase:")


@dataclass(frozen=True, slots=True)
class Rule:
    """One parsed rule.

    Attributes:
        name: The names of tools and servers that it matches.
        pattern: The pattern for arguments; None: any arguments.
    """

    name: str
    pattern: str | None = None

    @classmethod
    def read(cls, written_rule: str) -> Rule:
        """Return the rule that a text describes.

        >>> Rule.read("run(git *)")
        Rule(name='run', pattern='git *')
        """
        name, bracket, rest = written_rule.partition("(")
        return cls(name, rest.removesuffix(")") if bracket else None)

    def names(self, tool: Tool, *, allows: bool = False) -> bool:
        """Return True if the rule names a tool; its pattern is ignored.

        Args:
            tool: The tool.
            allows: True for a rule that allows.
        """
        return named_tools(self.name).has(tool, allows=allows)

    def covers(self, call: CallArguments, *, every: bool) -> bool:
        """Return True if the rule matches this call.

        Args:
            call: The call.
            every: True for a rule that allows: every value must match.
        """
        if not self.names(call.tool, allows=every):
            return False
        if self.pattern is None:
            return True
        return _allows(self.pattern, call) if every else _restricts(self.pattern, call)

    def argument(self, tool: Tool) -> tuple[str, str] | None:
        """Return the argument that the rule names, and the pattern for its values.

        None if it names no argument; then the pattern applies to the call's subjects.
        """
        found = NAMED_PATTERN.fullmatch(self.pattern or "")
        if found is None:
            return None
        # `A=1 make` may be a command of the bot's own tool, and not a named argument.
        is_meant = server_of(tool) is not None or not declared_names(tool)
        return (found[1], found[2]) if is_meant or declares(tool, found[1]) else None

    def may_allow(self, tool: Tool) -> bool:
        """Return True if some call of a tool may match this rule that allows."""
        if not self.names(tool, allows=True):
            return False
        if self.pattern is None or server_of(tool) is None or self.argument(tool) is not None:
            return True
        return not self.pattern.strip("*")


def _allows(pattern: str, call: CallArguments) -> bool:
    """Return True if every value that the pattern applies to matches in every reading."""
    named = Rule(call.tool.name, pattern).argument(call.tool)
    read = _parsed_pattern(named[1] if named else pattern)
    if read is None:
        return False
    subjects = call.subjects
    if named is None:
        if subjects is not None:
            return _all_fit(read, subjects)
        first = call.first_argument
        return read.is_anything if first is None else _is_covered(read, call.at(first))
    if not _is_covered(read, call.at(named[0])):
        return False
    # The same values under another name must match too.
    return subjects is None or named[0] != call.first_argument or _all_fit(read, subjects)


def _restricts(pattern: str, call: CallArguments) -> bool:
    """Return True if any value that the pattern may apply to may match."""
    found = NAMED_PATTERN.fullmatch(pattern)
    named = Rule(call.tool.name, pattern).argument(call.tool)
    subjects = call.subjects
    if found is not None:
        read = _parsed_pattern(found[2])
        is_subject = subjects is not None and found[1] == call.first_argument
        if _any_fits(read, call.anywhere(found[1]), subjects if is_subject else None):
            return True
        if read is not None and _is_renamed(found[1], call.tool):
            every = call.every_value
            return every.is_cut or any(map(read.is_meant_by, every.values))
    if named is not None:
        return False
    read = _parsed_pattern(pattern)
    if subjects is not None:
        return _any_fits(read, FoundValues(), subjects)
    first = call.first_argument
    return _any_fits(read, call.every_value if first is None else call.anywhere(first), None)


def _is_renamed(path: str, tool: Tool) -> bool:
    """Return True if a server's tool lacks this argument: the server may have renamed it."""
    names = declared_names(tool)
    return server_of(tool) is not None and bool(names) and not declares(tool, path)


def _parsed_pattern(pattern: str) -> ValuePattern | None:
    """Return a parsed pattern, or None for an invalid one in a grant written by hand."""
    try:
        return read_pattern(pattern)
    except ValueError:
        return None


def _is_covered(pattern: ValuePattern, found: FoundValues) -> bool:
    if found.is_cut or not (found.values or found.has_objects):
        return False
    if pattern.is_anything:
        return True
    return not found.has_objects and all(map(pattern.fits_surely, found.values))


def _all_fit(pattern: ValuePattern, subjects: Sequence[str]) -> bool:
    return bool(subjects) and all(pattern.fits_surely(one, is_subject=True) for one in subjects)


def _any_fits(
    pattern: ValuePattern | None, found: FoundValues, subjects: Sequence[str] | None
) -> bool:
    values = (*found.values, *(subjects or ()))
    if pattern is None:
        return True
    return found.is_cut or any(map(pattern.may_fit, values))


def suggested_rules(
    tool: Tool, arguments: Mapping[str, Any], subjects: Subjects | None = None
) -> tuple[str, ...]:
    """Return rules that a user may grant: for this argument, the tool, the tool's server.

    Args:
        tool: The called tool.
        arguments: The call's arguments.
        subjects: Returns the values that the call is about; a call with more than one has
            no rule of its own.
    """
    name, server = rule_of_tool(tool), rule_of_server(tool)
    exact = _exact_pattern(CallArguments(tool, arguments, subjects=subjects))
    return (
        *([f"{name}({exact})"] if exact is not None else []),
        name,
        *([server] if server is not None else []),
    )


def _exact_pattern(call: CallArguments) -> str | None:
    """Return the pattern for this call's own argument, or None if there is none.

    For a server's tool there is one only if the call has one argument: its schema cannot say
    which of several arguments matters.
    """
    if server_of(call.tool) is not None:
        given = [(key, value) for key, value in call.given.items() if value is not None]
        if len(given) != 1 or not NAMED_PATTERN.fullmatch(f"{given[0][0]}="):
            return None
        name, value = given[0]
        about: Sequence[Any] = [value]
        prefix = f"{name}="
    elif call.subjects is not None:
        about, prefix = call.subjects, ""
    else:
        about, prefix = [call.given.get(call.first_argument or "")], ""
    exact = about[0] if len(about) == 1 and isinstance(about[0], str) else None
    return f"{prefix}{exact}" if exact is not None and _is_exact(exact) else None


def _is_exact(value: str) -> bool:
    """Return True if a value, read as a pattern, matches only itself."""
    special = any(char in value for char in "*?[=()") or value.startswith(_KINDS)
    return bool(value) and value.isprintable() and not special


@lru_cache(maxsize=256)
def _rules(lines: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(map(Rule.read, lines))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one or more levels.

    Attributes:
        levels: The levels, in any order.
    """

    levels: tuple[PermissionRules, ...] = ()

    def decide(self, call: CallArguments) -> PermissionDecision | None:
        """Return the decision of the rules: deny over ask over allow; None: no rule matches."""
        for decision in _ORDER:
            every = decision == "allow"
            if any(rule.covers(call, every=every) for rule in self.rules(decision)):
                return decision
        return None

    def rules(self, decision: PermissionDecision) -> Iterable[Rule]:
        """Return the rules of one kind from all levels."""
        return (rule for level in self.levels for rule in _rules(getattr(level, decision)))

    def says(self, decision: PermissionDecision, tool: Tool, *, of_some: bool = False) -> bool:
        """Return True if a rule of this kind covers all calls of a tool, or some if `of_some`."""
        if decision == "allow" and of_some:
            return any(rule.may_allow(tool) for rule in self.rules(decision))
        allows = decision == "allow"
        return any(
            (of_some or rule.pattern is None) and rule.names(tool, allows=allows)
            for rule in self.rules(decision)
        )
