"""Execution of tool calls: decide, permit, run and return one result each."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
