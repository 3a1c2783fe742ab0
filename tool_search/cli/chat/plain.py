"""Output of `tool-search chat` for a person: answers, and a line for each event."""

from __future__ import annotations

import json
from collections.abc import Mapping

import typer
from rich.table import Table
from rich.text import Text

from tool_search.cli.chat.cost import ConversationCost
from tool_search.cli.demo.trace import found_names
from tool_search.cli.exits import side_console
from tool_search.cli.inspect import NextRequest, ToolState
from tool_search.cli.terminal.language import number
from tool_search.cli.terminal.lines import cut, visible, wrapped, wrapped_columns
from tool_search.config.bot import ProviderConfig
from tool_search.errors import AllProvidersFailedError, ToolSearchError
from tool_search.i18n import Language, text
from tool_search.runner.events import (
    ContentLeftOut,
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    TextDelta,
    ToolCallStarted,
    ToolFinished,
    ToolProgress,
    ToolsDiscovered,
)

__all__ = ["PlainScreen"]

_MAX_SHOWN_CHARS = 300
# The causes of a switch that are identifiers, as people read them.
_CAUSES = {
    "requested": "chat.cause_requested",
    "primary_available": "chat.cause_primary_available",
    "second_chance": "chat.cause_second_chance",
}
_COLUMNS = ("chat.column_tool", "chat.column_server", "chat.column_state")
_STATES: Mapping[ToolState, str] = {
    "core": "chat.state_core",
    "found": "chat.state_found",
    "deferred": "chat.state_deferred",
}


