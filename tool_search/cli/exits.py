"""How a command ends: its status, and one line that says what was wrong."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec

import typer
from rich.console import Console

from tool_search.errors import CatalogError, ConfigurationError, ToolSearchError
from tool_search.messages import Notice

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "WRONG_USE",
    "guarded",
    "result_console",
    "say",
    "say_notices",
    "side_console",
]


# What a terminal is shown.


_PIPE_WIDTH = 160


def result_console() -> Console:
    """Standard output; wide where it is no terminal, so that names stay whole."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def side_console() -> Console:
    """Standard error, for all that is no result."""
    return Console(stderr=True, highlight=False)


FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""
_READER_GONE = 141
_OUTPUT_FAILS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)

_P = ParamSpec("_P")


def say_notices(notices: Iterable[Notice]) -> None:
    """Say on standard error what is not as a catalog has it."""
    for notice in notices:
        say(f"warning: {notice.code}: {notice.message}")


def say(message: str) -> None:
    """Writes one line that is no result: to standard error."""
    typer.echo(message, err=True)


def guarded(command: Callable[_P, None]) -> Callable[_P, None]:
    """The command, its errors a message and an exit status and never a traceback.

    A wrong file or setting gives 2, what fails later 1, Ctrl-C 130; a reader that
    has gone ends the command in silence.
    """

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (ConfigurationError, CatalogError) as exc:
            raise _ended(exc, WRONG_USE) from exc
        except ToolSearchError as exc:
            raise _ended(exc, FAILED) from exc
        except KeyboardInterrupt as exc:
            raise typer.Exit(INTERRUPTED) from exc
        except OSError as exc:
            raise _ended_by_output(exc) from exc

    return run


def _ended(error: ToolSearchError, status: int) -> typer.Exit:
    say(f"error: {error}")
    return typer.Exit(status)


def _ended_by_output(error: OSError) -> typer.Exit:
    """The end where standard output took no more; any other fault is a bug of ours."""
    if not isinstance(error, BrokenPipeError) and error.errno not in _OUTPUT_FAILS:
        raise error
    # What is still buffered must not fail once more when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return typer.Exit(_READER_GONE)
    say(f"error: the output cannot be written: {error.strerror}")
    return typer.Exit(FAILED)
