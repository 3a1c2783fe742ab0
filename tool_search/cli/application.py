"""The command's application: every command in one table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tool_search import __version__
from tool_search.cli.exits import guarded

__all__ = ["COMMANDS", "app"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("tool_search.cli.start.init", "init_command"),
    "demo": ("tool_search.cli.demo.command", "demo_command"),
    "chat": ("tool_search.cli.chat.command", "chat_command"),
    "search": ("tool_search.cli.search", "search_command"),
    "eval": ("tool_search.cli.evaluate", "evaluate_command"),
    "inspect": ("tool_search.cli.inspect", "inspect_command"),
    "doctor": ("tool_search.cli.doctor", "doctor_command"),
    "proxy": ("tool_search.cli.proxy", "proxy_command"),
    "gateway": ("tool_search.cli.gateway", "gateway_command"),
    "inspect-log": ("tool_search.cli.inspect_log", "inspect_log_command"),
    "serve-stand-in": ("tool_search.cli.start.stand_in", "serve_stand_in_command"),
    "learned": ("tool_search.cli.learned", "learned_command"),
    "forget": ("tool_search.cli.forget", "forget_command"),
}
"""Module and function of each command, in the order of the help."""


class _Commands(TyperGroup):
    """The commands of the table, each imported when it is used."""

    # `Any`, because typer has a click of its own, or uses the installed one.
    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name]
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(guarded(getattr(import_module(module), function)))
        return typer.main.get_command(single)


app = typer.Typer(
    cls=_Commands,
    help="Tool search for chatbots: the model finds its tools when it needs them.",
    no_args_is_help=True,
    add_completion=False,
    # Boxes cut file names and line numbers in two, and a traceback shows variables.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    *,
    _show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    # The commands themselves show what the library logs, if it matters.
    logging.getLogger("tool_search").addHandler(logging.NullHandler())
