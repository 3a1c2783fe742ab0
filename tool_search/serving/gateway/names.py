"""The names of tools at a gateway: `server___tool`, and a shorter form of long ones.

Source: MCProxy, which splits a name at the first `___`; Anthropic, "Tool use", 64 characters
of a tool's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool

__all__ = ["GatewayNames", "gateway_name", "split_name"]

_JOINT = "___"


def gateway_name(server: str | None, tool: str) -> str:
    """Return the full name of a server's tool; a tool without a server keeps its own.

    >>> gateway_name("github", "create_issue"), gateway_name(None, "create_issue")
    ('github___create_issue', 'create_issue')
    """
    return f"{server}{_JOINT}{tool}" if server else tool


def split_name(name: str) -> tuple[str | None, str]:
    """Return the server and the tool that a full name says; None for a name without a server.

    >>> split_name("github___create___issue"), split_name("create_issue")
    (('github', 'create___issue'), (None, 'create_issue'))
    """
    server, joint, tool = name.partition(_JOINT)
    return (server, tool) if joint and server and tool else (None, name)


@dataclass(frozen=True, slots=True)
class GatewayNames:
    """The tools of a gateway by name.

    Attributes:
        shown: The tools by the name that clients are shown: valid for every provider.
        full: The names that clients are shown, by full name; both can be called.
        doubtful: Full names that two tools would have, of which the first keeps it:
            `a___b` of a server and `b` of another one named `a` are the same.
    """

    shown: Mapping[str, Tool]
    full: Mapping[str, str]
    doubtful: tuple[str, ...] = ()

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> GatewayNames:
        """Name tools; the name of a tool depends on no other one."""
        shown: dict[str, Tool] = {}
        full: dict[str, str] = {}
        doubtful = []
        for tool in tools:
            server, listed = tool.source
            name = gateway_name(server, listed)
            short = wire_name(name)
            if name in full or short in shown:
                doubtful.append(name)
                continue
            shown[short] = tool
            full[name] = short
        return cls(shown, full, tuple(doubtful))

    def find(self, name: str) -> Tool | None:
        """Return the tool of a shown or full name, or None."""
        return self.shown.get(self.full.get(name, name))
