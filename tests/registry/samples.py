"""Tools of the registry's tests."""

from __future__ import annotations

from typing import Any

from tool_search import Tool
from tool_search.sources.registry import Backend, ToolRegistry

GITHUB = Backend.mcp("github")
ACME = Backend.provider("acme", "status-v1")


def tool(name: str = "status", **facts: Any) -> Tool:
    """A tool of the namespace git."""
    return Tool(**{"name": name, "namespace": "git", "description": "Show changes.", **facts})


def filled(*names: str, **options: Any) -> ToolRegistry:
    """A registry of tools in the namespace git."""
    registry = ToolRegistry(**options)
    registry.register_all([(tool(name), GITHUB) for name in names])
    return registry
