"""A terminal small enough to read: what a person sees after the control codes are obeyed."""

from __future__ import annotations

import io
import re

from rich.console import Console

_CODE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Emulator(io.StringIO):
    """A file that keeps the rows of a terminal of unlimited height."""

    encoding = "utf-8"

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__()
        self.rows = [""]
        self.row = self.column = 0
        self.console = Console(
            file=self, width=columns, height=rows, force_terminal=True, highlight=False,
            legacy_windows=False, color_system=None,
        )  # fmt: skip

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        for number, letter, control, plain in _CODE.findall(text):
            if control == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif control == "\r":
                self.column = 0
            elif plain:
                before = self.rows[self.row]
                after = before[: self.column].ljust(self.column) + plain
                self.rows[self.row] = after + before[self.column + len(plain) :]
                self.column += len(plain)
            elif letter == "A":
                self.row = max(0, self.row - int(number or 1))
            elif letter == "K":
                self.rows[self.row] = ""
        return len(text)

    @property
    def shown(self) -> str:
        """What is on the screen, without empty space at the ends of lines."""
        return "\n".join(row.rstrip() for row in self.rows).strip("\n")
