"""The search engine that a command was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from pydantic import ValidationError
from rich.progress import Progress

from tool_search.catalog import Tool
from tool_search.cli.exits import say
from tool_search.cli.terminal import side_console
from tool_search.config import EngineName
from tool_search.errors import ConfigurationError
from tool_search.plugins import installed_engines
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.embedder import EmbeddingProgress

__all__ = ["ENGINE_NAMES", "index_of"]

ENGINE_NAMES: tuple[EngineName, ...] = get_args(EngineName)

# Fewer are embedded in less time than it takes to read a line.
_MANY_TOOLS = 500


def index_of(tools: Sequence[Tool], engine: str) -> ToolSearchIndex:
    """An index over the tools; says so where it takes long.

    Raises:
        ConfigurationError: There is no engine of this name.
        SearchError: The engine cannot index these tools.
    """
    try:
        settings = SearchSettings(engine=engine)
    except ValidationError as exc:
        names = ", ".join((*ENGINE_NAMES, *sorted(installed_engines().keys() - {*ENGINE_NAMES})))
        raise ConfigurationError(f"--engine {engine!r}: there are {names}") from exc
    with _progress() as progress:
        return build_index(tools, settings, progress=progress)


@contextmanager
def _progress() -> Iterator[EmbeddingProgress]:
    """Shows on standard error how far the embedding of many tools has come."""
    console = side_console()
    with Progress(console=console, auto_refresh=False, transient=True) as bar:
        tasks = []

        def show(done: int, total: int) -> None:
            if total < _MANY_TOOLS:
                return
            if not tasks:
                tasks.append(bar.add_task("embedding tools", total=total))
                if not console.is_terminal:
                    say(f"embedding {total} tools; their vectors are kept for the next time")
            if console.is_terminal:
                bar.update(tasks[0], completed=done, refresh=True)

        yield show
