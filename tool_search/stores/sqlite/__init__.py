"""Conversations, evidence and grants in a SQLite file."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
