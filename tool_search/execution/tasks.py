"""Work that ends when its time is over, whatever it does against it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import types
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar

from tool_search.execution.results import CallOutputDelta, CallProgress
from tool_search.values.redaction import log_failure

__all__ = [
    "MAX_TOOL_THREADS",
    "CallClock",
    "NoResult",
    "OrphanedTasks",
    "ToolThreads",
    "answer_of",
    "called",
    "carried",
    "closing",
    "in_thread",
    "is_async",
]


# Iterators that end with their reader: no connection and no tool outlives a turn.


_ItemT = TypeVar("_ItemT")


@asynccontextmanager
async def closing(items: AsyncIterator[_ItemT]) -> AsyncGenerator[AsyncIterator[_ItemT], None]:
    """Closes an iterator at the end of the block, where it is one that can be closed.

    The protocols of this library promise an iterator and no more; a generator that is
    only dropped would hold on to what it has opened until the event loop finds it.
    """
    try:
        yield items
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


# The threads that functions without a coroutine run in: a bounded number for all of a process.
#
# Daemon threads, unlike those of `concurrent.futures`: one that hangs must not keep the
# process alive. A function that is given up cannot be ended. Its thread no longer counts, so
# that functions that hang do not stop the others, up to four times the bound.


MAX_TOOL_THREADS = 64
"""How many functions run at the same time; more wait, first come, first served."""
_IDLE_S = 10.0
_IDLE = "tool-idle"
_MAX_LOST = 3
_serial = count(1)


class _Job:
    """One function that waits, runs, or has ended."""

    __slots__ = ("_context", "_future", "_loop", "_work", "is_lost", "state")

    def __init__(self, work: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self._work = work
        self._future = future
        self._loop = future.get_loop()
        self._context = contextvars.copy_context()
        self.state = "waiting"
        self.is_lost = False

    @property
    def is_dropped(self) -> bool:
        """True if nobody waits for it any more."""
        return self._future.cancelled()

    def run(self) -> None:
        try:
            outcome = ("set_result", self._context.run(self._work))
        except BaseException as exc:  # noqa: BLE001  # handed over to the awaiting task
            outcome = ("set_exception", carried(exc))
        try:
            self._loop.call_soon_threadsafe(self._settle, *outcome)
        except RuntimeError:
            _log.debug("a tool's thread ended after its loop: nobody takes its result")

    def _settle(self, setter: str, value: object) -> None:
        if not self._future.done():
            getattr(self._future, setter)(value)


class ToolThreads:
    """A bounded number of daemon threads, started when they are needed.

    Args:
        most: How many work at the same time.
    """

    def __init__(self, most: int = MAX_TOOL_THREADS) -> None:
        self._most = most
        self._wake = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._threads = 0
        self._idle = 0
        self._lost = 0

    @property
    def count(self) -> int:
        """How many threads there are, idle and lost ones too."""
        return self._threads

    def run(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """Return what gives the work's result; cancelling it before it begins drops the work."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        job = _Job(work, future)
        future.add_done_callback(lambda done: self._given_up(job) if done.cancelled() else None)
        with self._wake:
            self._waiting.append(job)
            self._staff()
        return future

    def _staff(self) -> None:
        """Wake or start a thread for what waits, where there is room."""
        if self._idle >= len(self._waiting):
            self._wake.notify()
        elif self._threads - min(self._lost, _MAX_LOST * self._most) < self._most:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name=_IDLE).start()

    def _given_up(self, job: _Job) -> None:
        with self._wake:
            if job.state == "running" and not job.is_lost:
                job.is_lost = True
                self._lost += 1
                if self._waiting:
                    self._staff()

    def _work(self) -> None:
        # The name tells whoever looks at a process which threads are at work.
        thread = threading.current_thread()
        while (job := self._next()) is not None:
            thread.name = f"tool-{next(_serial)}"
            job.run()
            thread.name = _IDLE
            with self._wake:
                job.state = "ended"
                self._lost -= job.is_lost

    def _next(self) -> _Job | None:
        """The next job; None if none comes for a while, and the thread ends."""
        with self._wake:
            while True:
                while self._waiting:
                    job = self._waiting.popleft()
                    if not job.is_dropped:
                        job.state = "running"
                        return job
                self._idle += 1
                woken = self._wake.wait(_IDLE_S)
                self._idle -= 1
                if not (woken or self._waiting):
                    self._threads -= 1
                    return None


def carried(exc: BaseException) -> BaseException:
    """An exception that a future takes: it refuses `StopIteration`, and exits are no results."""
    if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
        return exc
    return RuntimeError(f"{type(exc).__name__}: {exc}")


_shared = ToolThreads()


def in_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    """Run work in one of the process's threads for tools."""
    return _shared.run(work)


_ValueT = TypeVar("_ValueT")
_log = logging.getLogger(__name__)


class NoResult(Exception):  # noqa: N818  # not raised to anybody: it names a case
    """A generator that ended without a result."""


