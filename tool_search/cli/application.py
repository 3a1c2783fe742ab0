"""The command's application: every command in one table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tool_search import __version__
from tool_search.cli.exits import guarded
from tool_search.cli.terminal.help import command_help
from tool_search.cli.terminal.language import spoken
from tool_search.cli.terminal.usage import SpokenUsageError, near, take_language, usage_errors

__all__ = ["COMMANDS", "app"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("tool_search.cli.start.init", "init_command"),
    "demo": ("tool_search.cli.demo.command", "demo_command"),
    "chat": ("tool_search.cli.chat.command", "chat_command"),
    "search": ("tool_search.cli.search", "search_command"),
    "eval": ("tool_search.cli.evaluate", "evaluate_command"),
    "inspect": ("tool_search.cli.inspect", "inspect_command"),
    "doctor": ("tool_search.cli.doctor.command", "doctor_command"),
    "replay": ("tool_search.cli.doctor.replay_screen", "replay_command"),
    "proxy": ("tool_search.cli.proxy", "proxy_command"),
    "gateway": ("tool_search.cli.gateway", "gateway_command"),
    "inspect-log": ("tool_search.cli.inspect_log", "inspect_log_command"),
    "serve-stand-in": ("tool_search.cli.start.stand_in", "serve_stand_in_command"),
    "learned": ("tool_search.cli.learned", "learned_command"),
    "forget": ("tool_search.cli.forget", "forget_command"),
}
"""Module and function of each command, in the order of the help."""


_ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


def _unavailable(error: ImportError) -> Callable[[], None]:
    """Return a command that fails as its import did."""

    def command() -> None:
        raise error

    return command


class _Command(TyperCommand):
    """A command whose help is in the person's language."""

    # `Any`, because typer has a click of its own, or uses the installed one.
    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        return command_help(self, ctx)


class _Commands(TyperGroup):
    """The commands of the table, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name]
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        try:
            command = getattr(import_module(module), function)
        except ImportError as exc:
            # Its extra is missing: said when the command is used, not in the help of others.
            single.command(cmd_name, cls=_Command, context_settings=_ANY_ARGUMENTS)(
                guarded(_unavailable(exc))
            )
        else:
            single.command(cmd_name, cls=_Command)(guarded(command))
        return typer.main.get_command(single)

    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        return command_help(self, ctx)

    def make_context(self, info_name: Any, args: list[str], *rest: Any, **more: Any) -> Any:
        """Return the context of the arguments; `--language` may be anywhere in them."""
        with usage_errors():
            rest_of_arguments = take_language(args)
            try:
                return super().make_context(info_name, rest_of_arguments, *rest, **more)
            except OSError as exc:  # of typer's --install-completion
                cause = f"{exc.filename}: {exc.strerror}"
                raise SpokenUsageError(spoken("usage.completion", cause=cause)) from exc

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            unknown = spoken("usage.no_command", command=repr(args[0]))
            raise SpokenUsageError(unknown + near(args[0], COMMANDS), ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with usage_errors():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    help="Tool search for chatbots: the model finds its tools when it needs them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    _language: Annotated[
        str | None,
        # `take_language` reads it, before or after the command.
        typer.Option(
            "--language",
            metavar="NAME",
            help="The language of what people read: zh-CN, en-US, ru-RU; that of LC_ALL, "
            "LC_MESSAGES or LANG if left out.",
        ),
    ] = None,
) -> None:
    # The commands themselves show what the library logs, if it matters.
    logging.getLogger("tool_search").addHandler(logging.NullHandler())