class PlainScreen:
    """Whole answers on standard output; the rest on standard error, dim.

    Args:
        search_tool: The name of the tool that searches.
    """

    def __init__(self, search_tool: str = "tool_search") -> None:
        self.language: Language = "en-US"
        self._search_tool = search_tool
        self._side = side_console()
        self._found: set[str] = set()

    def show(self, event: RunnerEvent) -> None:
        """Show an event of a turn."""
        if isinstance(event, TextDelta):
            self.add_text(event.text)
        elif isinstance(event, ToolCallStarted):
            self._show_call(event)
        elif isinstance(event, ToolProgress):
            self.print_line(f"  {event.message}")
        elif isinstance(event, ToolFinished):
            self._show_result(event)
        elif isinstance(event, ToolsDiscovered):
            self._show_discovered(event)
        elif isinstance(event, ProviderSwitched):
            self._show_switch(event)
        elif isinstance(event, ContentLeftOut):
            self.print_line(event.text, style="yellow")
        elif isinstance(event, RunnerWarning):
            self.print_line(self.text("warning", message=event.message), style="yellow")
        elif isinstance(event, Done):
            self._show_end(event)

    def say(self, key: str, **values: object) -> None:
        """Show a sentence."""
        self.print_block(text(key, self.language, **values), has_columns=key == "chat.help")

    def show_tools(self, request: NextRequest, provider: ProviderConfig) -> None:
        """Show the tools of the next request as a table, and its figures."""
        if request.tools:
            table = Table(box=None, pad_edge=False, header_style="dim")
            for column in _COLUMNS:
                table.add_column(text(column, self.language), overflow="fold")
            for tool in request.tools:
                # As Text, because a name must not be read as markup.
                cells = (tool.name, tool.server or "-", text(_STATES[tool.state], self.language))
                table.add_row(*(Text(visible(cell)) for cell in cells))
            self.rest()
            self._side.print(table)
        self.say(
            "chat.tools",
            mode=request.mode,
            strategy=request.strategy,
            provider=provider.id,
            model=provider.model,
            declared=number(request.tools_declared),
            total=number(request.tools_total),
            tokens=number(request.tokens),
            full_tokens=number(request.full_tokens),
        )

    def show_cost(self, cost: ConversationCost) -> None:
        """Show tokens and money, and what the mode `full` would have taken."""
        self.print_block("\n".join(cost.sentences(self.language)))

    def fail(self, error: ToolSearchError) -> None:
        """Show the error, then the error of each provider."""
        causes = error.causes if isinstance(error, AllProvidersFailedError) else {"": error}
        listed = "\n".join(str(cause) for cause in causes.values())
        self.print_block(self.text("failed", cause=listed), style="red")

    def work(self) -> None:
        """Show nothing: only a terminal has a spinner."""

    def pause(self) -> None:
        """Show nothing: only a terminal has a spinner."""

    def rest(self) -> None:
        """Show nothing: an answer is shown when it is whole."""

    def make_room(self) -> None:
        """Show nothing: only a terminal has text that is not finished."""

    def add_text(self, more: str) -> None:
        """Take a piece of the answer, which is shown when it is whole."""

    def print_answer(self, answer: str) -> None:
        """Show the whole answer."""
        typer.echo(visible(answer))

    def print_line(self, line: str, *, style: str = "dim") -> None:
        """Show one line of at most the terminal's cells."""
        shown = visible(" ".join(line.split()))
        if self._side.is_terminal:
            shown = cut(shown, self._side.width)
        elif len(shown) > _MAX_SHOWN_CHARS:
            shown = f"{shown[: _MAX_SHOWN_CHARS - 1]}…"
        self._print(shown, style)

    def print_block(self, lines: str, *, style: str = "", has_columns: bool = False) -> None:
        """Show lines whole; a terminal gets them between words."""
        shown = visible(lines)
        if self._side.is_terminal:
            wrap = wrapped_columns if has_columns else wrapped
            shown = wrap(shown, self._side.width)
        self._print(shown, style)

    def text(self, name: str, **values: object) -> str:
        """Return a sentence of the chat in its language."""
        return text(f"chat.{name}", self.language, **values)

    def _print(self, shown: str, style: str) -> None:
        self.make_room()
        # A pipe has no width: its lines stay whole.
        self._side.print(Text(shown, style=style), soft_wrap=True)

    def _show_call(self, event: ToolCallStarted) -> None:
        # A search is one line, which its result has.
        if event.tool != self._search_tool:
            self.print_line(f"→ {event.tool} {event.call.arguments}")

    def _show_result(self, event: ToolFinished) -> None:
        style = "red" if event.is_error else "dim"
        if event.tool != self._search_tool:
            self.print_line(f"← {event.content}", style=style)
            return
        names = None if event.is_error else found_names(event.content)
        self._found.update(names or ())
        # A search's JSON is for the model: a person reads the names.
        found = event.content if names is None else ", ".join(names) or self.text("none")
        query = _query(event.call.arguments)
        if self._side.is_terminal:
            # The line is cut at its end, where the names are.
            query = cut(query, self._side.width // 2)
        self.print_line(self.text("searched", query=query, names=found), style=style)

    def _show_discovered(self, event: ToolsDiscovered) -> None:
        # The line of the search has named them.
        if not self._found.issuperset(event.names):
            names = ", ".join(event.names)
            self.print_line(self.text("discovered", names=names, total=event.total))

    def _show_switch(self, event: ProviderSwitched) -> None:
        cause = event.cause
        if cause in _CAUSES:
            cause = text(_CAUSES[cause], self.language)
        before, after = event.from_provider, event.to_provider
        switched = self.text("switched", before=before, after=after, cause=cause)
        self.print_line(switched, style="yellow")
        if event.discarded_text:
            self.print_line(self.text("afresh"), style="yellow")

    def _show_end(self, event: Done) -> None:
        self.print_answer(event.answer)
        usage = event.usage
        self.print_line(
            self.text(
                "usage",
                provider=event.provider,
                steps=event.steps,
                read=number(usage.input_tokens),
                cached=number(usage.cache_read_tokens),
                written=number(usage.output_tokens),
            )
        )


def _query(arguments: str) -> str:
    """Return the query of a search call; other arguments as they are."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    query = given.get("query") if isinstance(given, Mapping) else None
    if isinstance(query, list):
        return "; ".join(map(str, query))
    return query if isinstance(query, str) else arguments
