"""Rules of permissions: what one names, and which of many wins.

Pure. A rule is `tool`, `tool(pattern)`, `mcp__server__tool` or `mcp__server__*`, where
`*` in a name stands for anything. A pattern is looked for in an argument:

- `send_mail(to=*@example.com)`: in the argument of that name; dots lead further in.
- `run(git *)`: in what the tool itself says its calls are about, or else in its first
  required argument. `git:*` is `git` alone or with anything behind a space.
- `fetch(domain:example.com)`: in the host of an address, whatever letters it is written
  in; `domain:*.example.com` means the hosts below it.

An argument that is not given has its schema's default. One may have many values: a rule
that allows must match them all; for one that denies or asks, one is enough, and so is an
address that cannot be read for certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

from tool_search.catalog import Tool
from tool_search.permission_settings import PermissionRules
from tool_search.schema import compact_json

__all__ = ["Rule", "RuleSet", "Verdict", "mcp_name", "mcp_server", "suggested_rules"]

Verdict = Literal["allow", "ask", "deny"]
Subjects = Callable[[Mapping[str, Any]], Sequence[str]]
_NOT_IN_MCP_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MCP = "mcp__"


def mcp_name(tool: Tool) -> str | None:
    """The name under which rules know a server's tool; None for one without a server."""
    every = mcp_server(tool)
    if every is None:
        return None
    bare = tool.name.removeprefix(every[:-1])
    return f"{every[:-1]}{_NOT_IN_MCP_NAMES.sub('_', bare)}"


def mcp_server(tool: Tool) -> str | None:
    """The rule that names all tools of a tool's server; None for one without a server."""
    if not tool.server:
        return None
    return f"{_MCP}{_NOT_IN_MCP_NAMES.sub('_', tool.server)}__*"


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
    def read(cls, written: str) -> Rule:
        """The rule of a text.

        >>> Rule.read("run(git *)")
        Rule(name='run', pattern='git *')
        """
        name, bracket, rest = written.partition("(")
        return cls(name, rest.removesuffix(")") if bracket else None)

    def names(self, tool: Tool) -> bool:
        """Whether it is about a tool, whatever the arguments."""
        own = mcp_name(tool)
        if own is None or not self.name.startswith(_MCP):
            return fnmatchcase(tool.name, self.name)
        # By its server, not by its name: no server may call its tools another's.
        if self.name.endswith("__*") and "*" not in self.name[:-1] and self.name != f"{_MCP}*":
            return self.name == mcp_server(tool)
        return fnmatchcase(own, self.name)

    def matches(
        self, tool: Tool, arguments: Mapping[str, Any], *, subjects: Subjects | None, every: bool
    ) -> bool:
        """Whether it is about this call.

        Args:
            tool: What is called.
            arguments: With what.
            subjects: What the tool says its calls are about.
            every: Whether all values must match, not one.
        """
        if not self.names(tool):
            return False
        if self.pattern is None:
            return True
        pattern, values = self._looked_at(self.pattern, tool, arguments, subjects)
        found = [_fits(pattern, value, unsure=not every) for value in values]
        return bool(found) and (all(found) if every else any(found))

    @staticmethod
    def _looked_at(
        pattern: str, tool: Tool, arguments: Mapping[str, Any], subjects: Subjects | None
    ) -> tuple[str, Sequence[str]]:
        """The pattern without a name in it, and the values it is held against."""
        properties = tool.parameters.get("properties") or {}
        path, equals, rest = pattern.partition("=")
        first = path.split(".")[0]
        named = next(iter([*(tool.parameters.get("required") or ()), *properties]), None)
        if equals and (first in properties or first in arguments):
            values = _values(_complete(arguments, properties, first), path.split("."))
            # No other spelling slips past a rule that gives the argument its name.
            is_subject = subjects is not None and path == named
            return rest, [*values, *subjects(arguments)] if subjects and is_subject else values
        if subjects is not None:
            return pattern, subjects(arguments)
        if not isinstance(named, str):
            return pattern, ()
        return pattern, _values(_complete(arguments, properties, named), [named])


