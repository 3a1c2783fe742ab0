"""What a terminal is shown."""

from __future__ import annotations

from rich.console import Console

__all__ = ["result_console", "side_console"]

_PIPE_WIDTH = 160


def result_console() -> Console:
    """Standard output; wide where it is no terminal, so that names stay whole."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def side_console() -> Console:
    """Standard error, for all that is no result."""
    return Console(stderr=True, highlight=False)
