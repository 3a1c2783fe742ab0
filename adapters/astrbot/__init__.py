"""Tool search for AstrBot. AstrBot is imported when it is used."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
