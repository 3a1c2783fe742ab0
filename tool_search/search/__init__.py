"""Tool search: engines behind one protocol, evaluation, and learned searches."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
