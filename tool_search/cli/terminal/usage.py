"""Errors of use in the person's language, with the nearest command or option."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import typer
from pydantic import ValidationError

from tool_search.cli.terminal.language import choose_language, spoken
from tool_search.errors import ConfigurationError

__all__ = ["SpokenUsageError", "near", "take_language", "usage_errors"]

# typer has a click of its own, or uses the installed one: this is the class in either.
_UsageError: Any = typer.BadParameter.__mro__[1]
_OPTION = "--language"
# What click says of values, or pydantic in its place.
_PROBLEMS = (
    (r"(?P<value>.*) is not a valid integer.*", "use.not_integer"),
    (r"Input should be a valid integer.*", "use.not_integer"),
    (r"(?P<value>.*) is not a valid float.*", "use.not_number"),
    (r"Input should be a valid number.*", "use.not_number"),
    (r"(?P<value>.*) is not in the range (?P<range>.*)\.", "use.out_of_range"),
    (r"Input should be greater than or equal to (?P<least>.*)", "use.too_small"),
    (r"Input should be less than or equal to (?P<most>.*)", "use.too_large"),
)
# "Got unexpected extra argument(s) (x)", or "argument (x)".
_EXTRA = re.compile(r"unexpected extra argument\S* \((.*)\)", re.DOTALL)


class SpokenUsageError(_UsageError):  # type: ignore[misc]  # a class that is found at run time
    """An error of use whose message is in the person's language.

    Args:
        message: The message.
        ctx: The context of the command, or None.
    """

    def show(self, file: Any = None) -> None:
        """Print the message, and how to get help."""
        typer.echo(spoken("usage.error", message=self.message), err=True)
        if self.ctx is not None:
            help_command = f"{self.ctx.command_path} --help"
            typer.echo(spoken("usage.see", command=help_command), file=file or sys.stderr)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise click's errors of use as `SpokenUsageError`."""
    try:
        yield
    except SpokenUsageError:
        raise
    except _UsageError as exc:
        # Its message is the help.
        if type(exc).__name__ in ("NoArgsIsHelpError", "SpokenUsageError"):
            raise
        raise SpokenUsageError(_message(exc), ctx=exc.ctx) from exc


def take_language(args: Sequence[str]) -> list[str]:
    """Set the language that `--language` names, wherever it is; return the other arguments."""
    rest, wanted = list(args), None
    end = rest.index("--") if "--" in rest else len(rest)
    for place in range(end - 1, -1, -1):
        name, is_joined, value = rest[place].partition("=")
        if name != _OPTION:
            continue
        if not is_joined and place + 1 >= end:
            choose_language(None)
            raise SpokenUsageError(spoken("usage.needs_value", option=_OPTION))
        # The first one that is named counts, as it is looked at last.
        wanted = value if is_joined else rest[place + 1]
        del rest[place : place + (1 if is_joined else 2)]
        end = min(end, len(rest))
    try:
        choose_language(wanted)
    except ConfigurationError as exc:
        choose_language(None)
        raise SpokenUsageError(str(exc)) from exc
    return rest


def near(name: str, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant; empty if none is near.

    The dashes of an option do not count: all options have them.
    """
    names = {each.lstrip("-"): each for each in known}
    found = get_close_matches(name.lstrip("-"), list(names), n=1)
    return spoken("usage.near", name=names[found[0]]) if found else ""


def _message(error: Any) -> str:
    kind = type(error).__name__
    if kind == "NoSuchOption":
        known = [] if error.ctx is None else _options(error.ctx)
        message = spoken("usage.no_option", option=error.option_name)
        return message + near(error.option_name, known)
    if kind == "MissingParameter" and error.param is not None:
        return spoken("usage.missing", option=error.param.opts[-1])
    if kind == "BadOptionUsage":
        return spoken("usage.needs_value", option=error.option_name)
    if kind == "BadParameter" and error.param is not None:
        value, problem = _problem(error)
        given = f"{error.param.opts[-1]} {value}".rstrip()
        return spoken("usage.invalid", option=given, problem=problem)
    if found := _EXTRA.search(error.message):
        return spoken("usage.extra", arguments=found[1])
    return str(error.format_message())


def _problem(error: Any) -> tuple[str, str]:
    """Return a value, if it is known, and why it is wrong, in the person's language if it can be.

    typer has pydantic read values, and older releases have click.
    """
    cause, value = error.__cause__, ""
    if isinstance(cause, ValidationError):
        value = repr(cause.errors(include_url=False)[0]["input"])
    for pattern, key in _PROBLEMS:
        if found := re.fullmatch(pattern, error.message, re.DOTALL):
            named = found.groupdict(default="")
            return named.pop("value", "") or value, spoken(key, **named)
    return value, error.message


def _options(ctx: Any) -> list[str]:
    return [name for param in ctx.command.get_params(ctx) for name in param.opts]
