"""Lines that a person types, with editing, and kept for the next chat."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

import typer

from tool_search.config.stores import data_folder
from tool_search.core.values.files import locked, replace_file

__all__ = ["LineHistory", "history_file", "line_editor", "typed_lines"]

_PROMPT = "> "
_MAX_LINES = 1_000


def history_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of typed lines in the user's state folder.

    Source: the XDG base directory specification, which allows absolute paths only.
    """
    named = environment.get("XDG_STATE_HOME", "")
    if named and Path(named).is_absolute():
        folder = Path(named)
    elif sys.platform == "win32":
        folder = data_folder(environment)
    else:
        folder = Path.home() / ".local" / "state"
    return folder / "tool-search" / "chat_history"


class LineHistory:
    """The lines of this chat and of those before, in a file that only its owner reads.

    Each line is written as it is typed: two chats at the same time lose none. A file that
    cannot be read or written is none.

    Args:
        path: The file.
        editor: Python's `readline`; None: the platform has none.

    Attributes:
        path: The file.
        is_kept: True if lines are kept in it.
    """

    def __init__(self, path: Path, editor: ModuleType | None = None) -> None:
        self.path = path
        self._editor = editor
        self.is_kept = False

    def load(self) -> None:
        """Give the line editor the lines of before, the newest thousand of them."""
        try:
            # Private before the first line is in it; so is the folder.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self.path.chmod(0o600)
            with locked(self.path):
                lines = self.path.read_text("utf-8", errors="replace").split("\n")[:-1]
                if len(lines) > 2 * _MAX_LINES:
                    newest = "".join(f"{line}\n" for line in lines[-_MAX_LINES:])
                    replace_file(self.path, newest.encode("utf-8", "replace"))
        except OSError:
            return
        self.is_kept = True
        if self._editor is not None:
            for line in lines[-_MAX_LINES:]:
                self._editor.add_history(line)

    def add(self, line: str) -> None:
        """Keep a line, unless it is empty or begins with a space."""
        if not self.is_kept or not line.strip() or line[0].isspace():
            return
        encoded = f"{line}\n".encode("utf-8", "replace")
        with suppress(OSError), locked(self.path):
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, encoded)
            finally:
                os.close(file)


def line_editor() -> ModuleType | None:
    """Return Python's `readline`, which `input` uses once it is loaded; None without one."""
    if sys.flags.utf8_mode and locale.setlocale(locale.LC_CTYPE) in ("C", "POSIX"):
        # LC_ALL may name a locale that the system lacks. Python reads UTF-8 then, but readline
        # would take each byte of a Chinese or Russian letter for a command.
        with suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    try:
        return import_module("readline")
    except ImportError:  # Windows
        return None


def typed_lines(history: LineHistory | None) -> Iterator[str]:
    """Yield typed lines, with editing if standard output is the terminal."""
    while True:
        try:
            line = input(_PROMPT) if sys.stdout.isatty() else _read_apart_from_results()
        except (EOFError, KeyboardInterrupt) as end:
            typer.echo(err=True)  # the shell's prompt begins its own line
            if isinstance(end, EOFError):
                return
            raise
        if history is not None:
            history.add(line)
        yield line


def _read_apart_from_results() -> str:
    """Read one line; the prompt goes to standard error, apart from the results."""
    sys.stderr.write(_PROMPT)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
