"""An MCP server over other MCP servers: all their tools under one roof, with search."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
