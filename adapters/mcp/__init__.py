"""MCP servers as sources of tools, on the official SDK's client."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
