"""A registry of tools under namespaces and versions, with documentation and several backends."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
