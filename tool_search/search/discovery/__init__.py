"""Discovered tools, tool modes, tool order and the search tool."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
