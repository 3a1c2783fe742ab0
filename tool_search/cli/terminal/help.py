"""Help in the person's language, in lines that fit: words are neither cut nor broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from rich.cells import cell_len

from tool_search.cli.terminal.language import spoken, spoken_language
from tool_search.cli.terminal.lines import wrapped
from tool_search.i18n import Language

__all__ = ["command_help", "translated"]

_MAX_CELLS = 100
_MARGIN = "  "
# A longer name has its description on the next line.
_MAX_NAME_SHARE = 0.4


def command_help(command: Any, ctx: Any) -> str:
    """Return the help of a command or a group, as click would lay it out.

    Args:
        command: A command of typer; `Any`, because typer may have a click of its own.
        ctx: Its context.
    """
    cells = min(shutil.get_terminal_size().columns, _MAX_CELLS)
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    lines = [wrapped(spoken("help.usage", usage=usage), cells)]
    for paragraph in _paragraphs(command.help or ""):
        lines += ["", wrapped(f"{_MARGIN}{translated(paragraph)}", cells)]
    records = [_record(param, ctx) for param in command.get_params(ctx)]
    lines += _section("help.options", filter(None, records), cells)
    if hasattr(command, "list_commands"):
        rows = [
            (name, translated(_paragraphs(command.get_command(ctx, name).help or "")[0]))
            for name in command.list_commands(ctx)
        ]
        lines += _section("help.commands", rows, cells)
    return "\n".join(lines)


def translated(sentence: str) -> str:
    """Return a sentence of a command's help in the person's language, or as it is."""
    return _translations(spoken_language()).get(sentence, sentence)


@cache
def _translations(language: Language) -> dict[str, str]:
    """Return the translations of the help by their English sentence."""
    file = files("tool_search.i18n").joinpath("help", f"{language}.json")
    if not file.is_file():
        return {}
    sentences: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return sentences


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n")]


def _record(param: Any, ctx: Any) -> tuple[str, str] | None:
    """Return the names of an option and its description; None if it is hidden."""
    record = param.get_help_record(ctx)
    if record is None:
        return None
    names, described = record
    english = " ".join((param.help or "").split())
    # What click adds: the default, a range, "required".
    added = " ".join(described.split()).removeprefix(english).strip()
    for word in ("default", "required"):
        spoken_word = spoken(f"help.{word}")
        added = added.replace(f"[{word}", f"[{spoken_word}")
    return names, " ".join(filter(None, (translated(english), added)))


def _section(heading: str, rows: Iterable[tuple[str, str]], cells: int) -> Iterator[str]:
    listed = list(rows)
    if not listed:
        return
    yield f"\n{spoken(heading)}:"
    fitting = [cell_len(name) for name, _ in listed if cell_len(name) <= cells * _MAX_NAME_SHARE]
    column = max(fitting, default=0) + 2 * len(_MARGIN)
    if cells - column < cells // 2:
        column = 2 * len(_MARGIN)
    for name, described in listed:
        first, *rest = wrapped(described, cells - column).split("\n")
        room = column - len(_MARGIN) - cell_len(name)
        if room >= len(_MARGIN):
            yield f"{_MARGIN}{name}{' ' * room}{first}"
        else:
            yield wrapped(f"{_MARGIN}{name}", cells)
            rest = [first, *rest]
        yield from (f"{' ' * column}{line}" for line in rest)
