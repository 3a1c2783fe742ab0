"""Discovered tools, tool modes, tool order and the search tool."""
