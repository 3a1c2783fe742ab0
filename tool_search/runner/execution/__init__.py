"""Execution of tool calls: decide, permit, run and return one result each."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
