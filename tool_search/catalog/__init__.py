"""Tool definitions, their names, and the catalog of them."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
