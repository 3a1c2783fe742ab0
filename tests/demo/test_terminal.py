"""`tool-search demo` at a terminal of some width, in each language."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios

import pytest
from rich.cells import cell_len

from tool_search.i18n import LANGUAGES, Language, text

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("LC_")}


def at_terminal(columns: int, **environment: str) -> str:
    """Return what the demo shows at a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        # The size is set before the command starts, or it could read another one.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        variables = {**_ENVIRONMENT, "TERM": "xterm-256color", **environment}
        variables.pop("COLUMNS", None)
        command = [sys.executable, "-m", "tool_search", "demo"]
        os.execve(sys.executable, command, variables)  # noqa: S606
    shown = b""
    try:
        while more := os.read(terminal, 65536):
            shown += more
    except OSError:  # how Linux says that the command has ended
        pass
    finally:
        os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert status == 0, shown
    return _CONTROL.sub("", shown.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize(("language", "columns"), [("ru-RU", 120), ("zh-CN", 80), ("en-US", 20)])
def test_demo_fits_the_terminal_in_the_persons_language(language: Language, columns: int) -> None:
    assert language in LANGUAGES
    shown = at_terminal(columns, LANG=f"{language.replace('-', '_')}.UTF-8")
    # The spinner draws over its own line.
    lines = [line.rpartition("\r")[2] for line in shown.rstrip("\n").split("\n")]
    too_long = [line for line in lines if cell_len(line) > columns]
    assert too_long == []
    result = text("demo.result", language, saving="90 %", tokens="", full_tokens="")
    start = "".join(result.split())[:6]
    squeezed = ["".join(line.split()) for line in lines]
    assert sum(line.startswith(start) for line in squeezed) == 2
    assert any("└──" in line for line in lines)
    if columns >= 80:
        assert sum(" ms" in line for line in lines) > 10
