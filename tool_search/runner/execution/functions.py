"""Python functions as tools: definitions from signatures, and their executor."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from tool_search.catalog.functions import (
    FunctionArguments,
    context_parameter,
    described_function,
)
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.core.values.redaction import log_failure
from tool_search.errors import DuplicateToolError, InvalidToolError
from tool_search.runner.execution.context import (
    CallChannel,
    Cancellation,
    ToolContext,
    permits_rule,
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

__all__ = [
    "ExecutableTool",
    "FunctionExecutor",
    "ToolFunction",
    "executable_tools",
    "listed_tools",
    "named_tools",
    "received_arguments",
    "stateful_tool",
    "tool_from_function",
]

ToolFunction = Callable[..., Any]
Arguments = Mapping[str, Any]
Complaint = str | Awaitable[str | None] | None
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutableTool:
    """A tool with its function and the facts that only its author knows.

    Functions of arguments get them as the model gave them, after the check against the
    schema. If the author says nothing, `Tool.annotations` count.

    Attributes:
        tool: The definition.
        function: Sync or async; takes the arguments by keyword. A parameter annotated
            `ToolContext` gets the context and is not in the schema. An async generator
            yields `CallProgress` and `CallOutputDelta`; its first other item is the result,
            and the generator is closed there.
        arguments: A model that converts arguments to the function's own types.
        validate_input: Returns a problem with arguments that fit the schema, as the model
            reads it, or None. May be async.
        needs_permission: True if the user is asked unless a rule says otherwise.
        is_read_only: Returns True if a call changes nothing.
        is_concurrency_safe: Returns True if a call may run together with others.
        subjects: Returns the values that `tool(pattern)` rules look at; default: the first
            required argument. A rule that allows must match all of them.
        render: Returns the result as the model reads it: text, or parts of content.
        timeout_s: Seconds that a call may take; default: the executor's.
        close: Cleans up when the bot ends.
        forget: Cleans up when a conversation is forgotten.
    """

    tool: Tool
    function: ToolFunction
    arguments: type[BaseModel] | None = None
    validate_input: Callable[[Arguments, ToolContext], Complaint] | None = None
    needs_permission: bool | Callable[[Arguments], bool] | None = None
    is_read_only: Callable[[Arguments], bool] | None = None
    is_concurrency_safe: Callable[[Arguments], bool] | None = None
    subjects: Callable[[Arguments], Sequence[str]] | None = None
    render: Callable[[Any], Any] | None = None
    timeout_s: float | None = None
    close: Callable[[], Awaitable[None]] | None = None
    forget: Callable[[str], Awaitable[None]] | None = None


_EXECUTION_FIELDS = {field.name for field in fields(ExecutableTool)} - {
    "tool", "function", "arguments",
}  # fmt: skip
_KNOWN_FIELDS = {field.name for field in fields(Tool)} | {"defer_loading"} | _EXECUTION_FIELDS


def tool_from_function(function: ToolFunction, **definition: Any) -> ExecutableTool:
    """Return a function as a tool, with the name, docstring and parameters of the function.

    Args:
        function: Sync or async. The docstring's text before its sections is the
            description; Google, numpy and reST sections describe the parameters.
        definition: Fields of `Tool` to set, such as `name` or `tags`, and fields of
            `ExecutableTool`, such as `timeout_s`.

    Raises:
        InvalidToolError: A parameter cannot be described as JSON or passed by name, or a field
            is unknown.

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> tool_from_function(add).tool.parameters["required"]
    ['a']
    """
    _check_fields(definition.get("name", getattr(function, "__name__", "")), definition)
    more = {key: definition.pop(key) for key in _EXECUTION_FIELDS.intersection(definition)}
    tool, arguments = described_function(function, **definition)
    return ExecutableTool(tool=tool, function=function, arguments=arguments, **more)


def _check_fields(name: str, definition: Arguments) -> None:
    for key in definition:
        if key not in _KNOWN_FIELDS:
            near = get_close_matches(key, _KNOWN_FIELDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidToolError(
                f"tool {name!r}: the field {key!r} is unknown; known: "
                f"{', '.join(sorted(_KNOWN_FIELDS))}{hint}"
            )


def received_arguments(item: ExecutableTool, arguments: Arguments) -> Arguments | None:
    """Return arguments as the tool's function receives them, as JSON: with defaults, coerced.

    None if the tool has no model of its arguments, or they do not fit.
    """
    if item.arguments is None:
        return None
    try:
        read = item.arguments.model_validate(dict(arguments))
        received: dict[str, Any] = read.model_dump(mode="json", by_alias=True, warnings=False)
    except ValueError:  # pydantic's ValidationError is one; the call itself will fail
        return None
    return received


def executable_tools(tools: Iterable[ExecutableTool | ToolFunction]) -> tuple[ExecutableTool, ...]:
    """Return tools and plain functions, all as tools.

    Raises:
        InvalidToolError: An item is neither a tool nor a function, or cannot be described.
    """
    made = []
    for item in listed_tools(tools):
        if isinstance(item, ExecutableTool):
            made.append(item)
        elif callable(item):
            made.append(tool_from_function(item))
        else:
            raise InvalidToolError(
                f"a tool must be a function or an ExecutableTool, not {_describe(item)}"
            )
    return tuple(made)


def listed_tools(tools: Any) -> tuple[Any, ...]:
    """Return what a user gave as tools, one by one.

    Raises:
        InvalidToolError: It is not a list.
    """
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise InvalidToolError(
            f"tools must be a list of functions, not {tools!r}; write tools=[...]"
        )
    return tuple(tools)


def _describe(item: object) -> str:
    if isinstance(item, Tool):
        return (
            f"the definition {item.name!r}, which has no function to run: give the function "
            "itself, or ExecutableTool(tool=..., function=...); a loop that runs its calls "
            "itself gives a ToolCatalog of definitions to ToolSearchSession"
        )
    if isinstance(item, str):
        return f"the text {item!r}: a name runs nothing; give the function itself"
    return repr(item)


def named_tools(
    tools: Iterable[ExecutableTool],
    *,
    names: NameBook | None = None,
    reserved: Iterable[str] = (),
) -> tuple[ToolCatalog, tuple[ExecutableTool, ...]]:
    """Return a catalog of the tools, and the tools under the names of the catalog.

    Args:
        tools: The tools; of a tool that a server listed twice, the first counts.
        names: Names that already belong to tools.
        reserved: More names that no server's tool may have.

    Raises:
        DuplicateToolError: Two tools without a server have the same name.
    """
    items = tuple(tools)
    catalog = ToolCatalog((item.tool for item in items), names=names, reserved=reserved)
    by_source: dict[Source, ExecutableTool] = {}
    for item in items:
        named = catalog.by_source[item.tool.source]
        same = named is item.tool
        by_source.setdefault(item.tool.source, item if same else replace(item, tool=named))
    return catalog, tuple(by_source.values())


def stateful_tool(kind: type[Any], **definition: Any) -> ExecutableTool:
    """Return a tool that keeps one object for each conversation.

    Args:
        kind: A class whose objects are called: `__call__` is sync, async or an async
            generator, and its parameters are the tool's. The first call in a conversation
            makes an object from its context. The object's `aclose` or `close`, if it has
            one, is called when the conversation is forgotten or the bot ends.
        definition: Fields of `Tool` or `ExecutableTool`; the default name is the class's.

    Raises:
        InvalidToolError: A parameter cannot be described as JSON.
    """
    method = vars(kind).get("__call__", kind.__call__)
    described = partial(method, None)
    described.__doc__ = inspect.getdoc(kind)
    made = tool_from_function(described, **{"name": kind.__name__, **definition})
    objects = _ConversationObjects(kind, context_parameter(method))
    own = _EXECUTION_FIELDS - {"close", "forget"}
    return ExecutableTool(
        tool=made.tool,
        function=objects.run,
        arguments=made.arguments,
        **{
            "close": objects.close,
            "forget": objects.forget,
            **{key: definition[key] for key in own.intersection(definition)},
        },
    )


class _ConversationObjects:
    """The objects of one stateful tool, by conversation."""

    def __init__(self, kind: Callable[[ToolContext], Any], context_parameter: str | None) -> None:
        self._kind = kind
        self._context_parameter = context_parameter
        self._objects: dict[str, Any] = {}

    async def run(self, *, tool_context: ToolContext, **arguments: Any) -> Any:
        """Call the conversation's object."""
        found = self._objects.get(tool_context.conversation)
        if found is None:
            found = self._objects[tool_context.conversation] = self._kind(tool_context)
        if self._context_parameter is not None:
            arguments[self._context_parameter] = tool_context
        function = found.__call__
        return await call_function(function, arguments)

    async def forget(self, conversation: str) -> None:
        """Close the conversation's object; log a failure."""
        found = self._objects.pop(conversation, None)
        close = getattr(found, "aclose", None) or getattr(found, "close", None)
        if close is None:
            return
        try:
            await call_function(close, {})
        except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
            log_failure(_log, "%r failed while it was closed", type(found).__name__)

    async def close(self) -> None:
        """Close all objects."""
        for conversation in list(self._objects):
            await self.forget(conversation)


# An executor of Python functions, sync and async, with one task for each call.


_PLAIN = (str, int, float, bool)


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
