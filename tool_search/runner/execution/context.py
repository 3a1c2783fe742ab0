"""The context of a call: facts for the tool, and questions, progress and calls from it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tool_search.catalog.functions import CallContext
from tool_search.core.messages import ToolCall
from tool_search.errors import ToolCallError
from tool_search.i18n import Language
from tool_search.runner.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    as_text,
)

__all__ = [
    "SILENT",
    "CallChannel",
    "Cancellation",
    "ToolContext",
    "ToolExecutor",
    "permits_rule",
]


class Cancellation:
    """A request to stop; it can be set from any thread and stays set.

    Args:
        parent: Another cancellation that also sets this one.
    """

    __slots__ = ("__weakref__", "_is_set", "_listeners", "_parent")

    def __init__(self, parent: Cancellation | None = None) -> None:
        self._parent = parent
        self._is_set = False
        self._listeners: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Set the request and call all listeners."""
        self._is_set = True
        for listener in tuple(self._listeners):
            listener()

    @property
    def is_cancelled(self) -> bool:
        """True if the work should stop."""
        return self._is_set or (self._parent is not None and self._parent.is_cancelled)

    @property
    def outermost(self) -> Cancellation:
        """The first cancellation of the chain: the one of the turn."""
        return self if self._parent is None else self._parent.outermost

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener when this or its parent is set, in the thread that sets it.

        Returns:
            A function that removes the listener.
        """
        self._listeners.append(listener)
        above = self._parent.listen(listener) if self._parent is not None else None

        def stop() -> None:
            self._listeners.remove(listener)
            if above is not None:
                above()

        return stop


class CallChannel(Protocol):
    """The link from a running tool to the code that runs its call."""

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Show progress or a piece of output to people; from any thread."""
        ...

    async def ask(self, question: str) -> bool:
        """Ask the user; return False if nobody can be asked."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Call another tool as the model would."""
        ...

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return True if another tool can be called without a question; from any thread."""
        ...


@runtime_checkable
class _KnowsRules(Protocol):
    """A channel that reads permission rules."""

    def has_permission(self, rule: str) -> bool: ...


class _Silent:
    """A channel of a context without a `CallRunner`."""

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Drop the event."""

    async def ask(self, question: str) -> bool:  # noqa: ARG002  # nobody can be asked
        """Return False."""
        return False

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Raise an error."""
        raise ToolCallError(
            f"tool {name!r} cannot be called with {dict(arguments)!r}: this context has no "
            "CallRunner; run the calling tool with one"
        )

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:  # noqa: ARG002  # no rules
        """Return True: there are no rules without a runner."""
        return True


SILENT: CallChannel = _Silent()


def permits_rule(channel: CallChannel, rule: str) -> bool:
    """Return True if a call that a rule describes is permitted, or the channel has no rules."""
    return channel.has_permission(rule) if isinstance(channel, _KnowsRules) else True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(CallContext):
    """The facts that a tool gets about its call, and what it can do during the call.

    Attributes:
        conversation: The conversation's key.
        language: The language that the user reads.
        user: The user who asked, if the bot names one.
        roles: The user's roles, such as administrator of a chat.
        folder: The folder in which the tool may use files; None: no folder.
        settings: Settings that the bot's owner gives to tools.
        tool: The canonical name of the called tool.
        call_id: The id of the call.
        idempotency_key: A key of the call, for services that take one: a call that may have
            run, and that the model makes again, has the same key; None: the turn has none.
        cancellation: The request to stop; a tool in a thread has to check it.
        depth: The number of tool calls around this one.
        channel: The target of the methods below.
    """

    conversation: str
    language: Language
    user: str | None = None
    roles: frozenset[str] = frozenset()
    folder: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    tool: str = field(default="", compare=False)
    call_id: str = field(default="", compare=False)
    idempotency_key: str | None = field(default=None, compare=False)
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False, repr=False)
    depth: int = field(default=0, compare=False)
    channel: CallChannel = field(default=SILENT, compare=False, repr=False)

    @property
    def is_cancelled(self) -> bool:
        """True if the tool should stop because nobody waits for it."""
        return self.cancellation.is_cancelled

    @property
    def logger(self) -> logging.Logger:
        """The tool's own logger, below `tool_search.tools`."""
        return logging.getLogger(f"tool_search.tools.{self.tool or 'unnamed'}")

    def progress(self, message: str) -> None:
        """Show progress to people; from any thread."""
        self.channel.say(CallProgress(message))

    def partial(self, value: object) -> None:
        """Show a piece of the result to people; the model gets it if the call fails."""
        self.channel.say(CallOutputDelta(as_text(value)))

    async def ask(self, question: str) -> bool:
        """Ask the user for permission; return False if they refuse or cannot be asked.

        The tool's timeout is paused meanwhile.
        """
        return await self.channel.ask(question)

    def allows(self, name: str, /, **arguments: Any) -> bool:
        """Return True if the rules allow this call of another tool without a question.

        A tool uses this to respect the rules of another, as a search in files respects the
        rules on reading.
        """
        return self.channel.allows(name, arguments)

    def has_permission(self, rule: str) -> bool:
        """Return True if a call that a rule describes can run without a question.

        Args:
            rule: A permission rule, such as `Bash(git status)`, `send_mail(to=a@b.c)` or
                `read_file`. A tool that the bot does not have is not permitted.
        """
        return permits_rule(self.channel, rule)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the value of another tool, checked and permitted like a model's call.

        Raises:
            ToolCallError: The call failed, was denied, or there is no such tool; the message
                is what the model would have read.
        """
        result = await self.channel.call(name, arguments)
        if result.is_error:
            raise ToolCallError(result.content)
        return result.content if result.data is None else result.data


class ToolExecutor(Protocol):
    """An executor that runs tools by canonical name."""

    def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Run one call whose arguments fit its tool's schema; the last event is the result.

        The failure of a tool is a result with `is_error`, never an exception. Cancelling the
        iteration cancels the tool.
        """
        ...
