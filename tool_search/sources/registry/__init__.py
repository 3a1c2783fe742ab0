"""A registry of tools under namespaces and versions, with documentation and several backends."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
