"""An executor of Python functions, sync and async, with one task for each call."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from tool_search.catalog.functions import FunctionArguments, context_parameter
from tool_search.core.messages import ToolCall
from tool_search.core.values.redaction import log_failure
from tool_search.errors import DuplicateToolError
from tool_search.runner.execution.context import (
    CallChannel,
    Cancellation,
    ToolContext,
    permits_rule,
)
from tool_search.runner.execution.functions import (
    ExecutableTool,
)
from tool_search.runner.execution.results import (
    CallOutputDelta,
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    as_result,
    describe_exception,
    failure_result,
)
from tool_search.runner.execution.tasks import (
    CallClock,
    NoResult,
    OrphanedTasks,
    call_function,
    is_async,
)

__all__ = ["FunctionExecutor"]

_PLAIN = (str, int, float, bool)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A tool with the facts that all its calls share."""

    item: ExecutableTool
    reader: _Reader | None
    context_parameter: str | None
    timeout_s: float
    is_async: bool


class _Reader:
    """Converts arguments to the types of a function's annotations."""

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
        """Return the given arguments by the names of the function's parameters.

        Raises:
            ValueError: An argument does not fit; the message names it.
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
        """Return True if all arguments have their exact types already and none is missing."""
        plain = self._plain
        for name, value in given.items():
            if plain.get(name) is not type(value):
                return False
        return self._required <= given.keys()


class FunctionExecutor:
    """Runs Python functions: sync, async, and generators.

    A sync function runs in one of the process's 64 tool threads; more calls wait. A call
    that takes too long is cancelled, and given up if it has not ended after `grace_s`. A
    thread cannot be ended, but does not keep the process alive. An async function that
    ignores its cancellation is logged and listed in `runaways`.

    Args:
        tools: The tools to run.
        timeout_s: Seconds that a call may take, unless its tool says otherwise.
        grace_s: Seconds that a cancelled call has for its clean-up.

    Raises:
        DuplicateToolError: Two tools have the same name.
    """

    def __init__(
        self, tools: Iterable[ExecutableTool], *, timeout_s: float = 60.0, grace_s: float = 2.0
    ) -> None:
        self._grace_s = grace_s
        self._orphans = OrphanedTasks(grace_s=grace_s)
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
        """The tools that ignored their cancellation and still run, oldest first."""
        return self._orphans.names

    def find(self, name: str) -> ExecutableTool | None:
        """Return the tool of a canonical name, or None."""
        prepared = self._tools.get(name)
        return prepared.item if prepared else None

    async def forget(self, conversation: str) -> None:
        """Drop the state that tools keep for a conversation."""
        for prepared in self._tools.values():
            if prepared.item.forget is not None:
                await prepared.item.forget(conversation)

    async def aclose(self) -> None:
        """Close every tool; log those that fail."""
        for name, prepared in self._tools.items():
            if prepared.item.close is not None:
                try:
                    await prepared.item.close()
                except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
                    log_failure(_log, "tool %r failed while it was closed", name)

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Run one call; yield its events, the result last."""
        queue = _EventQueue(context.channel)
        arguments = call.parsed_arguments() or {}
        clock = CallClock(queue.give_up, self._grace_s)
        queue.clock = clock
        task = asyncio.create_task(self.run_here(call, arguments, context, queue, clock))
        try:
            async for event in queue.until_done(task):
                yield event
        finally:
            if queue.is_given_up:
                self._orphans.watch(task, call.name)
            elif not task.done():
                await self._orphans.end({task: call.name})
        yield task.result() if task.done() else _timeout_result(call.name, context, clock)

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Run one call in the current task, which should have no other work.

        Args:
            call: The call.
            arguments: The parsed arguments.
            context: The context of the call.
            channel: The channel of the tool.
            clock: Ends the call after its time, and reports a tool that ignores that.
        """
        prepared = self._tools.get(call.name)
        if prepared is None:
            return failure_result("failed", "call.tool_gone", context.language, name=call.name)
        item = prepared.item
        stop = Cancellation(context.cancellation)
        try:
            given = dict(arguments) if prepared.reader is None else prepared.reader.read(arguments)
            if prepared.context_parameter is not None:
                given[prepared.context_parameter] = replace(
                    context, channel=channel, cancellation=stop, tool=call.name, call_id=call.id
                )
            work = call_function(
                item.function, given, asynchronous=prepared.is_async, say=channel.say
            )
            value = await clock.run_within(work, prepared.timeout_s)
            if item.render is None or isinstance(value, ExecutionResult):
                return as_result(value, language=context.language)
            return as_result(item.render(value), value, language=context.language)
        except asyncio.CancelledError:
            stop.cancel()
            raise
        except NoResult:
            return failure_result("failed", "call.no_result", context.language, name=call.name)
        except Exception as exc:  # noqa: BLE001  # a tool may raise anything; the model reads it
            if clock.is_over:
                stop.cancel()
                return _timeout_result(call.name, context, clock)
            return _failed_result(call.name, exc, context)


def _timeout_result(name: str, context: ToolContext, clock: CallClock) -> ExecutionResult:
    seconds = f"{clock.seconds:g}"
    return failure_result(
        "timed_out", "call.timed_out", context.language, name=name, seconds=seconds
    )


def _failed_result(name: str, exc: BaseException, context: ToolContext) -> ExecutionResult:
    cause = describe_exception(exc)
    _log.warning("tool %r failed: %s", name, cause)
    result = failure_result("failed", "call.failed", context.language, name=name, cause=cause)
    return replace(result, error=exc)


class _EventQueue:
    """The events of one running call, in order.

    Args:
        outer: The channel for questions and for calls of other tools.
    """

    def __init__(self, outer: CallChannel) -> None:
        self._outer = outer
        self._loop = asyncio.get_running_loop()
        self._events: deque[CallProgress | CallOutputDelta] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self.clock: CallClock | None = None
        self.is_given_up = False

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Queue an event; from any thread."""
        self._events.append(event)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    async def ask(self, question: str) -> bool:
        """Ask the user while the clock is paused."""
        if self.clock is None:
            return await self._outer.ask(question)
        with self.clock.paused():
            return await self._outer.ask(question)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Call another tool."""
        return await self._outer.call(name, arguments)

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Ask the rules about another tool."""
        return self._outer.allows(name, arguments)

    def has_permission(self, rule: str) -> bool:
        """Ask the rules about a call that a rule describes."""
        return permits_rule(self._outer, rule)

    def give_up(self, seconds: float) -> None:  # noqa: ARG002  # the clock knows them
        """Stop waiting for a tool that ignores that its time is over."""
        self.is_given_up = True
        self._wake()

    async def until_done(self, task: asyncio.Task[Any]) -> AsyncGenerator[ExecutionEvent, None]:
        """Yield events until the task is done or given up."""
        task.add_done_callback(self._wake)
        while True:
            while self._events:
                yield self._events.popleft()
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
