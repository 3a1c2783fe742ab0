"""Runs Python functions of every kind, each call in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from tool_search.errors import DuplicateToolError
from tool_search.execution.context import CallChannel, Cancellation, ToolContext
from tool_search.execution.functions import (
    ExecutableTool,
    FunctionArguments,
    context_parameter,
)
from tool_search.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    as_result,
    cause_of,
    failure_of,
)
from tool_search.execution.tasks import CallClock, NoResult, OrphanedTasks, called, is_async
from tool_search.messages import ToolCall
from tool_search.values.redaction import log_failure

__all__ = ["FunctionExecutor"]

_PLAIN = (str, int, float, bool)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A tool with what is the same at each of its calls."""

    item: ExecutableTool
    reader: _Reader | None
    context_parameter: str | None
    timeout_s: float
    is_async: bool


class _Reader:
    """Reads arguments into the types that a function's annotations ask for."""

    __slots__ = ("_names", "_plain", "_required", "_validate")

    def __init__(self, model: type[BaseModel]) -> None:
        fields = {field.alias or key: field for key, field in model.model_fields.items()}
        self._names = dict(zip(model.model_fields, fields, strict=True))
        self._validate = model.__pydantic_validator__.validate_python
        self._required = {name for name, field in fields.items() if field.is_required()}
        self._plain = {
            name: field.annotation
            for name, field in fields.items()
            if field.annotation in _PLAIN
            and not field.metadata
            and issubclass(model, FunctionArguments)
        }

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that were given, by the names of the function's parameters.

        Raises:
            ValueError: One does not fit; says which.
        """
        if self._needs_no_reading(given):
            return dict(given)
        try:
            read = self._validate(given)
        except ValidationError as exc:
            problems = "; ".join(
                f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()
            )
            raise ValueError(problems) from exc
        names, values = self._names, read.__dict__
        return {names[key]: values[key] for key in read.__pydantic_fields_set__}

    def _needs_no_reading(self, given: Mapping[str, Any]) -> bool:
        """Whether all that is given has its very type by now, and nothing is missing."""
        plain = self._plain
        for name, value in given.items():
            if plain.get(name) is not type(value):
                return False
        return self._required <= given.keys()


class FunctionExecutor:
    """Runs Python functions: sync, async, and generators.

    A function that is not async runs in a thread, of which a process has 64; more calls
    wait. A call that takes too long is cancelled, has a moment for its clean-up, and is
    then given up: a thread cannot be ended, but does not keep the process alive, and an
    async function that goes on regardless is logged and listed in `runaways`.

    Args:
        tools: What it can run.
        timeout_s: Seconds a call may take.
        grace_s: Seconds a cancelled call has for its clean-up.

    Raises:
        DuplicateToolError: Two tools have the same name.
    """

    def __init__(
        self, tools: Iterable[ExecutableTool], *, timeout_s: float = 60.0, grace_s: float = 2.0
    ) -> None:
        self._grace_s = grace_s
        self._given_up = OrphanedTasks(grace_s=grace_s)
        self._tools: dict[str, _Prepared] = {}
        for item in tools:
            if item.tool.name in self._tools:
                raise DuplicateToolError(f"two tools have the same name: {item.tool.name!r}")
            self._tools[item.tool.name] = _Prepared(
                item,
                None if item.arguments is None else _Reader(item.arguments),
                context_parameter(item.function),
                timeout_s if item.timeout_s is None else item.timeout_s,
                is_async(item.function),
            )

    @property
    def runaways(self) -> tuple[str, ...]:
        """Tools that ignored their cancellation and still run, oldest first."""
        return self._given_up.names

    def find(self, name: str) -> ExecutableTool | None:
        """The tool of a canonical name."""
        known = self._tools.get(name)
        return known.item if known else None

    async def forget(self, conversation: str) -> None:
        """Lets tools clean up what they keep for a conversation."""
        for known in self._tools.values():
            if known.item.forget is not None:
                await known.item.forget(conversation)

    async def aclose(self) -> None:
        """Lets every tool clean up; one that fails is logged, and the rest go on."""
        for name, known in self._tools.items():
            if known.item.close is not None:
                try:
                    await known.item.close()
                except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
                    log_failure(_log, "tool %r failed while it was closed", name)

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Runs one call; yields what it says meanwhile, and its one result."""
        line = _Line(context.channel)
        arguments = call.parsed_arguments() or {}
        clock = CallClock(line.give_up, self._grace_s)
        line.clock = clock
        task = asyncio.create_task(self.run_here(call, arguments, context, line, clock))
        try:
            async for event in line.until_done(task):
                yield event
        finally:
            if line.is_given_up:
                self._given_up.watch(task, call.name)
            elif not task.done():
                await self._given_up.end({task: call.name})
        yield task.result() if task.done() else _late(call.name, context, clock)

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Runs one call in the task that awaits it, which should have no other work.

        Args:
            call: The call.
            arguments: The call's arguments, read.
            context: Where it is called.
            channel: What the tool speaks through.
            clock: Ends it; tells whoever holds the task when the tool ignores that.
        """
        known = self._tools.get(call.name)
        if known is None:
            return failure_of("failed", "call.tool_gone", context.language, name=call.name)
        item = known.item
        stop = Cancellation(context.cancellation)
        try:
            given = dict(arguments) if known.reader is None else known.reader.read(arguments)
            if known.context_parameter is not None:
                given[known.context_parameter] = replace(
                    context, channel=channel, cancellation=stop, tool=call.name, call_id=call.id
                )
            work = called(item.function, given, asynchronous=known.is_async, say=channel.say)
            value = await clock.spent_on(work, known.timeout_s)
            if item.render is None or isinstance(value, ExecutionResult):
                return as_result(value, language=context.language)
            return as_result(item.render(value), value, language=context.language)
        except asyncio.CancelledError:
            stop.cancel()
            raise
        except NoResult:
            return failure_of("failed", "call.no_result", context.language, name=call.name)
        except Exception as exc:  # noqa: BLE001  # a tool may raise anything; the model is told
            if clock.is_over:
                stop.cancel()
                return _late(call.name, context, clock)
            return _failure(call.name, exc, context)


def _late(name: str, context: ToolContext, clock: CallClock) -> ExecutionResult:
    seconds = f"{clock.seconds:g}"
    return failure_of("timed_out", "call.timed_out", context.language, name=name, seconds=seconds)


def _failure(name: str, exc: BaseException, context: ToolContext) -> ExecutionResult:
    cause = cause_of(exc)
    _log.warning("tool %r failed: %s", name, cause)
    told = failure_of("failed", "call.failed", context.language, name=name, cause=cause)
    return replace(told, error=exc)


class _Line:
    """What one running call says, in order.

    Args:
        outer: Answers questions, and calls other tools.
    """

    def __init__(self, outer: CallChannel) -> None:
        self._outer = outer
        self._loop = asyncio.get_running_loop()
        self._said: deque[CallProgress | CallOutputDelta] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self.clock: CallClock | None = None
        self.is_given_up = False

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Passes an event on; from any thread."""
        self._said.append(event)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    async def ask(self, question: str) -> bool:
        """Asks the user; the time he takes is not the tool's."""
        if self.clock is None:
            return await self._outer.ask(question)
        with self.clock.stopped():
            return await self._outer.ask(question)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Calls another tool."""
        return await self._outer.call(name, arguments)

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Ask the rules about another tool."""
        return self._outer.allows(name, arguments)

    def give_up(self, seconds: float) -> None:  # noqa: ARG002  # the clock knows them
        """Stops waiting: the tool ignores that its time is over."""
        self.is_given_up = True
        self._wake()

    async def until_done(self, task: asyncio.Task[Any]) -> AsyncGenerator[ExecutionEvent, None]:
        """What is said until the task is done, or given up."""
        task.add_done_callback(self._wake)
        while True:
            while self._said:
                yield self._said.popleft()
            if task.done() or self.is_given_up:
                return
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _wake(self, _: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
