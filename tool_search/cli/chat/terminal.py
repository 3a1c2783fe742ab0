"""Output of `tool-search chat` at a terminal: Markdown as it streams, and a spinner."""

from __future__ import annotations

import sys
import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from tool_search.cli.chat.markdown import AnswerMarkdown, finished_length
from tool_search.cli.chat.plain import PlainScreen
from tool_search.cli.exits import result_console
from tool_search.cli.terminal.lines import cut, visible
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    ToolCallStarted,
    ToolFinished,
)

__all__ = ["TerminalScreen"]

_REFRESHES_PER_SECOND = 10
# The spinner, and the line below it on which the cursor is.
_ROWS_BELOW = 2


class TerminalScreen(PlainScreen):
    """The answer as Markdown on standard output, as it arrives.

    A finished block is printed for good. The unfinished one and the spinner are drawn anew, in
    as many rows as the terminal has, so that nothing that has scrolled away is drawn twice.

    Args:
        search_tool: The name of the tool that searches.
        console: The terminal; None: standard output.
    """

    def __init__(self, search_tool: str = "tool_search", *, console: Console | None = None) -> None:
        super().__init__(search_tool)
        self._console = result_console() if console is None else console
        self._live: Live | None = None
        self._label = ""
        self._unfinished = ""
        self._streamed: list[str] = []
        self._has_blocks = False
        self._next_split_s = 0.0
        self._works = False
        name = "dots" if self._console.encoding.startswith("utf") else "line"
        self._spinner = Spinner(name)

    def show(self, event: RunnerEvent) -> None:
        """Show an event of a turn, and the spinner until the next one."""
        if isinstance(event, ProviderSwitched) and event.discarded_text:
            self._streamed.clear()
        super().show(event)
        if isinstance(event, ToolCallStarted):
            name = "searching" if event.tool == self._search_tool else "calling"
            self._label = self.text(name, tool=event.tool)
        elif isinstance(event, ToolFinished) or not self._label:
            self._label = self.text("thinking")
        if isinstance(event, Done):
            self._works = False
        elif self._works:
            self._draw()

    def work(self) -> None:
        """Show the spinner until `rest`."""
        self._works = True
        self._label = self._label or self.text("thinking")
        self._draw()

    def rest(self) -> None:
        """Show what is left of the answer, and stop the spinner."""
        self.make_room()
        self._streamed.clear()

    def make_room(self) -> None:
        """Show what is left of the text, and stop the spinner, above a line of the turn."""
        self._stop()
        if self._unfinished.strip():
            self._print_markdown(self._unfinished)
        self._unfinished, self._has_blocks = "", False

    def pause(self) -> None:
        """Stop the spinner until `work`: a person is asked something."""
        self._works = False
        self.make_room()

    def add_text(self, more: str) -> None:
        """Show a piece of the answer; print the blocks that are finished."""
        piece = visible(more)
        self._streamed.append(piece)
        self._unfinished += piece
        # Every piece would be too often: the unfinished block is read again each time.
        if "\n" not in more or time.monotonic() < self._next_split_s:
            return
        length = finished_length(self._unfinished)
        if length:
            finished, self._unfinished = self._unfinished[:length], self._unfinished[length:]
            self._print_markdown(finished)
        self._next_split_s = time.monotonic() + 1 / _REFRESHES_PER_SECOND

    def print_answer(self, answer: str) -> None:
        """Show the answer if it has not been streamed."""
        # A warning may be between the streamed text and the end of its turn.
        if (whole := visible(answer)).strip() not in "".join(self._streamed):
            self.make_room()
            self._unfinished = whole
        self.rest()
        self._label = ""

    def _print_markdown(self, block: str) -> None:
        if self._has_blocks:
            self._console.print()
        self._has_blocks = True
        self._console.print(AnswerMarkdown(block))

    def _draw(self) -> None:
        if self._live is not None:
            return
        self._live = Live(
            get_renderable=self._region,
            console=self._console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
            # What a tool prints goes above the spinner; a file of errors stays a file.
            redirect_stderr=sys.stderr.isatty(),
        )
        self._live.start(refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def _region(self) -> _Region:
        rows = max(1, self._console.height - _ROWS_BELOW)
        label = cut(self._label, self._console.width - 3)
        self._spinner.update(text=Text(label, style="dim"))
        return _Region(self._unfinished, self._spinner, rows=rows, follows=self._has_blocks)


class _Region:
    """The last rows of an unfinished block, and the spinner.

    Args:
        block: The Markdown of the block.
        spinner: The spinner.
        rows: The rows for the block.
        follows: True if a block is above it.
    """

    def __init__(self, block: str, spinner: Spinner, *, rows: int, follows: bool) -> None:
        self._block = block
        self._spinner = spinner
        self._rows = rows
        self._follows = follows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._block.strip():
            drawn = console.render_lines(AnswerMarkdown(self._block), options, pad=False)
            lines = [[], *drawn] if self._follows else drawn
            for line in lines[-self._rows :]:
                yield from line
                yield Segment.line()
        yield self._spinner
