"""Storage of conversations, search evidence, grants and permission modes."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
