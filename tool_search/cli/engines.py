"""The search engine that a command uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import ValidationError
from rich.progress import Progress

from tool_search.cli.exits import say, side_console
from tool_search.cli.options import chosen, known_spelling
from tool_search.cli.terminal.language import spoken
from tool_search.config.engines import installed_engines
from tool_search.core.catalog.tool import Tool
from tool_search.errors import ConfigurationError
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.build import ENGINES, PRESETS
from tool_search.search.vectors.embedder import EmbeddingProgress

__all__ = ["index_of"]

# Fewer tools are embedded before a person has read a line.
_MANY_TOOLS = 500


def index_of(
    tools: Sequence[Tool], engine: str | None = None, preset: str | None = None
) -> ToolSearchIndex:
    """Return an index over the tools, and show progress if it takes long.

    Args:
        tools: The tools.
        engine: The engine; None for the preset's, or the default.
        preset: The settings of another system.

    Raises:
        ConfigurationError: The engine or the preset does not exist, or they contradict
            each other.
        SearchError: The engine cannot index these tools.
    """
    given = (("engine", engine, _known_engines(engine)), ("preset", preset, PRESETS))
    named = {key: chosen(f"--{key}", name, names) for key, name, names in given if name is not None}
    try:
        settings = SearchSettings.model_validate(named)
    except ValidationError as exc:
        raise ConfigurationError(_problem(exc, named)) from exc
    with _progress() as progress:
        return build_index(tools, settings, progress=progress)


def _known_engines(engine: str | None) -> tuple[str, ...]:
    """Return the engines that may be meant; those of packages only if no other is."""
    if engine is None or known_spelling(engine, ENGINES) in ENGINES:
        return tuple(ENGINES)
    return tuple(dict.fromkeys((*ENGINES, *sorted(installed_engines()))))


def _problem(error: ValidationError, named: Mapping[str, str]) -> str:
    """Return the error message for the first wrong option."""
    first = error.errors(include_url=False)[0]
    option, message = first["loc"][0], first["msg"].removeprefix("Value error, ")
    return f"--{option} {named[str(option)]!r}: {message}"


@contextmanager
def _progress() -> Iterator[EmbeddingProgress]:
    """Show the progress of embedding many tools on standard error."""
    console = side_console()
    bar = Progress(console=console, auto_refresh=False, transient=True)

    def show(done: int, total: int) -> None:
        if total < _MANY_TOOLS:
            return
        if not bar.tasks:
            bar.add_task(spoken("embedding.task"), total=total)
            if console.is_terminal:
                bar.start()
            else:
                say(spoken("embedding.note", count=total))
        if console.is_terminal:
            bar.update(bar.tasks[0].id, completed=done, refresh=True)

    try:
        yield show
    finally:
        if bar.tasks and console.is_terminal:
            bar.stop()
