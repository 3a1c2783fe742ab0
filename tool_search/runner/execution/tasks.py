"""Tasks and threads of tools, with timeouts that hold for any code."""

from __future__ import annotations

import asyncio
import inspect
import logging
import types
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from tool_search.core.values.aside import Threads, as_task_exception
from tool_search.core.values.redaction import log_failure
from tool_search.runner.execution.results import CallOutputDelta, CallProgress

__all__ = [
    "MAX_TOOL_THREADS",
    "CallClock",
    "NoResult",
    "OrphanedTasks",
    "call_function",
    "call_maybe_async",
    "is_async",
    "run_in_thread",
]


# Sync functions run in a bounded number of daemon threads for the whole process. Threads of
# `concurrent.futures` are not daemons: one that hangs would keep the process alive. A function
# that was given up cannot be ended, so its thread no longer counts: hanging functions do not
# stop others, up to four times the bound.
MAX_TOOL_THREADS = 64
"""The number of sync functions that run at the same time; more wait in order."""

_shared = Threads(MAX_TOOL_THREADS)


def run_in_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    """Run work in one of the process's tool threads."""
    return _shared.run(work)


_ValueT = TypeVar("_ValueT")
_log = logging.getLogger(__name__)


class NoResult(Exception):  # noqa: N818  # never reaches a caller
    """A generator ended without a result."""


