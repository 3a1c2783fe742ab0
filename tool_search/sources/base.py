"""The protocol of a source, and the state of its servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from tool_search.core.catalog.tool import Tool
from tool_search.runner.execution import ToolExecutor

__all__ = [
    "CLIENT_CAPABILITIES",
    "LIST_KINDS",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "WHOLE_LIST",
    "ListChange",
    "ListKind",
    "OnListChange",
    "OnUpdate",
    "ServerState",
    "ServerStatus",
    "SourceChange",
    "ToolSource",
    "Unsubscribe",
]

MISSING_CAPABILITY = -32_021
"""The code of a server that needs an ability of the client, such as asking a person."""

METHOD_NOT_FOUND = -32_601
"""The code of a server that does not know a method."""

WHOLE_LIST = "tool_search/whole_list"
"""The key in the `_meta` of `tools/list` that asks a gateway for its hidden tools too: for who
reads its catalog instead of working with it."""

ServerState = Literal["disabled", "connecting", "connected", "failed", "closed"]
"""The state of a server. `connecting`: also while a lost connection is made again, and its
tools are still offered; `failed`: they are hidden until it answers."""

Unsubscribe = Callable[[], None]

OnUpdate = Callable[[str], object]
"""Gets the address of a resource that has changed."""

ListKind = Literal["tools", "prompts", "resources"]
"""A list of a server that may change; templates of resources are in that of resources."""

LIST_KINDS: tuple[ListKind, ...] = ("tools", "prompts", "resources")
"""The kinds of lists."""

CLIENT_CAPABILITIES = "tool_search/capabilities"
"""The key in the `_meta` of a request to a server with the capabilities of whom it is for: a
server that asks for input asks only those who can give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The state of one server.

    Attributes:
        server: Its name.
        state: The state of its connection.
        tools: The number of its tools that are offered.
        protocol: The version of the protocol that was agreed on; None: not connected yet.
        error: The last error; None: there was none.
        last_lines: What its process wrote last to standard error, for the operator alone: other
            people's data may be in it.
    """

    server: str
    state: ServerState
    tools: int = 0
    protocol: str | None = None
    error: str | None = None
    last_lines: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """A change of the tools that a source offers.

    Attributes:
        servers: The servers whose tools changed, sorted.
    """

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChange:
    """A change of the prompts or of the resources of a server.

    Attributes:
        server: The server.
        kind: The list that has changed: `prompts` or `resources`.
    """

    server: str
    kind: ListKind


OnListChange = Callable[[ListChange], object]
"""Gets a change of a list that is not one of tools."""


class ToolSource(Protocol):
    """Tools from elsewhere that may change at any time."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The current tools, each under a name of its own, the oldest first."""
        ...

    @property
    def executor(self) -> ToolExecutor:
        """The executor of the tools, by the names in `tools`."""
        ...

    def subscribe(self, callback: Callable[[SourceChange], object]) -> Unsubscribe:
        """Call a function in the event loop after each change of `tools`.

        Returns:
            A function that ends the subscription.
        """
        ...
