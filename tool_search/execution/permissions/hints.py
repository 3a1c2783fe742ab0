"""What a tool's annotations say of its calls, as far as they count.

The bot's owner wrote the annotations of the bot's own tools. A server writes those of its
tools itself: they count if the operator trusts the server, and grant nothing otherwise.
`concurrency_safe` is no hint of the protocol: the bot's owner wrote it, whatever the tool.

Source: Model Context Protocol, 2025-06-18, "Tools" and `ToolAnnotations`: `readOnlyHint` is
false by default, `destructiveHint` true, `idempotentHint` false; "clients MUST consider tool
annotations to be untrusted unless they come from trusted servers".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tool_search.catalog.tool import Tool
from tool_search.execution.permissions.rule_names import server_of

__all__ = ["ToolHints", "hints_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What is taken for true of every call of a tool.

    Attributes:
        read_only: It changes nothing.
        destructive: It may destroy something.
        concurrency_safe: It may run beside other calls.
    """

    read_only: bool = False
    destructive: bool = True
    concurrency_safe: bool = False


def hints_of(tool: Tool, trusted_servers: Collection[str] = ()) -> ToolHints:
    """Return what a tool's annotations say; where they contradict each other, the worse.

    Args:
        tool: The tool.
        trusted_servers: Servers whose own word counts, by their exact names.
    """
    server = server_of(tool)
    safe = tool.annotations.get("concurrency_safe")
    if server is not None and (not server or server not in trusted_servers):
        return ToolHints(concurrency_safe=safe is True)
    reads = _facts(tool, "read_only", "readOnlyHint")
    destroys = _facts(tool, "destructive", "destructiveHint")
    read_only = bool(reads) and all(fact is True for fact in reads) and True not in destroys
    if server is None:
        # Its author knows what he marks: what is not marked destroys nothing.
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
    """Return what the annotations have under any of these keys."""
    return [tool.annotations[key] for key in keys if tool.annotations.get(key) is not None]
