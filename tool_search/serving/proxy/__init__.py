"""Tool search behind a base URL: a proxy between a client and its provider."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
