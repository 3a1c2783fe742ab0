"""An MCP server over other MCP servers: all their tools under one roof, with search."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
