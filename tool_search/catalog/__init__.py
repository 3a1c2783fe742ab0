"""Tool definitions, their names, and the catalog of them."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