class CallClock:
    """The time a call has: the block it surrounds is cancelled when that is over.

    It stands still while the user is asked, and so does that of the call it is made in.
    A block that ignores its cancellation is announced once the grace is over too.

    Args:
        overdue: Is called then, with the seconds the block had.
        grace_s: Seconds the block has for its clean-up.
        outer: The clock of what the call is a part of.
    """

    seconds = 0.0
    is_over = False
    _alarm: asyncio.TimerHandle | None = None  # None: it stands still
    _is_on = False
    _stops = 0

    def __init__(
        self, overdue: Callable[[float], None], grace_s: float, outer: CallClock | None = None
    ) -> None:
        self._overdue = overdue
        self._grace_s = grace_s
        self._outer = outer

    def within(self, seconds: float) -> Self:
        """The block, with its time.

        Raises:
            TimeoutError: The time was over before the block's end.
        """
        self.seconds = seconds
        return self

    @types.coroutine
    def spent_on(
        self, work: Coroutine[Any, Any, _ValueT], seconds: float
    ) -> Generator[Any, Any, _ValueT]:
        """What work comes to, within its time; work that never waits needs no clock.

        Raises:
            TimeoutError: The time was over before the work's end.
        """
        self.seconds = seconds
        try:
            waited_for = work.send(None)
            with self:
                while True:
                    try:
                        sent = yield waited_for
                    except BaseException as exc:  # noqa: BLE001  # handed on to the work
                        waited_for = work.throw(exc)
                    else:
                        waited_for = work.send(sent)
        except StopIteration as over:
            value: _ValueT = over.value
            return value

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0
        self._left = self.seconds
        self._is_on = True
        self._go()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_on = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        # As `asyncio.timeout` does: a cancellation of somebody else's is passed on.
        if self.is_over and self._task is not None:
            alone = self._task.uncancel() <= self._before
            if alone and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Holds the clock for a block, and those around it."""
        with nullcontext() if self._outer is None else self._outer.stopped():
            self._stops += 1
            if self._alarm is not None and not self.is_over:
                self._left = self._alarm.when() - asyncio.get_running_loop().time()
                self._alarm.cancel()
                self._alarm = None
            try:
                yield
            finally:
                self._stops -= 1
                self._go()

    def _go(self) -> None:
        if self._is_on and not self._stops and not self.is_over:
            self._alarm = asyncio.get_running_loop().call_later(self._left, self._end)

    def _end(self) -> None:
        self.is_over = True
        if self._task is not None:
            self._task.cancel()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(self._grace_s, self._overdue, self.seconds)


def called(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    asynchronous: bool | None = None,
    say: Callable[[CallProgress | CallOutputDelta], None] | None = None,
) -> Coroutine[Any, Any, Any]:
    """What a function gives for these arguments, awaited where it can be.

    A function that is not async runs in a thread, of which a process has 64. What it raises is an
    exception that a task can carry: a tool that exits has failed like any other.

    Args:
        function: What is called.
        arguments: By name.
        asynchronous: Whether it gives something to await, where that is known.
        say: Takes what a generator yields before its result; without it, the generator
            itself is given.

    Raises:
        NoResult: A generator has yielded no result.
    """
    at_once = is_async(function) if asynchronous is None else asynchronous
    return _contained(_given(function, arguments, at_once, say))


def answer_of(function: Callable[..., Any], *given: Any) -> Coroutine[Any, Any, Any]:
    """What a function of the bot's owner says at once or when awaited.

    What it raises is an exception that a task can carry.
    """
    return _contained(_said_by(function, given))


async def _said_by(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    said = function(*given)
    return await said if inspect.isawaitable(said) else said


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call of it gives something to await, or an async generator, at once."""
    own_call = getattr(function, "__call__", None)  # noqa: B004  # an object's async call is meant
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, own_call)
    )


async def _given(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    at_once: bool,
    say: Callable[[CallProgress | CallOutputDelta], None] | None,
) -> Any:
    value = function(**arguments) if at_once else await in_thread(partial(function, **arguments))
    if inspect.isawaitable(value):
        value = await value
    if say is not None and inspect.isasyncgen(value):
        return await _drained(value, say)
    return value


async def _drained(
    items: AsyncGenerator[Any, Any], say: Callable[[CallProgress | CallOutputDelta], None]
) -> Any:
    """The first item that is neither progress nor a piece; the generator is closed there."""
    async for item in items:
        if isinstance(item, CallProgress | CallOutputDelta):
            say(item)
            continue
        try:
            await items.aclose()
        except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
            log_failure(_log, "a tool failed while it cleaned up after its result")
        return item
    raise NoResult


async def _contained(work: Awaitable[Any]) -> Any:
    """What is awaited; a tool that exits, or cancels itself, has failed like any other."""
    try:
        return await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise carried(exc) from exc
    except (SystemExit, GeneratorExit, BaseExceptionGroup) as exc:
        raise carried(exc) from exc


class OrphanedTasks:
    """Tasks that did not end when they were cancelled: kept in sight until they do.

    Args:
        grace_s: Seconds that a cancelled task has for its clean-up.
    """

    def __init__(self, *, grace_s: float) -> None:
        self._grace_s = grace_s
        self._tasks: dict[asyncio.Task[Any], str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What still runs although it was given up, oldest first."""
        return tuple(self._tasks.values())

    async def end(self, tasks: Mapping[asyncio.Task[Any], str]) -> None:
        """Cancels tasks and waits for their clean-up, but no longer than the grace.

        Args:
            tasks: Each with the name of what it runs.
        """
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait(tasks, timeout=self._grace_s)
        finally:
            for task, name in tasks.items():
                self.watch(task, name)

    def watch(self, task: asyncio.Task[Any], name: str) -> None:
        """Keeps a task that was cancelled in sight, where it has not ended."""
        if task.done():
            _retrieved(task)
            return
        if task in self._tasks:
            return
        _log.error("tool %r ignores that it was cancelled, and still runs", name)
        self._tasks[task] = name
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        _log.warning("tool %r, which had been given up, has ended", self._tasks.pop(task))
        _retrieved(task)


def _retrieved(task: asyncio.Task[Any]) -> None:
    """Takes the exception nobody will ask for, so that asyncio does not report it as lost."""
    if not task.cancelled():
        task.exception()
