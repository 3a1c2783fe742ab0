"""Hints in a tool's annotations, if their author is trusted.

The bot's owner wrote the annotations of the bot's own tools. A server writes the annotations
of its tools: they count if the operator trusts the server, and grant nothing otherwise.
`concurrency_safe` is not part of the protocol: the bot's owner sets it, for any tool.

Source: Model Context Protocol, 2025-06-18, "Tools" and `ToolAnnotations`: `readOnlyHint` is
false by default, `destructiveHint` true, `idempotentHint` false; "clients MUST consider tool
annotations to be untrusted unless they come from trusted servers".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tool_search.core.catalog.tool import Tool
from tool_search.runner.execution.permissions.rule_names import server_of

__all__ = ["ToolHints", "hints_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """Facts that hold for every call of a tool.

    Attributes:
        read_only: True if a call changes nothing.
        destructive: True if a call may destroy something.
        concurrency_safe: True if a call may run together with others.
    """

    read_only: bool = False
    destructive: bool = True
    concurrency_safe: bool = False


def hints_of(tool: Tool, trusted_servers: Collection[str] = ()) -> ToolHints:
    """Return a tool's hints; contradictory annotations mean the worse.

    Args:
        tool: The tool.
        trusted_servers: The exact names of servers whose annotations count.
    """
    server = server_of(tool)
    safe = tool.annotations.get("concurrency_safe")
    if server is not None and (not server or server not in trusted_servers):
        return ToolHints(concurrency_safe=safe is True)
    reads = _facts(tool, "read_only", "readOnlyHint")
    destroys = _facts(tool, "destructive", "destructiveHint")
    read_only = bool(reads) and all(fact is True for fact in reads) and True not in destroys
    if server is None:
        # The bot's own author marks destructive tools: an unmarked tool destroys nothing.
        destructive = any(fact is not False for fact in destroys)
    else:
        destructive = not read_only and (
            not destroys or any(fact is not False for fact in destroys)
        )
    return ToolHints(
        read_only=read_only,
        destructive=destructive,
        concurrency_safe=read_only if safe is None else safe is True,
    )


def _facts(tool: Tool, *keys: str) -> list[object]:
    """Return the values that the annotations have under these keys."""
    return [tool.annotations[key] for key in keys if tool.annotations.get(key) is not None]
