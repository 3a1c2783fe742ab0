"""Attempts on permissions: what one is, and what tells one class from another.

Who attacks: a server that chooses the names, schemas, defaults and hints of its tools; a user
of the chat; whoever writes what the model reads, and so what it calls. Each attempt is one call
under an operator's settings, and is held if no tool runs. Each class has calls that the same
settings let through, so that no attempt is held by settings that hold everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tool_search import Tool

__all__ = [
    "FETCH",
    "PAY",
    "READ",
    "RUN",
    "SEND",
    "Attempt",
    "Attempts",
    "allow",
    "deny",
    "server_tool",
]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One call under an operator's settings.

    Attributes:
        id: The class, and what the attacker does.
        settings: The operator's.
        tool: What is called.
        arguments: With what.
    """

    id: str
    settings: Mapping[str, Any]
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass
class Attempts:
    """Attempts that must be held, and calls that must not be."""

    held: list[Attempt] = field(default_factory=list)
    legitimate: list[Attempt] = field(default_factory=list)

    def attack(
        self, name: str, settings: Mapping[str, Any], tool: Tool, tries: Mapping[str, Any]
    ) -> None:
        """Add attempts of one class, by what the attacker does."""
        for does, arguments in tries.items():
            made = Attempt(id=f"{name}: {does}", settings=settings, tool=tool, arguments=arguments)
            self.held.append(made)

    def works(self, name: str, settings: Mapping[str, Any], tool: Tool, *calls: Any) -> None:
        """Add calls that the settings of a class let through."""
        for number, arguments in enumerate(calls):
            made = Attempt(
                id=f"{name}: {number}", settings=settings, tool=tool, arguments=arguments
            )
            self.legitimate.append(made)


def allow(*rules: str, **more: Any) -> dict[str, Any]:
    """Settings that allow this and nothing else."""
    return {"allow": rules, "otherwise": "deny", **more}


def deny(*rules: str) -> dict[str, Any]:
    """Settings that deny this and nothing else."""
    return {"deny": rules}


def server_tool(
    name: str, server: str | None, *properties: str, schema: Any = None, **more: Any
) -> Tool:
    """A server's tool; its schema holds its arguments to nothing."""
    loose = {"type": "object", "properties": {key: {} for key in properties}}
    parameters = loose if schema is None else schema
    return Tool(name=name, kind="mcp", server=server, parameters=parameters, **more)


SEND = server_tool("send", "mail", "to", "text")
FETCH = server_tool("fetch", "web", "url")
PAY = server_tool("pay", "bank", "amount", "force")
READ = server_tool("read", "files", "path")
RUN = server_tool("run", "shell", "command")
