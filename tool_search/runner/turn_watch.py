"""A turn at work: the one way out for its events, and its time limit.

The code of a turn is one coroutine, which hands each event over with `emit`. The only
generator is the one that the consumer reads: it lets the turn go on whenever it is asked for
the next event. One that is not asked again would keep all that the turn holds: the lock of the
conversation, a connection, running tools. So the watch ends the turn in place of its consumer.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from typing import Any, NamedTuple, cast

from tool_search.core.messages import Message
from tool_search.runner.events import Done, RunnerEvent
from tool_search.runner.execution.observers import EventStream, TurnFailed, TurnStarted
from tool_search.runner.observing import current_conversation

__all__ = ["TurnWatch", "TurnWork", "emit"]

TurnWork = Coroutine[Any, Any, Done]
_log = logging.getLogger(__name__)


class _Handed(NamedTuple):
    event: RunnerEvent

    def __await__(self) -> Generator[Any, None, None]:
        return cast("Generator[Any, None, None]", iter((self,)))  # no frame to pass each time


class _EndedError(asyncio.CancelledError):
    """Ends a turn that waits for its consumer."""


def emit(event: RunnerEvent) -> _Handed:
    """Hand an event to the consumer of the turn; awaited until it asks for the next one.

    Only the turn itself may await it, not a task that it starts.
    """
    return _Handed(event)


@types.coroutine
def _resume(
    turn: TurnWork, context: contextvars.Context, error: BaseException | None = None
) -> Generator[Any, Any, RunnerEvent]:
    """Let a turn work until it hands over an event; return that event, `Done` at its end."""
    # Whatever else the turn waits for is the event loop's: it runs in its consumer's task. But
    # in a context of its own: the turn's span is not current for what its consumer does.
    while True:
        try:
            if error is None:
                waited = context.run(turn.send, None)
            else:
                waited = context.run(turn.throw, error)
        except StopIteration as over:
            done: Done = over.value
            return done
        if isinstance(waited, _Handed):
            return waited.event
        try:
            yield waited
            error = None
        except BaseException as exc:  # noqa: BLE001  # passed on to the turn
            error = exc


class TurnWatch:
    """The watch of one turn.

    Args:
        limit_s: Seconds for the turn from `start` on; None: no limit.
        stream: Takes the turn's events to their readers.

    Attributes:
        timed_out: True once the turn was ended because its time was over.
        ended_because: The reason why the turn must end; empty if there is none.
    """

    def __init__(self, limit_s: float | None, stream: EventStream) -> None:
        self.timed_out = False
        self.ended_because = ""
        self._limit_s = limit_s
        self._stream = stream
        self._context = contextvars.Context()
        self._deadline: float | None = None
        self._patience: asyncio.Timeout | None = None
        self._turn: TurnWork | None = None  # while it waits for its consumer
        self._idle_since: float | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def idle_s(self) -> float:
        """The seconds since the consumer took its last event; 0 while the turn works."""
        since = self._idle_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def start(self) -> None:
        """Start the clock: the time of other turns before it does not count."""
        if self._limit_s is not None:
            self._deadline = asyncio.get_running_loop().time() + self._limit_s
            if self._patience is not None:
                self._patience.reschedule(self._deadline)

    def abandon(self, reason: str) -> None:
        """End the turn at the next event that its consumer takes, or now if it takes none."""
        self.ended_because = reason
        if self._idle_since is not None:
            self._end()

    async def events(
        self,
        message: Message,
        begin: Callable[[], TurnWork],
        last_events: Callable[[], Iterable[RunnerEvent]],
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Yield a turn's events, until it ends or is ended.

        Args:
            message: The user's message.
            begin: Begins the turn.
            last_events: Returns the last events of a turn that was ended; it may raise instead.
        """
        loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(current_conversation.set, self._stream.conversation)
        self._context.run(self._stream.trace, TurnStarted(message=message))
        self._turn = begin()
        try:
            try:
                while (event := await self._next()) is not None:
                    await self._tell(event)
                    if isinstance(event, Done):
                        # A consumer may stop at the last event, and never resume the generator.
                        yield event
                        return
                    self._idle_since = loop.time()
                    if self._deadline is not None:
                        self._alarm = loop.call_at(self._deadline, self._end, True)
                    try:
                        yield event
                    finally:
                        self._idle_since = None
                        if self._alarm is not None:
                            self._alarm.cancel()
            finally:
                closing = self._closing
                await (self._close() if closing is None else asyncio.shield(closing))
            for event in last_events():
                await self._tell(event)
                yield event
        except BaseException as error:
            self._stream.trace(TurnFailed(error=error))
            raise

    async def _tell(self, event: RunnerEvent) -> None:
        self._stream.tell(event)
        if self._stream.has_observers:
            await self._stream.catch_up()

    async def _next(self) -> RunnerEvent | None:
        """Return the next event, or None if the turn was ended or its time is over."""
        turn, self._turn = self._turn, None
        if turn is None:
            return None
        try:
            if self._limit_s is None:
                event = await _resume(turn, self._context)
            else:
                async with asyncio.timeout_at(self._deadline) as self._patience:
                    event = await _resume(turn, self._context)
        except TimeoutError:
            if self._patience is None or not self._patience.expired():
                raise
            self.timed_out = True
            return None
        if not isinstance(event, Done):
            self._turn = turn
        return None if self.ended_because else event

    def _end(self, timed_out: bool = False) -> None:
        """Close the turn in place of its consumer."""
        self.timed_out = self.timed_out or timed_out
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close_alone())

    async def _close_alone(self) -> None:
        try:
            await self._close()
        except Exception:  # noqa: BLE001  # no consumer may be left to get it
            _log.exception("a turn whose consumer took no event failed while it was ended")

    async def _close(self) -> None:
        """End the turn where it waits: what is in flight ends, and the conversation is kept."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            # Nobody takes what it says in its clean-up.
            while not isinstance(await _resume(turn, self._context, _EndedError()), Done):
                pass
        except _EndedError:
            pass
