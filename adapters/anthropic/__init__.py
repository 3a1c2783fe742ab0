"""Anthropic's Messages API: provider, requests, replies and histories."""

from tool_search._exports import exports

__all__, __getattr__ = exports(__name__, __file__)
