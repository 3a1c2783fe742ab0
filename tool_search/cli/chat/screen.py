"""Output of `tool-search chat`: its interface, and JSON lines."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any, Protocol

import typer

from tool_search.cli.chat.cost import ConversationCost
from tool_search.cli.inspect import NextRequest
from tool_search.config.bot import ProviderConfig
from tool_search.errors import AllProvidersFailedError, ToolSearchError
from tool_search.i18n import Language, text
from tool_search.runner.events import RunnerEvent

__all__ = ["JsonScreen", "Screen"]

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

    def show_cost(self, cost: ConversationCost) -> None:
        """Show what the conversation has cost."""
        ...

    def fail(self, error: ToolSearchError) -> None:
        """Show the error of a message without an answer."""
        ...

    def work(self) -> None:
        """Show that the model or a tool works, until `rest`."""
        ...

    def pause(self) -> None:
        """Show nothing that moves until `work`: a person is asked something."""
        ...

    def rest(self) -> None:
        """Show what is left of the answer, and nothing that moves."""
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

    def show_cost(self, cost: ConversationCost) -> None:
        """Write an object `cost`."""
        self._write("cost", cost.to_dict())

    def work(self) -> None:
        """Write nothing: a program needs no spinner."""

    def pause(self) -> None:
        """Write nothing."""

    def rest(self) -> None:
        """Write nothing."""

    @staticmethod
    def _write(name: str, content: dict[str, Any]) -> None:
        typer.echo(json.dumps({"event": name, **content}, ensure_ascii=False))
