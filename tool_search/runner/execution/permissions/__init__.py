"""Permissions of tool calls: rules, modes, grants and questions."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
