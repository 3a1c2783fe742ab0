"""OpenAI's Responses API: provider, requests, replies and histories."""

from tool_search.core.exports import exports

__all__, __getattr__ = exports(__name__, __file__)
