"""The conversations that a runner has in memory, one turn of each at a time."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import types
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, cast
from uuid import uuid4

from tool_search.core.conversation.record import KeyedTurn
from tool_search.core.messages import Message
from tool_search.providers.prompt_cache import PrefixMonitor
from tool_search.runner.events import Done, RunnerEvent
from tool_search.runner.execution.observers import EventStream, TurnFailed, TurnStarted
from tool_search.runner.observing import current_conversation
from tool_search.runner.session.session import ToolSearchSession
from tool_search.stores import ConversationKey, ConversationStore, TurnLockStore
from tool_search.stores.keeping import KeptConversation, within_patience

__all__ = ["OpenConversation", "OpenConversations", "TurnWatch", "TurnWork", "emit", "turn_locked"]

# The lock of a turn in a store that workers share: one worker at a time answers a conversation.
#
# The lock has a lease, so that a dead worker's lock ends. While the store fails, turns go on
# without it: a bot that answers twice is better than one that is silent.


_LEASE_S = 30.0
_FIRST_PAUSE_S = 0.02
_LAST_PAUSE_S = 0.5
_log = logging.getLogger(__name__)


@asynccontextmanager
async def turn_locked(
    store: ConversationStore, key: ConversationKey, *, lost: Callable[[], None]
) -> AsyncGenerator[None, None]:
    """Hold the lock of a conversation's turns, once no other worker has it.

    Args:
        store: The store; without locks, this does nothing.
        key: The conversation's key.
        lost: Called if another worker has the lock: this one was halted for longer than the
            lease.
    """
    if not isinstance(store, TurnLockStore):
        yield
        return
    holder = uuid4().hex
    if not await _take(store, key, holder):
        yield
        return
    ended = asyncio.Event()
    renewing = asyncio.create_task(_renew(store, key, holder, lost, ended=ended))
    try:
        yield
    finally:
        # A store that loses the cancellation must not keep the lock for ever.
        ended.set()
        renewing.cancel()
        await asyncio.wait([renewing])
        await _release(store, key, holder)


async def _take(store: TurnLockStore, key: ConversationKey, holder: str) -> bool:
    """Wait for the lock; return False if the store fails."""
    pause = _FIRST_PAUSE_S
    try:
        while not await within_patience(store.lock_turn(key, holder=holder, lease_s=_LEASE_S)):
            # Workers that wait should not ask at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(2 * pause, _LAST_PAUSE_S)
    except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
        _log.warning(
            "turn_lock_unavailable: a turn of the conversation %r goes on without a lock: %s",
            key,
            exc,
        )
        return False
    except asyncio.CancelledError:
        # The store may have given the lock.
        await _release(store, key, holder)
        raise
    return True


async def _renew(
    store: TurnLockStore,
    key: ConversationKey,
    holder: str,
    lost: Callable[[], None],
    *,
    ended: asyncio.Event,
) -> None:
    while not ended.is_set():
        await asyncio.sleep(_LEASE_S / 3)
        try:
            has_lock = await within_patience(store.lock_turn(key, holder=holder, lease_s=_LEASE_S))
        except Exception as exc:  # noqa: BLE001  # as above; the next time may succeed
            _log.warning("turn_lock_unavailable: the lock of %r is not renewed: %s", key, exc)
            continue
        if not has_lock:
            _log.warning("turn_lock_lost: another worker answers the conversation %r", key)
            lost()
            return


async def _release(store: TurnLockStore, key: ConversationKey, holder: str) -> None:
    try:
        await within_patience(store.unlock_turn(key, holder=holder))
    except Exception as exc:  # noqa: BLE001  # as above; the lease ends by itself
        _log.warning("turn_lock_unavailable: the lock of %r ends with its lease: %s", key, exc)


# A turn at work: the one way out for its events, and its time limit.
#
# The code of a turn is one coroutine, which hands each event over with `emit`. The only
# generator is the one that the consumer reads: it lets the turn go on whenever it is asked for
# the next event. One that is not asked again would keep all that the turn holds: the lock of the
# conversation, a connection, running tools. So the watch ends the turn in place of its consumer.


TurnWork = Coroutine[Any, Any, Done]


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


_MAX_SESSIONS = 1024
_MAX_WARM_SESSIONS = 256  # a conversation's last request is as large as its history
# A consumer that takes no event for so long is not waited for.
_IDLE_S = 1.0


@dataclass(slots=True)
class OpenConversation:
    """The state of one conversation between its turns.

    Attributes:
        key: The conversation's key in the store.
        lock: Held by the turn that goes on.
        session: Its state; None: it was not read from the store yet.
        last: The `id` of the provider that was asked last.
        prefixes: The monitor of the last request to each provider.
        kept: The store's side of it.
        users: The number of turns that go on or wait.
        watch: The watch of the turn that goes on.
        is_forgotten: True once the conversation is erased.
        turns: The latest turns that have an idempotency key, oldest first.
    """

    key: ConversationKey
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: ToolSearchSession | None = None
    last: str | None = None
    prefixes: PrefixMonitor = field(default_factory=PrefixMonitor)
    kept: KeptConversation | None = None
    users: int = 0
    watch: TurnWatch | None = None
    is_forgotten: bool = False
    turns: tuple[KeyedTurn, ...] = ()

    def keyed_turn(self, key: str) -> KeyedTurn | None:
        """Return the turn that has a key, or None."""
        return next((turn for turn in self.turns if turn.key == key), None)

    def note(self, turn: KeyedTurn) -> None:
        """Keep a turn as the newest, in place of an earlier state of it."""
        self.turns = (*(each for each in self.turns if each.key != turn.key), turn)

    async def wait_for_turn(self) -> bool:
        """Wait until no turn goes on; return False if its consumer takes no events."""
        if not self.lock.locked():
            return True
        acquiring = asyncio.ensure_future(self.lock.acquire())
        try:
            while not (await asyncio.wait([acquiring], timeout=_IDLE_S))[0]:
                if self.watch is not None and self.watch.idle_s >= _IDLE_S:
                    return False
        finally:
            acquiring.cancel()
            await asyncio.wait([acquiring])
            if not acquiring.cancelled():
                self.lock.release()
        return True


class OpenConversations:
    """The conversations in memory; those that were not used for longest make room."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[ConversationKey, OpenConversation] = OrderedDict()

    def get(self, key: ConversationKey) -> OpenConversation | None:
        """Return a conversation if it is in memory."""
        return self._by_key.get(key)

    def remove(self, known: OpenConversation) -> None:
        """Drop a conversation, unless another one has its key already."""
        if self._by_key.get(known.key) is known:
            del self._by_key[known.key]

    @asynccontextmanager
    async def alone(self, key: ConversationKey) -> AsyncGenerator[OpenConversation, None]:
        """Give the conversation once no other turn of it goes on."""
        while True:
            known = self._by_key.setdefault(key, OpenConversation(key))
            self._by_key.move_to_end(key)
            known.users += 1
            try:
                async with known.lock:
                    # It may have been erased during the wait: then another one has its key.
                    if not known.is_forgotten:
                        yield known
                        return
            finally:
                known.users -= 1
                self._make_room()

    def _make_room(self) -> None:
        """Drop conversations that are in the store, the bytes of their requests first."""
        cold = len(self._by_key) - _MAX_WARM_SESSIONS
        if cold > 0:
            known = next(islice(self._by_key.values(), cold - 1, None))
            if known.session is not None and not known.users:
                known.session.forget_work()
        spare = len(self._by_key) - _MAX_SESSIONS
        if spare > 0:
            idle = (key for key, known in self._by_key.items() if not known.users)
            for key in list(islice(idle, spare)):
                del self._by_key[key]
