"""MCP servers as sources of tools, on the official SDK's client."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
