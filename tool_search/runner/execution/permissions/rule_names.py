"""Names of tools in permission rules.

- `send_mail`, `get_*`, `*`: tools of the bot itself. A rule that allows does not match a
  server's tool by such a name, because a server could choose the name. A rule that asks or
  denies matches it too;
- `mcp__mail__send`, `mcp__mail__get_*`: tools of the server `mail`;
- `mcp__mail__*`: all tools of that server; `mcp__*`: all tools of all servers.

The server's name is the exact name in the configuration. In `mcp__server__tool` it ends at the
first `__`; ambiguous characters are percent-encoded: `mcp__a_%5Fb__c` is the tool `c` of the
server `a__b`. `mcp__server__*` is never ambiguous: `mcp__a__b__*` means the server `a__b`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import unquote

from tool_search.core.catalog.tool import Tool

__all__ = [
    "NamedTools",
    "ToolsByRule",
    "named_tools",
    "rule_of_server",
    "rule_of_tool",
    "server_of",
]

_MCP = "mcp__"
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SPECIAL = re.compile(r"[%()*?\[\]]|^\s|\s$")
_GLOB = re.compile(r"[*?\[]")
_JOINT = re.compile(r"(?<=_)_|^_|_$")


def server_of(tool: Tool) -> str | None:
    """Return a tool's server, "" if it has no name, or None for a tool of the bot itself."""
    return (tool.server or "") if tool.is_third_party else None


def rule_of_server(tool: Tool) -> str | None:
    """Return the rule for all tools of a tool's server, or None for the bot's own tools."""
    server = server_of(tool)
    if server is None:
        return None
    return f"{_MCP}{_encoded_server(server)}__*" if server else f"{_MCP}*"


def rule_of_tool(tool: Tool) -> str:
    """Return the rule for this tool alone."""
    server = server_of(tool)
    if server is None:
        name = _encode(tool.name)
        return f"%6D{name[1:]}" if name.startswith(_MCP) else name
    return f"{_MCP}{_encoded_server(server)}__{_encode(_bare_name(tool))}"


def _bare_name(tool: Tool) -> str:
    """Return a tool's name on its server, without a prefix of the server's name."""
    _, listed = tool.source
    for prefix in (f"{_MCP}{tool.server}__", f"{tool.server}__"):
        if len(listed) > len(prefix) and listed.startswith(prefix):
            return listed.removeprefix(prefix)
    return listed


def _encode(text: str) -> str:
    return _SPECIAL.sub(_percent, text)


def _encoded_server(server: str) -> str:
    return _JOINT.sub("%5F", _encode(server))


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The tools that the name in a rule matches.

    Attributes:
        tools: A glob for names of tools.
        servers: A glob for names of servers; None: the rule names no server.
    """

    tools: str
    servers: str | None = None

    def has(self, tool: Tool, *, allows: bool = False) -> bool:
        """Return True if a tool matches.

        Args:
            tool: The tool.
            allows: True for a rule that allows.
        """
        server = server_of(tool)
        if self.servers is None:
            is_meant = server is None or not allows
        else:
            is_meant = server is not None and fnmatchcase(server, self.servers)
        return is_meant and any(fnmatchcase(name, self.tools) for name in _names(tool, server))


def _names(tool: Tool, server: str | None) -> Collection[str]:
    if server is None:
        return (tool.name,)
    return {tool.name, tool.source[1], _bare_name(tool)}


@lru_cache(maxsize=1024)
def named_tools(name: str) -> NamedTools:
    """Return the tools of a rule's name: the text before the bracket."""
    if not name.startswith(_MCP):
        return NamedTools(_as_glob(name))
    rest = name.removeprefix(_MCP)
    if rest == "*":
        return NamedTools("*", "*")
    if rest.endswith("__*"):
        return NamedTools("*", _as_glob(rest.removesuffix("__*")))
    server, joint, tool = rest.partition("__")
    # `mcp__server` alone matches nothing, as in Kode: no tool has an empty name.
    return NamedTools(_as_glob(tool) if joint else "", _as_glob(server))


class ToolsByRule:
    """Tools by their names in rules, to check many rules fast.

    Args:
        tools: The tools.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._own: dict[str, list[Tool]] = {}
        self._of_servers: dict[str, dict[str, list[Tool]]] = {}
        for tool in tools:
            server = server_of(tool)
            group = self._own if server is None else self._of_servers.setdefault(server, {})
            for name in _names(tool, server):
                group.setdefault(name, []).append(tool)

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that have tools."""
        return tuple(self._of_servers)

    def named(self, name: str, *, allows: bool = False) -> Iterator[Tool]:
        """Yield the tools that a rule's name matches; some more than once.

        Args:
            name: The text before the bracket.
            allows: True for a rule that allows.
        """
        meant = named_tools(name)
        if meant.servers is None:
            groups = [self._own, *(() if allows else self._of_servers.values())]
        else:
            of_servers = self._of_servers.items()
            groups = [group for one, group in of_servers if fnmatchcase(one, meant.servers)]
        for group in groups:
            known = group if _GLOB.search(meant.tools) else (meant.tools,)
            for one in known:
                if one in group and fnmatchcase(one, meant.tools):
                    yield from group[one]


def _as_glob(text: str) -> str:
    """Return a part of a rule as a glob in which decoded characters are literal."""
    return _ENCODED.sub(lambda found: glob.escape(unquote(found[0])), text)
