"""Clients, known by their headers, and the tools of each that are always declared.

Sources: requests of Claude Code 2.1.197 (its own tools have names in capitals, those of MCP
servers are `mcp__server__tool`) and of Codex CLI 0.169.0 (a server's tools are a namespace
`mcp__server`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from tool_search.serving.proxy.dialects.base import WireTool
from tool_search.serving.proxy.settings import ClientMatch, ClientRule

__all__ = ["BUILT_IN", "client_of", "core_reason", "is_core", "server_of"]

BUILT_IN = (
    ClientRule(
        name="claude-code",
        match=ClientMatch(header={"user-agent": "claude-cli/*"}),
        core=("[A-Z]*",),
    ),
    ClientRule(
        name="codex",
        match=ClientMatch(header={"user-agent": "codex*"}),
        deferred=("mcp__*:*",),
    ),
    ClientRule(name="generic"),
)
"""The rules for clients that are known, and for all others."""

_SERVER_PREFIX = "mcp__"


def client_of(headers: Mapping[str, str], rules: tuple[ClientRule, ...] = ()) -> ClientRule:
    """Return the first rule that fits a request's headers, whose names are in lower case."""
    for rule in (*rules, *BUILT_IN):
        wanted = rule.match.header.items()
        if all(fnmatchcase(headers.get(name.casefold(), ""), glob) for name, glob in wanted):
            return rule
    return BUILT_IN[-1]


def is_core(tool: WireTool, rule: ClientRule) -> bool:
    """True if a rule has a tool always declared."""
    return core_reason(tool, rule) is not None


def core_reason(tool: WireTool, rule: ClientRule) -> str | None:
    """Return the part of a rule that has a tool always declared; None: it waits to be found."""
    if rule.deferred is not None and not _matches(tool, rule.deferred):
        return f"{rule.name}: not in deferred {', '.join(rule.deferred)}"
    matched = next((glob for glob in rule.core if _matches(tool, (glob,))), None)
    return None if matched is None else f"{rule.name}: core {matched}"


def server_of(tool: WireTool) -> str | None:
    """Return the MCP server that a client's tool is of, if its name tells."""
    if tool.namespace is not None:
        return tool.namespace.removeprefix(_SERVER_PREFIX) or tool.namespace
    if tool.name.startswith(_SERVER_PREFIX):
        server, separator, rest = tool.name.removeprefix(_SERVER_PREFIX).partition("__")
        return server if separator and server and rest else None
    return None


def _matches(tool: WireTool, globs: tuple[str, ...]) -> bool:
    full = f"{tool.namespace}:{tool.name}" if tool.namespace else tool.name
    return any(fnmatchcase(full if ":" in glob else tool.name, glob) for glob in globs)
