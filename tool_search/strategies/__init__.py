"""Strategies: present tool definitions in one provider family's format."""

from __future__ import annotations

from tool_search.core.strategies import *  # noqa: F403  # the public place of the core's strategies
from tool_search.core.strategies import __all__ as __all__
