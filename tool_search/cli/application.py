"""The command's application: every command in one table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from tool_search.cli.demo import demo_command
from tool_search.cli.evaluate import evaluate_command
from tool_search.cli.exits import guarded
from tool_search.cli.inspection import inspect_command
from tool_search.cli.search import search_command

__all__ = ["app"]

_COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("demo", demo_command),
    ("search", search_command),
    ("eval", evaluate_command),
    ("inspect", inspect_command),
)

app = typer.Typer(
    help="Tool search for chatbots: the model finds its tools when it needs them.",
    no_args_is_help=True,
    add_completion=False,
    # Boxes cut file names and line numbers in two, and a traceback shows variables.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(version("tool-search-middleware"))
        raise typer.Exit


@app.callback()
def _options(
    *,
    _show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version, and end."
        ),
    ] = False,
) -> None:
    # What the library logs is shown by the commands themselves, where it matters.
    logging.getLogger("tool_search").addHandler(logging.NullHandler())


for _name, _command in _COMMANDS:
    app.command(_name)(guarded(_command))
