"""Permissions of tool calls: rules, modes, grants and questions."""
