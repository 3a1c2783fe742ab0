"""Rules of permissions: which calls one is about, and which of many wins.

Pure. A rule is `tool` or `tool(pattern)`; `rule_names.py` says which tools it names. A
pattern is held against an argument (`argument_values.py`, `value_patterns.py`):

- `send_mail(to=*@example.com)`: the argument of that name; dots lead further in.
- `run(git *)`: what the tool itself says its calls are about, or else its first required
  argument. A server's schema chooses nothing: of its tools, such a rule denies or asks if
  any argument matches, and allows nothing.

A rule that allows must match every value, however it is read; for one that denies or asks,
one value is enough, in any reading, and so is a value that cannot be read for certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tool_search.catalog.tool import Tool
from tool_search.config.permissions import PermissionRules
from tool_search.execution.permissions.argument_values import (
    CallArguments,
    FoundValues,
    Subjects,
    declared_names,
    declares,
)
from tool_search.execution.permissions.rule_names import (
    named_tools,
    rule_of_server,
    rule_of_tool,
    server_of,
)
from tool_search.values.patterns import NAMED_PATTERN, ValuePattern, read_pattern

__all__ = ["PermissionDecision", "Rule", "RuleSet", "suggested_rules"]

PermissionDecision = Literal["allow", "ask", "deny"]
_ORDER: tuple[PermissionDecision, ...] = ("deny", "ask", "allow")
_KINDS = ("domain:", "email:", "nocase:")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, read.

    Attributes:
        name: Which tools it names.
        pattern: What it looks for in their arguments; None: any.
    """

    name: str
    pattern: str | None = None

    @classmethod
    def read(cls, written_rule: str) -> Rule:
        """Return the rule of a text.

        >>> Rule.read("run(git *)")
        Rule(name='run', pattern='git *')
        """
        name, bracket, rest = written_rule.partition("(")
        return cls(name, rest.removesuffix(")") if bracket else None)

    def names(self, tool: Tool, *, allows: bool = False) -> bool:
        """Return True if it is about a tool, whatever the arguments.

        Args:
            tool: The tool.
            allows: True for a rule that allows.
        """
        return named_tools(self.name).has(tool, allows=allows)

    def matches(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        subjects: Subjects | None,
        every: bool,
    ) -> bool:
        """Return True if it is about this call: `covers` for a call that is looked at once."""
        return self.covers(CallArguments(tool, arguments, subjects=subjects), every=every)

    def covers(self, call: CallArguments, *, every: bool) -> bool:
        """Return True if it is about this call.

        Args:
            call: The call.
            every: True for a rule that allows: all values must match.
        """
        if not self.names(call.tool, allows=every):
            return False
        if self.pattern is None:
            return True
        return _allows(self.pattern, call) if every else _holds_back(self.pattern, call)

    def argument(self, tool: Tool) -> tuple[str, str] | None:
        """Return the argument that the rule names in a tool, and the pattern for its values.

        None if it names none: then its pattern is about what the call is about.
        """
        found = NAMED_PATTERN.fullmatch(self.pattern or "")
        if found is None:
            return None
        # The bot's own tool may have `A=1 make` for a command.
        is_meant = server_of(tool) is not None or not declared_names(tool)
        return (found[1], found[2]) if is_meant or declares(tool, found[1]) else None

    def may_allow(self, tool: Tool) -> bool:
        """Return True if some call of a tool may match, for a rule that allows."""
        if not self.names(tool, allows=True):
            return False
        if self.pattern is None or server_of(tool) is None or self.argument(tool) is not None:
            return True
        return not self.pattern.strip("*")


def _allows(pattern: str, call: CallArguments) -> bool:
    """Return True if all that the pattern is about matches, however it is read."""
    named = Rule(call.tool.name, pattern).argument(call.tool)
    read = _readable(named[1] if named else pattern)
    if read is None:
        return False
    subjects = call.subjects
    if named is None:
        if subjects is not None:
            return _all_fit(read, subjects)
        first = call.first_argument
        return read.is_anything if first is None else _covered(read, call.at(first))
    if not _covered(read, call.at(named[0])):
        return False
    # No other spelling slips past a rule that gives the argument its name.
    return subjects is None or named[0] != call.first_argument or _all_fit(read, subjects)


