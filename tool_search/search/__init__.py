"""Tool search: engines behind one protocol, evaluation, and learned searches."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
