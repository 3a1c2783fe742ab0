"""Settings of a bot: sections, defaults and loading."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
