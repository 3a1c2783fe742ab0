"""Adapters: the plans of this library in the formats of providers and frameworks.

Each is a module of its own, imported when it is needed, with an extra of its name.
"""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
