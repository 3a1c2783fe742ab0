"""The search engine that a command was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from tool_search.catalog import Tool
from tool_search.config import EngineName
from tool_search.errors import ConfigurationError
from tool_search.search import SearchSettings, ToolSearchIndex, build_index

__all__ = ["ENGINE_NAMES", "index_of"]

ENGINE_NAMES: tuple[EngineName, ...] = get_args(EngineName)


def index_of(tools: Sequence[Tool], engine: str) -> ToolSearchIndex:
    """An index over the tools.

    Raises:
        ConfigurationError: There is no engine of this name.
        SearchError: The engine cannot index these tools.
    """
    for name in ENGINE_NAMES:
        if name == engine:
            return build_index(tools, SearchSettings(engine=name))
    raise ConfigurationError(f"--engine {engine!r}: there are {', '.join(ENGINE_NAMES)}")
