"""Permissions of tool calls: rules, modes, grants and questions."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
