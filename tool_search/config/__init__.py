"""Settings of a bot: sections, defaults and loading."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
