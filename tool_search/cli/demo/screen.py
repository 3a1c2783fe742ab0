"""The demo as a person reads it: its result, its conversation, its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tool_search.cli.demo.accounting import RequestFigures
from tool_search.cli.demo.conversation import Demo, UserTurn
from tool_search.cli.demo.trace import found_names
from tool_search.cli.terminal.language import number, percent, spoken
from tool_search.cli.terminal.lines import cut, wrapped
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    ToolCallStarted,
    ToolFinished,
)

__all__ = ["DemoScreen"]

_INDENT = "  "
_STYLES = {"finished": "green", "failed": "red", "denied": "yellow", "cancelled": "yellow"}
_GUIDE_CELLS = 4
_MAX_TABLE_CELLS = 1_000
# A narrower terminal has no room for steps and durations.
_MIN_DETAIL_CELLS = 50


class _Column(NamedTuple):
    """A column of the table of requests.

    Attributes:
        heading: The key of its heading.
        cell: The function from a request to its cell.
        rank: Columns of the highest rank are left out first on a narrow terminal.
        is_number: True if its cells are aligned to the right.
    """

    heading: str
    cell: Callable[[RequestFigures], str]
    rank: int
    is_number: bool = True


_COLUMNS = (
    _Column("demo.column_provider", lambda r: r.provider, 3, is_number=False),
    _Column("demo.column_strategy", lambda r: r.strategy, 6, is_number=False),
    _Column("demo.column_declared", lambda r: number(r.tools_declared), 5),
    _Column("demo.column_loaded", lambda r: number(r.tools_loaded), 2),
    _Column("demo.column_tokens", lambda r: number(r.tokens), 0),
    _Column("demo.column_full", lambda r: number(r.full_tokens), 1),
    _Column(
        "demo.column_kept",
        lambda r: "-" if r.prefix_kept is None else percent(r.prefix_kept),
        4,
    ),
)


class DemoScreen:
    """The output of a demo that has run.

    Args:
        console: Standard output.
        demo: The demo.
    """

    def __init__(self, console: Console, demo: Demo) -> None:
        self._console = console
        self._demo = demo
        self._total = len(demo.ledger.catalog)

    def show_result(self) -> None:
        """Show the figure that the demo is for, in bold."""
        requests = self._demo.ledger.requests
        line = spoken(
            "demo.result",
            saving=percent(self._demo.ledger.saving),
            tokens=number(sum(request.tokens for request in requests)),
            full_tokens=number(sum(request.full_tokens for request in requests)),
        )
        self._print(line, style="bold")

    def show_opening(self, *, is_live: bool) -> None:
        """Show what runs, and what the conversation shows."""
        key = "demo.opening_live" if is_live else "demo.opening"
        self._print(spoken(key, tools=self._total))

    def show_trees(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Show a tree for each turn: its requests, their calls, the calls' steps."""
        for turn in turns:
            tree = Tree(self._say("demo.user", turn["user"], "bold cyan"))
            for request_number, request in enumerate(turn["requests"], 1):
                branch = tree.add(self._request(request_number, request))
                for call in request["calls"]:
                    self._add_call(branch, call)
            if "answer" in turn:
                tree.add(self._say("demo.answer", turn["answer"], "bold green", _GUIDE_CELLS))
            self._console.print()
            self._console.print(tree)

    def show_events(self, events: Iterable[UserTurn | RunnerEvent]) -> None:
        """Show the conversation without durations, so that each run prints the same."""
        for event in events:
            if isinstance(event, UserTurn):
                self._console.print()
                self._console.print(self._say("demo.user", event.text, "bold cyan"))
            elif isinstance(event, Done):
                answer = self._head(event.provider, event.answer, "bold green")
                self._console.print(answer)
            elif isinstance(event, ProviderSwitched):
                self._print(f"{_INDENT}{_switch(event)}", style="yellow")
            elif line := self._line(event):
                cells = self._console.width - len(_INDENT)
                self._console.print(Text(f"{_INDENT}{cut(line, cells)}", style="dim"))

    def show_requests(self) -> None:
        """Show the table of requests, and what its columns say."""
        columns = list(_COLUMNS)
        table = self._table(columns)
        # Measured without a limit: a table of more columns than fit would cut their words.
        options = self._console.options.update(max_width=_MAX_TABLE_CELLS)
        while (
            len(columns) > 1
            and Measurement.get(self._console, options, table).maximum > self._console.width
        ):
            columns.remove(max(columns, key=lambda column: column.rank))
            table = self._table(columns)
        self._console.print()
        self._console.print(table)
        self._print(spoken("demo.legend"), style="dim")
        demo = self._demo
        self._print(spoken("demo.found_in_all", found=len(demo.discovered), total=self._total))
        if demo.carried_over:
            self._print(spoken("demo.carried_over", names=", ".join(demo.carried_over)))

    def _print(self, line: str, *, style: str = "") -> None:
        self._console.print(Text(wrapped(line, self._console.width), style=style))

    def _say(self, key: str, words: str, style: str, margin: int = 0) -> Text:
        return self._head(spoken(key), words, style, margin)

    def _head(self, head: str, words: str, style: str, margin: int = 0) -> Text:
        """Return words after their speaker, in lines that fit."""
        lines = wrapped(words, self._console.width - margin, first=cell_len(head) + 1)
        return Text.assemble((f"{head} ", style), lines)

    def _table(self, columns: Iterable[_Column]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
        table.add_column("#", justify="right")
        for column in columns:
            justify = "right" if column.is_number else "left"
            heading = Text(spoken(column.heading))
            table.add_column(heading, justify=justify, vertical="bottom", no_wrap=True)  # type: ignore[arg-type]
        for count, request in enumerate(self._demo.ledger.requests, 1):
            table.add_row(str(count), *(column.cell(request) for column in columns))
        return table

    def _request(self, count: int, request: Mapping[str, Any]) -> Text:
        head = spoken(
            "demo.request",
            number=count,
            provider=request["provider"],
            strategy=request["strategy"],
        )
        duration = _milliseconds(request["duration_s"])
        line = Text.assemble((f"{head} ", "bold"), (duration, "dim"))
        if "failed" in request:
            failed = spoken("demo.failed", cause=request["failed"])
            cells = self._console.width - _GUIDE_CELLS
            line.append(f"\n{wrapped(failed, cells)}", style="yellow")
        return line

    def _add_call(self, branch: Tree, call: Mapping[str, Any]) -> None:
        is_narrow = self._console.width < _MIN_DETAIL_CELLS
        outcome, found = call["outcome"], call.get("found")
        # A search is decided and run in one; its step has the time.
        duration = "" if found is not None or is_narrow else _milliseconds(call["duration_s"])
        # Two guides, the outcome and the duration share the line.
        rest = 2 * _GUIDE_CELLS + (0 if is_narrow else len(outcome) + len(duration) + 2)
        label = cut(_call_text(call["tool"], call["arguments"]), self._console.width - rest)
        line = Text(label, style=_STYLES[outcome] if is_narrow else "")
        if not is_narrow:
            line.append(f" {outcome}", style=_STYLES[outcome])
            line.append(f" {duration}".rstrip(), style="dim")
        node = branch.add(line)
        cells = self._console.width - 3 * _GUIDE_CELLS
        for said in call.get("said", ()):
            node.add(Text(cut(said, cells), style="dim italic"))
        if found is not None:
            node.add(Text(cut(self._find(found), cells), style="cyan"))
        for step in () if is_narrow else call["steps"]:
            node.add(Text(f"{step['name']} {_milliseconds(step['duration_s'])}", style="dim"))

    def _line(self, event: RunnerEvent) -> str | None:
        if isinstance(event, ToolCallStarted):
            return f"> {_call_text(event.tool, event.call.arguments)}"
        if isinstance(event, ToolFinished):
            found = found_names(event.content)
            return f"< {event.content if found is None else self._find(found)}"
        return f"! {event.message}" if isinstance(event, RunnerWarning) else None

    def _find(self, names: Iterable[str]) -> str:
        listed = list(names)
        if not listed:
            return spoken("demo.found_nothing", total=self._total)
        return spoken("demo.found", count=len(listed), total=self._total, names=", ".join(listed))


def _switch(event: ProviderSwitched) -> str:
    line = spoken(
        "demo.switched", before=event.from_provider, after=event.to_provider, cause=event.cause
    )
    if not event.discarded_text:
        return line
    void = spoken("demo.void", text=event.discarded_text)
    return f"{line} {void}"


def _call_text(tool: str, arguments: str) -> str:
    """Return a call as Python writes it: shorter than JSON, and known to readers."""
    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return f"{tool} {arguments}"
    listed = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
    return f"{tool}({', '.join(listed)})"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