def _holds_back(pattern: str, call: CallArguments) -> bool:
    """Return True if anything that the pattern may be about may match."""
    found = NAMED_PATTERN.fullmatch(pattern)
    named = Rule(call.tool.name, pattern).argument(call.tool)
    subjects = call.subjects
    if found is not None:
        read = _readable(found[2])
        is_subject = subjects is not None and found[1] == call.first_argument
        if _any_fits(read, call.anywhere(found[1]), subjects if is_subject else None):
            return True
        if read is not None and _is_renamed(found[1], call.tool):
            every = call.every_value
            return every.is_cut or any(map(read.is_meant_by, every.values))
    if named is not None:
        return False
    read = _readable(pattern)
    if subjects is not None:
        return _any_fits(read, FoundValues(), subjects)
    first = call.first_argument
    return _any_fits(read, call.every_value if first is None else call.anywhere(first), None)


def _is_renamed(path: str, tool: Tool) -> bool:
    """Return True if a server's tool has arguments, but not this one: it may have renamed it."""
    names = declared_names(tool)
    return server_of(tool) is not None and bool(names) and not declares(tool, path)


def _readable(pattern: str) -> ValuePattern | None:
    """Return a pattern; None if it cannot be read, as one that somebody granted by hand."""
    try:
        return read_pattern(pattern)
    except ValueError:
        return None


def _covered(pattern: ValuePattern, found: FoundValues) -> bool:
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
    """Return rules that a user may grant: this very argument, the tool, the tool's server.

    Args:
        tool: What is called.
        arguments: With what.
        subjects: What the tool says its calls are about; a call about more than one
            thing has no rule of its own.
    """
    name, server = rule_of_tool(tool), rule_of_server(tool)
    exact = _exact_pattern(CallArguments(tool, arguments, subjects=subjects))
    return (
        *([f"{name}({exact})"] if exact is not None else []),
        name,
        *([server] if server is not None else []),
    )


def _exact_pattern(call: CallArguments) -> str | None:
    """Return the pattern of this call's own argument; None if it has no such rule.

    Of a server's tool it is one for a call with one argument alone: which of more is the
    one that matters, its schema cannot say.
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
    """Return True if a value as a pattern matches itself alone."""
    special = any(char in value for char in "*?[=()") or value.startswith(_KINDS)
    return bool(value) and value.isprintable() and not special


@lru_cache(maxsize=256)
def _rules(lines: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(map(Rule.read, lines))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules of one or more levels taken together.

    Attributes:
        levels: The levels; their order does not matter.
    """

    levels: tuple[PermissionRules, ...] = ()

    def verdict(
        self, tool: Tool, arguments: Mapping[str, Any], subjects: Subjects | None = None
    ) -> PermissionDecision | None:
        """Return what the rules say of a call: deny over ask over allow; None: nothing."""
        return self.decide(CallArguments(tool, arguments, subjects=subjects))

    def decide(self, call: CallArguments) -> PermissionDecision | None:
        """Return the same for a call that many rules look at."""
        for verdict in _ORDER:
            every = verdict == "allow"
            if any(rule.covers(call, every=every) for rule in self.rules(verdict)):
                return verdict
        return None

    def rules(self, verdict: PermissionDecision) -> Iterable[Rule]:
        """Return the rules of one kind, of all levels."""
        return (rule for level in self.levels for rule in _rules(getattr(level, verdict)))

    def says(self, verdict: PermissionDecision, tool: Tool, *, of_some: bool = False) -> bool:
        """Return True if a rule of this kind names a tool for all its calls, or `of_some` too."""
        if verdict == "allow" and of_some:
            return any(rule.may_allow(tool) for rule in self.rules(verdict))
        allows = verdict == "allow"
        return any(
            (of_some or rule.pattern is None) and rule.names(tool, allows=allows)
            for rule in self.rules(verdict)
        )
