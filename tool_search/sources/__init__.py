"""Sources of tools that change while a bot runs, such as MCP servers."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
