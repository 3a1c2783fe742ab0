"""Output of `tool-search chat`: for people, or as JSON lines."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from dataclasses import asdict
from typing import Any, Protocol

import typer
from rich.text import Text

from tool_search.cli.exits import side_console
from tool_search.cli.inspect import NextRequest
from tool_search.config.bot import ProviderConfig
from tool_search.demo.trace import found_names
from tool_search.errors import AllProvidersFailedError, ToolSearchError
from tool_search.events import (
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
from tool_search.i18n import Language, text

__all__ = ["JsonScreen", "Screen", "TerminalScreen"]

_MAX_SHOWN_CHARS = 300
# The causes of a switch that are identifiers, as people read them.
_SPOKEN_CAUSES = {
    "requested": "asked for",
    "primary_available": "first in order",
    "second_chance": "it has a tool after all",
}
_WORD_BREAK = re.compile(r"(?<!^)(?=[A-Z])")


class Screen(Protocol):
    """The output of a conversation.

    Attributes:
        language: The language of everything except errors.
    """

    language: Language

    def show(self, event: RunnerEvent) -> None:
        """Show an event of a turn."""
        ...

    def say(self, key: str, **values: object) -> None:
        """Show a sentence of `tool_search.i18n`."""
        ...

    def show_tools(self, request: NextRequest, provider: ProviderConfig) -> None:
        """Show the tools of the next request."""
        ...

    def fail(self, error: ToolSearchError) -> None:
        """Show the error of a message without an answer."""
        ...


# Programs read these names; they stay if a class is renamed.
_KEPT_NAMES = {"RunnerWarning": "warning", "ToolOutputDelta": "tool_partial"}


class JsonScreen:
    """One JSON object a line, for each event, with its name in snake_case."""

    def __init__(self) -> None:
        self.language: Language = "en-US"

    def show(self, event: RunnerEvent) -> None:
        """Write an object with the event's fields."""
        name = type(event).__name__
        name = _KEPT_NAMES.get(name, _WORD_BREAK.sub("_", name).lower())
        self._write(name, asdict(event))

    def say(self, key: str, **values: object) -> None:
        """Write an object `notice`."""
        self._write("notice", {"message": text(key, self.language, **values)})

    def show_tools(self, request: NextRequest, provider: ProviderConfig) -> None:
        """Write an object `tools`."""
        self._write("tools", {"provider": provider.id, **asdict(request)})

    def fail(self, error: ToolSearchError) -> None:
        """Write an object `error`, with one cause for each provider."""
        causes = error.causes if isinstance(error, AllProvidersFailedError) else {}
        listed = [
            {"provider": name, "status": cause.status, "message": cause.detail}
            for name, cause in causes.items()
        ]
        self._write("error", {"message": str(error), "causes": listed})

    @staticmethod
    def _write(name: str, content: dict[str, Any]) -> None:
        typer.echo(json.dumps({"event": name, **content}, ensure_ascii=False))


class TerminalScreen:
    """Answers on standard output, as they arrive; the rest on standard error, dim.

    If standard output is not a terminal, it gets whole answers and nothing else.
    """

    def __init__(self) -> None:
        self.language: Language = "en-US"
        self._streams = sys.stdout.isatty()
        self._streamed = ""

    def show(self, event: RunnerEvent) -> None:
        """Show an event of a turn."""
        if isinstance(event, TextDelta):
            self._stream(event.text)
        elif isinstance(event, ToolCallStarted):
            self._print_line(f"→ {event.tool} {event.call.arguments}")
        elif isinstance(event, ToolProgress):
            self._print_line(f"  {event.message}")
        elif isinstance(event, ToolFinished):
            self._show_result(event)
        elif isinstance(event, ToolsDiscovered):
            self._print_line(
                self._text("discovered", names=", ".join(event.names), total=event.total)
            )
        elif isinstance(event, ProviderSwitched):
            self._show_switch(event)
        elif isinstance(event, ContentLeftOut):
            self._print_line(event.text, style="yellow")
        elif isinstance(event, RunnerWarning):
            self._print_line(self._text("warning", message=event.message), style="yellow")
        elif isinstance(event, Done):
            self._show_end(event)

    def say(self, key: str, **values: object) -> None:
        """Show a sentence unchanged."""
        self._print_block(_visible(text(key, self.language, **values)))

    def show_tools(self, request: NextRequest, provider: ProviderConfig) -> None:
        """Show the tools of the next request, line by line."""
        self.say(
            "chat.tools",
            mode=request.mode,
            strategy=request.strategy,
            provider=provider.id,
            model=provider.model,
            declared=request.tools_declared,
            total=request.tools_total,
            discovered=", ".join(request.discovered) or self._text("none"),
            tokens=request.tokens,
            full_tokens=request.full_tokens,
        )

    def fail(self, error: ToolSearchError) -> None:
        """Show the error, then the error of each provider."""
        causes = error.causes if isinstance(error, AllProvidersFailedError) else {"": error}
        listed = "\n".join(str(cause) for cause in causes.values())
        message = self._text("failed", cause=listed)
        self._print_block(_visible(message), style="red")

    def _stream(self, more: str) -> None:
        self._streamed += more
        if self._streams:
            typer.echo(_visible(more), nl=False)
            sys.stdout.flush()

    def _show_result(self, event: ToolFinished) -> None:
        names = None if event.is_error else found_names(event.content)
        # A search's JSON is for the model: a person reads the names.
        shown = event.content if names is None else ", ".join(names) or self._text("none")
        self._print_line(f"← {shown}", style="red" if event.is_error else "dim")

    def _show_switch(self, event: ProviderSwitched) -> None:
        before, after = event.from_provider, event.to_provider
        cause = _SPOKEN_CAUSES.get(event.cause, event.cause)
        switched = self._text("switched", before=before, after=after, cause=cause)
        self._print_line(switched, style="yellow")
        if event.discarded_text:
            self._print_line(self._text("afresh"), style="yellow")

    def _show_end(self, event: Done) -> None:
        if self._streams and self._streamed.strip():
            self._end_line()
        else:
            typer.echo(_visible(event.answer))
            self._streamed = ""
        usage = event.usage
        self._print_line(
            self._text(
                "usage",
                provider=event.provider,
                steps=event.steps,
                read=usage.input_tokens,
                cached=usage.cache_read_tokens,
                written=usage.output_tokens,
            )
        )

    def _print_line(self, line: str, *, style: str = "dim") -> None:
        self._print_block(_one_line(line), style=style)

    def _print_block(self, lines: str, *, style: str = "") -> None:
        self._end_line()
        # The terminal wraps the line, so that copied text has no line feeds.
        side_console().print(Text(lines, style=style), soft_wrap=True)

    def _end_line(self) -> None:
        """End the streamed line, so that the next output starts a new one."""
        if self._streams and self._streamed and not self._streamed.endswith("\n"):
            typer.echo()
        self._streamed = ""

    def _text(self, name: str, **values: object) -> str:
        return text(f"chat.{name}", self.language, **values)


def _visible(shown: str) -> str:
    """Return the text without control characters."""
    # A model must not control the terminal.
    return "".join(
        char for char in shown if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
    )


def _one_line(shown: str) -> str:
    line = _visible(" ".join(shown.split()))
    return line if len(line) <= _MAX_SHOWN_CHARS else f"{line[: _MAX_SHOWN_CHARS - 1]}…"
