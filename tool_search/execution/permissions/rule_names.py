"""Which tools a permission rule names.

- `send_mail`, `get_*`, `*`: tools of the bot itself. A rule that allows covers no server's
  tool by such a name, which a server could choose; one that asks or denies covers it too,
  so that nothing slips away from it;
- `mcp__mail__send`, `mcp__mail__get_*`: tools of the server `mail`;
- `mcp__mail__*`: all tools of that server; `mcp__*`: those of all servers.

A server stands in a rule as the configuration names it, letter by letter. In
`mcp__server__tool` it ends at the first `__`; what could be mistaken is written with percent
signs, `mcp__a_%5Fb__c` for the tool `c` of the server `a__b`. In `mcp__server__*` no
mistake is possible, so that `mcp__a__b__*` is about the server `a__b`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import unquote

from tool_search.catalog.tool import Tool

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
    """Return a tool's server, empty if it has no name; None for a tool of the bot itself."""
    return (tool.server or "") if tool.is_third_party else None


def rule_of_server(tool: Tool) -> str | None:
    """Return the rule that names all tools of a tool's server; None for the bot's own."""
    server = server_of(tool)
    if server is None:
        return None
    return f"{_MCP}{_encoded_server(server)}__*" if server else f"{_MCP}*"


def rule_of_tool(tool: Tool) -> str:
    """Return the rule that names this tool alone."""
    server = server_of(tool)
    if server is None:
        name = _encoded(tool.name)
        return f"%6D{name[1:]}" if name.startswith(_MCP) else name
    return f"{_MCP}{_encoded_server(server)}__{_encoded(_bare_name(tool))}"


def _bare_name(tool: Tool) -> str:
    """Return a tool's name on its own server, without the server's."""
    _, listed = tool.source
    for prefix in (f"{_MCP}{tool.server}__", f"{tool.server}__"):
        if len(listed) > len(prefix) and listed.startswith(prefix):
            return listed.removeprefix(prefix)
    return listed


def _encoded(text: str) -> str:
    return _SPECIAL.sub(_percent, text)


def _encoded_server(server: str) -> str:
    return _JOINT.sub("%5F", _encoded(server))


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The tools that the name in a rule is about.

    Attributes:
        tools: Which names: a glob.
        servers: Which servers: a glob; None: none is named.
    """

    tools: str
    servers: str | None = None

    def has(self, tool: Tool, *, allows: bool = False) -> bool:
        """Return True if it is about a tool.

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
    """Return what the name in a rule is about, the text before a bracket."""
    if not name.startswith(_MCP):
        return NamedTools(_as_glob(name))
    rest = name.removeprefix(_MCP)
    if rest == "*":
        return NamedTools("*", "*")
    if rest.endswith("__*"):
        return NamedTools("*", _as_glob(rest.removesuffix("__*")))
    server, joint, tool = rest.partition("__")
    # A server alone names nothing, as in Kode; no tool's name is empty.
    return NamedTools(_as_glob(tool) if joint else "", _as_glob(server))


class ToolsByRule:
    """Tools by the names that rules know them under, for a look at many rules.

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
        """Yield the tools that the name in a rule is about; some more than once.

        Args:
            name: The text before a bracket.
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
    """Return a part of a rule as a glob, in which decoded characters stand for themselves."""
    return _ENCODED.sub(lambda found: glob.escape(unquote(found[0])), text)
