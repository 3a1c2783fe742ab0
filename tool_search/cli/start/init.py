"""`tool-search init`: a commented `bot.yaml` and a module with two tools."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tool_search.cli.exits import fitting, say, tell
from tool_search.cli.start.files import MODELS, bot_tools, bot_yaml
from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.cli.terminal.usage import near
from tool_search.core.settings import KINDS, dialect_of
from tool_search.errors import ConfigurationError

__all__ = ["init_command"]

_CONFIG, _MODULE = "bot.yaml", "bot_tools.py"
_DEFAULT_KIND = "anthropic"


def init_command(
    *,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder of the new files.")
    ] = Path(),
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help=f"The kind of provider: {', '.join(KINDS)}; asked if left out."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model; asked if left out.")
    ] = None,
) -> None:
    """Write a commented bot.yaml and a module with two tools, and say the next command.

    At a terminal it asks for what is left out; elsewhere it takes anthropic and a current model.
    Existing files are never changed.
    """
    # Refused before anything is asked.
    for name in (_CONFIG, _MODULE):
        if (folder / name).exists():
            raise _exists(folder / name)
    kind = _ask_kind() if provider is None else _kind(provider)
    if model is None:
        model = _ask("init.ask_model", MODELS[kind])
    if not model.strip():
        raise wrong_use("use.empty_model")
    _write(folder / _CONFIG, bot_yaml(kind, model.strip()))
    _write(folder / _MODULE, bot_tools())
    config = "" if folder == Path() else f" --config {folder / _CONFIG}"
    tell(spoken("init.written", config=folder / _CONFIG, tools=folder / _MODULE))
    tell(spoken("init.next", command=f"tool-search chat --stand-in{config}"))
    tell(spoken("init.try", question=spoken("init.question")))


def _ask_kind() -> str:
    """Return the kind that the person answers; a wrong answer is asked for again."""
    while True:
        given = _ask("init.ask_provider", _DEFAULT_KIND, kinds=", ".join(KINDS))
        try:
            return _kind(given)
        except ConfigurationError as exc:
            say(str(exc))


def _kind(given: str) -> str:
    try:
        dialect = dialect_of(given.strip())
    except ConfigurationError:
        known = ", ".join(KINDS)
        problem = wrong_use("use.kind", value=repr(given), kinds=known, near=near(given, KINDS))
        raise problem from None
    return next(kind for kind, each in KINDS.items() if each == dialect)


def _ask(key: str, default: str, **values: object) -> str:
    """Return the person's answer, or the default if it is empty or nobody can be asked."""
    if not sys.stdin.isatty():
        return default
    # On standard error, as everything that is not a result.
    sys.stderr.write(f"{fitting(spoken(key, default=default, **values))} ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default


def _write(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Never another program's file, even if it came in this moment.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.write(content)
    except FileExistsError as exc:
        raise _exists(path) from exc
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            path.unlink(missing_ok=True)
        raise wrong_use("use.unwritable", path=path, cause=exc.strerror) from exc
    say(spoken("init.file", file=path))


def _exists(path: Path) -> ConfigurationError:
    return wrong_use("use.is_there", path=path)
