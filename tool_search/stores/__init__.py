"""Storage of conversations, search evidence, grants and permission modes."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
