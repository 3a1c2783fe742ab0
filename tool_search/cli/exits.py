"""The end of a command: its status, and one line with the error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec

import typer
from rich.console import Console

from tool_search.cli.terminal.language import spoken
from tool_search.cli.terminal.lines import wrapped
from tool_search.core.messages import Notice
from tool_search.errors import CatalogError, ConfigurationError, ToolSearchError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "WRONG_USE",
    "fitting",
    "guarded",
    "result_console",
    "say",
    "say_notices",
    "side_console",
    "tell",
]


# Names are cut at the width of a terminal; a pipe has none.
_PIPE_WIDTH = 160


class _Console(Console):
    """A console that leaves the end of the process to `guarded`."""

    def on_broken_pipe(self) -> None:
        """Raise the error again: rich would end the process with status 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def result_console() -> Console:
    """Return standard output; if it is not a terminal, wide enough for whole names."""
    return _wide_enough(stderr=False)


def side_console() -> Console:
    """Return standard error, for everything except results; a pipe is as wide there."""
    return _wide_enough(stderr=True)


def _wide_enough(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, highlight=False)
    if console.is_terminal:
        return console
    return _Console(stderr=stderr, highlight=False, width=_PIPE_WIDTH)


FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130
"""128 plus the number of SIGINT, as in shells."""
_READER_GONE = 141
# The extra that brings a module which a command imports.
_EXTRAS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "mcp": "mcp",
    "starlette": "proxy",
    "uvicorn": "proxy",
    "httpx2": "proxy",
    "jieba": "jieba",
    "rank_bm25": "jieba",
    "re2": "regex",
    "opentelemetry": "otel",
}
_OUTPUT_FAILS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)

_P = ParamSpec("_P")


def say_notices(notices: Iterable[Notice]) -> None:
    """Print the notices of a catalog on standard error."""
    for notice in notices:
        say(spoken("exit.notice", code=notice.code, message=notice.message))


def say(message: str) -> None:
    """Print a message on standard error; a terminal gets whole words."""
    typer.echo(fitting(message), err=True)


def tell(message: str) -> None:
    """Print a sentence for a person on standard output; a terminal gets whole words."""
    typer.echo(_fit(message, result_console()))


def fitting(message: str) -> str:
    """Return a message for standard error; a terminal gets whole words."""
    return _fit(message, side_console())


def _fit(message: str, console: Console) -> str:
    return wrapped(message, console.width) if console.is_terminal else message


def guarded(command: Callable[_P, None]) -> Callable[_P, None]:
    """Return the command with its errors as a message and an exit status.

    The status is 2 for a wrong file or setting and for a missing extra, 1 for a later failure,
    130 for Ctrl-C.
    A closed pipe ends the command without a message.
    """

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (ConfigurationError, CatalogError) as exc:
            raise _end_with(exc, WRONG_USE) from exc
        except ToolSearchError as exc:
            is_missing = isinstance(exc.__cause__, ImportError)
            raise _end_with(exc, WRONG_USE if is_missing else FAILED) from exc
        except ImportError as exc:
            raise _missing_extra(exc) from exc
        except KeyboardInterrupt as exc:
            raise typer.Exit(INTERRUPTED) from exc
        except OSError as exc:
            raise _end_of_output(exc) from exc

    return run


def _missing_extra(error: ImportError) -> typer.Exit:
    """Return the end of a command whose extra is not installed; raise another error again."""
    said = str(error)
    # Our own modules name the extra themselves.
    if "pip install" not in said:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if not isinstance(error, ModuleNotFoundError) or extra is None:
            raise error
        said = spoken("exit.extra", name=error.name, extra=extra)
    say(spoken("usage.error", message=said))
    return typer.Exit(WRONG_USE)


def _end_with(error: ToolSearchError, status: int) -> typer.Exit:
    say(spoken("usage.error", message=error))
    return typer.Exit(status)


def _end_of_output(error: OSError) -> typer.Exit:
    """Return the end after standard output failed; another OSError is raised again."""
    if not isinstance(error, BrokenPipeError) and error.errno not in _OUTPUT_FAILS:
        raise error
    # Buffered output must not fail again when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return typer.Exit(_READER_GONE)
    said = spoken("exit.output", cause=error.strerror)
    say(spoken("usage.error", message=said))
    return typer.Exit(FAILED)
