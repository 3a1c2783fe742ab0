"""Tool search for AstrBot. AstrBot is imported on first use."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