def _complete(
    arguments: Mapping[str, Any], properties: Mapping[str, Any], name: str
) -> Mapping[str, Any]:
    """The arguments, the default of one taken for given where the model gave none."""
    described = properties.get(name)
    if name in arguments or not isinstance(described, Mapping) or "default" not in described:
        return arguments
    return {**arguments, name: described["default"]}


def _values(value: Any, path: Sequence[str]) -> list[str]:
    """The values at a place, as text; of a list each of its items."""
    if isinstance(value, list):
        return [text for item in value for text in _values(item, path)]
    if path:
        inner = value.get(path[0]) if isinstance(value, Mapping) else None
        return [] if inner is None else _values(inner, path[1:])
    return [value if isinstance(value, str) else compact_json(value)]


def _fits(pattern: str, value: str, *, unsure: bool) -> bool:
    """Whether a pattern matches.

    Args:
        pattern: Without the name of an argument.
        value: What it is held against.
        unsure: The answer for an address that clients may read in different ways.
    """
    if pattern.startswith("domain:"):
        host = _host(value)
        return unsure if host is None else _is_at(pattern.removeprefix("domain:"), host)
    if pattern.endswith(":*"):
        start = pattern[:-2]
        return value == start or value.startswith(f"{start} ")
    return fnmatchcase(value, pattern)


def _is_at(domain: str, host: str) -> bool:
    bare = _in_ascii(domain.removeprefix("*."))
    if bare is None:
        return False
    return host.endswith(f".{bare}") if domain.startswith("*.") else host == bare


def _host(address: str) -> str | None:
    """The host of an address, in the letters of the wire; None: it cannot be told for certain."""
    if "\\" in address:
        return None
    try:
        host = urlsplit(address).hostname
        if host is None and ":" not in address:
            host = urlsplit(f"//{address}").hostname
    except ValueError:
        return None
    return _in_ascii(host) if host else None


def _in_ascii(host: str) -> str | None:
    """A host as it goes over the wire: `ＸN．org` is `xn.org`, `пример.рф` has its code."""
    try:
        return host.encode("idna").decode("ascii").lower().rstrip(".")
    except UnicodeError:
        return None


def suggested_rules(
    tool: Tool, arguments: Mapping[str, Any], subjects: Subjects | None = None
) -> tuple[str, ...]:
    """Rules a user may grant: this very argument, the tool, the tool's server.

    Args:
        tool: What is called.
        arguments: With what.
        subjects: What the tool says its calls are about; a call about more than one
            thing has no rule of its own.
    """
    name = mcp_name(tool) or tool.name
    required = next(iter(tool.parameters.get("required") or ()), None)
    value = arguments.get(required) if isinstance(required, str) else None
    about = [value] if subjects is None else subjects(arguments)
    exact = [f"{name}({one})" for one in about if isinstance(one, str) and _is_plain(one)]
    server = mcp_server(tool)
    return (*(exact if len(about) == 1 else ()), name, *([server] if server else []))


def _is_plain(value: str) -> bool:
    """Whether a value as a pattern matches itself alone."""
    special = any(char in value for char in "*?[=()\n") or value.startswith("domain:")
    return bool(value) and not special


@lru_cache(maxsize=64)
def _rules(written: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(map(Rule.read, written))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules of one or more levels taken together.

    Attributes:
        levels: The levels; their order does not matter.
    """

    levels: tuple[PermissionRules, ...] = ()

    def verdict(
        self, tool: Tool, arguments: Mapping[str, Any], subjects: Subjects | None = None
    ) -> Verdict | None:
        """What the rules say of a call: deny over ask over allow; None: nothing."""
        order: tuple[Verdict, ...] = ("deny", "ask", "allow")
        for verdict in order:
            for level in self.levels:
                for rule in _rules(getattr(level, verdict)):
                    every = verdict == "allow"
                    if rule.matches(tool, arguments, subjects=subjects, every=every):
                        return verdict
        return None

    def says(self, verdict: Verdict, tool: Tool, *, of_some: bool = False) -> bool:
        """Whether a rule of this kind names a tool for all its calls, or `of_some` too."""
        rules: Iterable[Rule] = (
            rule for level in self.levels for rule in _rules(getattr(level, verdict))
        )
        return any((of_some or rule.pattern is None) and rule.names(tool) for rule in rules)