class CallClock:
    """A timeout of a call that can be paused.

    It cancels its block when the time is over. Questions to the user pause it and the clocks
    of outer calls.

    Args:
        overdue: Called with the timeout if the block has not ended after its cancellation
            and the grace period.
        grace_s: Seconds that the block has for its clean-up.
        outer: The clock of the outer call.
    """

    seconds = 0.0
    is_over = False
    _alarm: asyncio.TimerHandle | None = None  # None while it is paused
    _is_entered = False
    _pauses = 0

    def __init__(
        self, overdue: Callable[[float], None], grace_s: float, outer: CallClock | None = None
    ) -> None:
        self._overdue = overdue
        self._grace_s = grace_s
        self._outer = outer

    def within(self, seconds: float) -> Self:
        """Return the clock as a context manager with this timeout.

        Raises:
            TimeoutError: The time was over before the end of the block.
        """
        self.seconds = seconds
        return self

    @types.coroutine
    def run_within(
        self, work: Coroutine[Any, Any, _ValueT], seconds: float
    ) -> Generator[Any, Any, _ValueT]:
        """Return the work's result within a timeout.

        Raises:
            TimeoutError: The time was over before the end of the work.
        """
        # The first step runs without a timer: most tools never wait, and need none.
        self.seconds = seconds
        try:
            waited_for = work.send(None)
            with self:
                while True:
                    try:
                        sent = yield waited_for
                    except BaseException as exc:  # noqa: BLE001  # passed on to the work
                        waited_for = work.throw(exc)
                    else:
                        waited_for = work.send(sent)
        except StopIteration as over:
            value: _ValueT = over.value
            return value

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0
        self._remaining_s = self.seconds
        self._is_entered = True
        self._start_alarm()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_entered = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        # As in `asyncio.timeout`: a cancellation by other code is passed on.
        if self.is_over and self._task is not None:
            alone = self._task.uncancel() <= self._before
            if alone and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause this clock and the outer clocks for a block."""
        with nullcontext() if self._outer is None else self._outer.paused():
            self._pauses += 1
            if self._alarm is not None and not self.is_over:
                self._remaining_s = self._alarm.when() - asyncio.get_running_loop().time()
                self._alarm.cancel()
                self._alarm = None
            try:
                yield
            finally:
                self._pauses -= 1
                self._start_alarm()

    def _start_alarm(self) -> None:
        if self._is_entered and not self._pauses and not self.is_over:
            self._alarm = asyncio.get_running_loop().call_later(self._remaining_s, self._time_out)

    def _time_out(self) -> None:
        self.is_over = True
        if self._task is not None:
            self._task.cancel()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(self._grace_s, self._overdue, self.seconds)


def call_function(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    asynchronous: bool | None = None,
    say: Callable[[CallProgress | CallOutputDelta], None] | None = None,
) -> Coroutine[Any, Any, Any]:
    """Return the result of a function, awaited if necessary.

    A sync function runs in one of the process's 64 tool threads. `SystemExit` and the like
    become exceptions that a task can hold: a tool that exits has failed.

    Args:
        function: The function to call.
        arguments: The arguments by name.
        asynchronous: True for an async function; None: find out.
        say: Receives the events that a generator yields before its result; None: the
            generator itself is the result.

    Raises:
        NoResult: A generator yielded no result.
    """
    at_once = is_async(function) if asynchronous is None else asynchronous
    return _contain_exits(_call(function, arguments, at_once, say))


def call_maybe_async(function: Callable[..., Any], *given: Any) -> Coroutine[Any, Any, Any]:
    """Return the result of a function of the bot's owner, which may be async.

    `SystemExit` and the like become exceptions that a task can hold.
    """
    return _contain_exits(_await_if_needed(function, given))


async def _await_if_needed(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    result = function(*given)
    return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    """Return True for coroutine functions, async generators, and objects with such a call."""
    own_call = getattr(function, "__call__", None)  # noqa: B004  # an object's async call is meant
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, own_call)
    )


async def _call(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    at_once: bool,
    say: Callable[[CallProgress | CallOutputDelta], None] | None,
) -> Any:
    value = (
        function(**arguments) if at_once else await run_in_thread(partial(function, **arguments))
    )
    if inspect.isawaitable(value):
        value = await value
    if say is not None and inspect.isasyncgen(value):
        return await _first_result(value, say)
    return value


async def _first_result(
    items: AsyncGenerator[Any, Any], say: Callable[[CallProgress | CallOutputDelta], None]
) -> Any:
    """Return the first item that is not an event, and close the generator."""
    async for item in items:
        if isinstance(item, CallProgress | CallOutputDelta):
            say(item)
            continue
        try:
            await items.aclose()
        except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
            log_failure(_log, "a tool failed in its clean-up after its result")
        return item
    raise NoResult


async def _contain_exits(work: Awaitable[Any]) -> Any:
    """Await work; an exit or a cancellation by the tool itself becomes a failure."""
    try:
        return await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise as_task_exception(exc) from exc
    except (SystemExit, GeneratorExit, BaseExceptionGroup) as exc:
        raise as_task_exception(exc) from exc


class OrphanedTasks:
    """Tasks that ignored their cancellation; watched until they end.

    Args:
        grace_s: Seconds that a cancelled task has for its clean-up.
    """

    def __init__(self, *, grace_s: float) -> None:
        self._grace_s = grace_s
        self._tasks: dict[asyncio.Task[Any], str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of tasks that still run, oldest first."""
        return tuple(self._tasks.values())

    async def end(self, tasks: Mapping[asyncio.Task[Any], str]) -> None:
        """Cancel tasks, and wait up to the grace period for their clean-up.

        Args:
            tasks: The tasks with the names of their tools.
        """
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait(tasks, timeout=self._grace_s)
        except asyncio.CancelledError:
            # anyio cancels again and again until its scope is left; the tasks keep their time.
            asyncio.get_running_loop().call_later(self._grace_s, self._watch_all, dict(tasks))
            raise
        self._watch_all(tasks)

    def _watch_all(self, tasks: Mapping[asyncio.Task[Any], str]) -> None:
        for task, name in tasks.items():
            self.watch(task, name)

    def watch(self, task: asyncio.Task[Any], name: str) -> None:
        """Watch a cancelled task that has not ended."""
        if task.done():
            _retrieve_exception(task)
            return
        if task in self._tasks:
            return
        _log.error("tool %r ignores its cancellation and still runs", name)
        self._tasks[task] = name
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        _log.warning("tool %r ended after it was given up", self._tasks.pop(task))
        _retrieve_exception(task)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()
