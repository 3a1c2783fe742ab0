"""Those who watch calls and turns: one stream of events, and each of them a reader of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.core.values.redaction import log_failure
from tool_search.runner.events import RunnerEvent, TurnEvent, TurnObserver
from tool_search.runner.execution.results import FinishedCall

__all__ = [
    "CallBegun",
    "CallEnded",
    "CallObserver",
    "EventStream",
    "Readers",
    "Telemetry",
    "ToolFailure",
    "ToolRun",
    "TurnFailed",
    "TurnStarted",
]

_MAX_LATE = 1_000
_PATIENCE_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """The end of a call.

    Attributes:
        tool: The canonical name.
        duration: Seconds from start to end.
        success: True if the tool returned a result.
    """

    name: ClassVar[str] = "tool_execution"
    tool: str
    duration: float
    success: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """The failure, denial or cancellation of a call.

    Attributes:
        tool: The canonical name.
        error: The text that the model reads.
        stack: The traceback of the tool's exception; empty if there was none.
    """

    name: ClassVar[str] = "tool_error"
    tool: str
    error: str
    stack: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


CallObserver = Callable[[ToolRun | ToolFailure], None]


# The four below are for telemetry alone. The first and third come where the work is done:
# what a reader makes current there, such as a span, is so for all of the work.


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(RunnerEvent):
    """The begin of a turn with the user's message."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(RunnerEvent):
    """The end of a turn by an exception; `GeneratorExit` if its consumer stopped."""

    error: BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBegun(RunnerEvent):
    """The begin of a call that runs a tool."""

    tool: Tool
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(RunnerEvent):
    """The end of any call: of a search, and of one that was refused, too."""

    finished: FinishedCall


class Telemetry(Protocol):
    """A reader of all events, with the texts that no other reader gets."""

    def on_turn(
        self,
        seen: TurnEvent,
        kept: dict[str, Any] | None = None,
        content: Message | RequestPlan | None = None,
    ) -> object:
        """Read an event of a turn, or of calls outside of turns.

        Args:
            seen: The event.
            kept: Whatever the reader wants to keep for the other events of the turn.
            content: The plan of a request that started, the reply of one that finished.
        """
        ...


class Readers:
    """The readers of all turns and calls of a bot.

    One that fails is logged, and gets the next event. What one returns is awaited in a task,
    in the order of the events; turns wait for it only if it is a thousand events late.

    Args:
        observers: Get the events of turns.
        calls: Get the end of each call.
        telemetry: Gets everything.
    """

    def __init__(
        self,
        observers: Sequence[TurnObserver] = (),
        calls: Sequence[CallObserver] = (),
        telemetry: Telemetry | None = None,
    ) -> None:
        # A bound method is equal to another of the same object: nothing is measured twice.
        own = getattr(telemetry, "on_turn", None)
        self.observers = tuple((each, _Line()) for each in observers if each != own)
        self.calls = tuple(calls)
        self.telemetry = telemetry

    async def catch_up(self) -> None:
        """Wait for the observers that are too late."""
        for _, line in self.observers:
            if len(line.waiting) >= _MAX_LATE:
                await line.wait(below=_MAX_LATE)

    async def aclose(self) -> None:
        """Wait a few seconds for all that observers have begun; end what is left."""
        for _, line in self.observers:
            await line.aclose()


class EventStream:
    """The events of one turn, or of calls outside of turns, on their way to all readers.

    Args:
        readers: The readers of the bot.
        conversation: The key of the conversation.
        log: Another reader of this turn alone.
    """

    def __init__(
        self, readers: Readers, conversation: str, log: Callable[[TurnEvent], object] | None = None
    ) -> None:
        self.conversation = conversation
        self.has_observers = bool(readers.observers)
        self.has_telemetry = readers.telemetry is not None
        self.follows_calls = self.has_telemetry or bool(readers.calls)
        self.is_read = self.has_observers or self.has_telemetry or log is not None
        self._readers = readers
        self._log = log
        self._start = time.monotonic()
        self._kept: dict[str, Any] = {}

    def tell(self, event: RunnerEvent, content: Message | RequestPlan | None = None) -> None:
        """Give an event of the turn to all readers."""
        if not self.is_read:
            return
        seen = self._see(event)
        for observer, line in self._readers.observers:
            try:
                result = observer(seen)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end a turn
                _log_failure()
            else:
                if inspect.isawaitable(result):
                    line.add(result)
        if self._log is not None:
            self._log(seen)
        self._trace(seen, content)

    def trace(self, event: RunnerEvent) -> None:
        """Give an event to telemetry, and the end of a call to those who follow calls."""
        if self._readers.telemetry is not None:
            self._trace(self._see(event), None)
        if self._readers.calls and isinstance(event, CallEnded):
            _report(self._readers.calls, event.finished)

    async def catch_up(self) -> None:
        """Wait for the observers that are too late."""
        await self._readers.catch_up()

    def _see(self, event: RunnerEvent) -> TurnEvent:
        elapsed = time.monotonic() - self._start
        return TurnEvent(conversation=self.conversation, elapsed_s=elapsed, event=event)

    def _trace(self, seen: TurnEvent, content: Message | RequestPlan | None) -> None:
        if self._readers.telemetry is not None:
            try:
                self._readers.telemetry.on_turn(seen, self._kept, content)
            except Exception:  # noqa: BLE001  # as above
                _log_failure()


def _report(observers: Sequence[CallObserver], finished: FinishedCall) -> None:
    """Call all observers with the records of one call; log those that fail."""
    tool, result = finished.tool, finished.result
    records: list[ToolRun | ToolFailure] = [
        ToolRun(tool=tool, duration=finished.duration_s, success=not result.is_error)
    ]
    if result.is_error:
        stack = "".join(traceback.format_exception(result.error)) if result.error else ""
        records.append(ToolFailure(tool=tool, error=result.content, stack=stack))
    for observer in observers:
        for record in records:
            try:
                observer(record)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end a call
                log_failure(_log, "an observer of calls failed")


class _Line:
    """The awaitables of one observer that wait for their turn."""

    def __init__(self) -> None:
        self.waiting: deque[Awaitable[object]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    def add(self, item: Awaitable[object]) -> None:
        self.waiting.append(item)
        if self._task is None or self._task.done():
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._run(), name="tool-search observer")

    async def wait(self, *, below: int) -> None:
        while len(self.waiting) >= below and self._task is not None and not self._task.done():
            self._moved.clear()
            await self._moved.wait()

    async def _run(self) -> None:
        try:
            while self.waiting:
                try:
                    await self.waiting[0]
                except asyncio.CancelledError:
                    # What an observer waits for may be cancelled: the next event is still due.
                    if self._task is not None and self._task.cancelling():
                        raise
                    _log_failure()
                except Exception:  # noqa: BLE001  # the bot's own: it must not end a turn
                    _log_failure()
                self.waiting.popleft()
                self._moved.set()
        finally:
            self._moved.set()

    async def aclose(self) -> None:
        task = self._task
        if task is None or task.done():
            return
        await asyncio.wait([task], timeout=_PATIENCE_S)
        if not task.done():
            _log.warning(
                "an observer of turns was %d events late when the bot was closed, and was ended",
                len(self.waiting),
            )
            task.cancel()
            await asyncio.wait([task])
        for item in self.waiting:
            if inspect.iscoroutine(item):
                item.close()
        self.waiting.clear()


def _log_failure() -> None:
    log_failure(_log, "an observer of turns failed")
