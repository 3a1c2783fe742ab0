"""Discovered tools, tool modes, tool order and the search tool."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
