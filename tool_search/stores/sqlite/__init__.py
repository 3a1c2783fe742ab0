"""Conversations, evidence and grants in a SQLite file."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
