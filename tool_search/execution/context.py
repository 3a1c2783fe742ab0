"""What a tool knows of the call it is in, and what it can do there."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tool_search.errors import ToolCallError
from tool_search.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    as_text,
)
from tool_search.i18n import Language
from tool_search.messages import ToolCall

__all__ = ["SILENT", "CallChannel", "Cancellation", "ToolContext", "ToolExecutor"]


class Cancellation:
    """A wish to stop: set once, from any thread, and never taken back.

    Args:
        parent: What stops this one too.
    """

    __slots__ = ("__weakref__", "_is_set", "_listeners", "_parent")

    def __init__(self, parent: Cancellation | None = None) -> None:
        self._parent = parent
        self._is_set = False
        self._listeners: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Asks everybody who looks or listens to stop."""
        self._is_set = True
        for listener in tuple(self._listeners):
            listener()

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop."""
        return self._is_set or (self._parent is not None and self._parent.is_cancelled)

    @property
    def outermost(self) -> Cancellation:
        """The first of the chain: one for all calls of a turn."""
        return self if self._parent is None else self._parent.outermost

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Has something called when this or its parent is set, in the thread that sets it.

        Returns:
            What ends the listening.
        """
        self._listeners.append(listener)
        above = self._parent.listen(listener) if self._parent is not None else None

        def stop() -> None:
            self._listeners.remove(listener)
            if above is not None:
                above()

        return stop


class CallChannel(Protocol):
    """Where a tool's words go: to whoever runs its call."""

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Tells people how far the call is; from any thread."""
        ...

    async def ask(self, question: str) -> bool:
        """Asks the user; False where nobody can be asked."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Calls another tool as the model would."""
        ...

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return True if a call of another tool would be made unasked; from any thread."""
        ...


class _Silent:
    """A channel to nobody."""

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Nobody hears it."""

    async def ask(self, question: str) -> bool:  # noqa: ARG002  # nobody reads it
        """Without anybody to ask, ask means no."""
        return False

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """There is nothing to call."""
        raise ToolCallError(
            f"tool {name!r} cannot be called with {dict(arguments)!r}: this context has no "
            "CallRunner behind it"
        )

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:  # noqa: ARG002  # no rules
        """Without a runner there are no rules."""
        return True


SILENT: CallChannel = _Silent()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know about where it is called, and what it can do there.

    Attributes:
        conversation: The conversation's key.
        language: Of what the user reads.
        user: Who asked, where the bot tells.
        roles: What the user is, such as a chat's administrator.
        folder: Where the tool may work with files; None: nowhere.
        settings: What the bot's owner configures for tools.
        tool: The canonical name it is called by.
        call_id: The call's own.
        idempotency_key: The same whenever a retried turn makes the same call again;
            None: the bot gave the turn none.
        cancellation: Says when to stop; a tool in a thread has to look at it.
        depth: How many calls of other tools this one is inside of.
        channel: Where the methods below lead.
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
        """Whether the tool should stop: nobody waits for it any more."""
        return self.cancellation.is_cancelled

    @property
    def logger(self) -> logging.Logger:
        """A log of the tool's own, below `tool_search.tools`."""
        return logging.getLogger(f"tool_search.tools.{self.tool or 'unnamed'}")

    def progress(self, message: str) -> None:
        """Tells people how far the tool is; from any thread."""
        self.channel.say(CallProgress(message))

    def partial(self, value: object) -> None:
        """Shows people a piece of the result, and keeps it for the model should the rest fail."""
        self.channel.say(CallOutputDelta(as_text(value)))

    async def ask(self, question: str) -> bool:
        """Asks the user for permission; False where he refuses or cannot be asked.

        The time he takes is not the tool's: its time-out waits.
        """
        return await self.channel.ask(question)

    def allows(self, name: str, /, **arguments: Any) -> bool:
        """Return True if the rules let the user call another tool so, without a question.

        For a tool that shows what another one guards: a search in files, for one.
        """
        return self.channel.allows(name, arguments)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """What another tool returns, called as the model would call it: checked and permitted.

        Raises:
            ToolCallError: The call failed, was denied, or there is no such tool; says
                what the model would have read.
        """
        result = await self.channel.call(name, arguments)
        if result.is_error:
            raise ToolCallError(result.content)
        return result.content if result.data is None else result.data


# The seam between a call that is decided and the one result it comes to.


class ToolExecutor(Protocol):
    """Runs tools, by canonical name."""

    def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Runs one call whose arguments fit its tool's schema.

        A tool's failure is a result with `is_error`, never an exception; cancelling
        the iteration cancels the tool.
        """
        ...
