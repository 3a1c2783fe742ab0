"""Python functions as tools: the definition from the signature, and the execution."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import to_jsonable_python

from tool_search.catalog import Tool
from tool_search.errors import DuplicateToolError, InvalidToolError
from tool_search.execution.base import ExecutionEvent, ExecutionResult, ToolContext
from tool_search.i18n import text
from tool_search.messages import ToolCall
from tool_search.schema import compact_json

__all__ = ["ExecutableTool", "FunctionExecutor", "executable_tools", "tool_from_function"]

ToolFunction = Callable[..., Any]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutableTool:
    """A definition, and what runs it.

    Attributes:
        tool: The definition.
        function: Sync or async; takes the arguments by keyword. A parameter
            annotated `ToolContext` gets the context and is in no schema.
        arguments: Reads arguments into Python types, where the function's own
            annotations ask for more than JSON.
    """

    tool: Tool
    function: ToolFunction
    arguments: type[BaseModel] | None = None


def tool_from_function(function: ToolFunction, **definition: Any) -> ExecutableTool:
    """The tool a function is: its name, docstring and annotated parameters.

    Args:
        function: Sync or async. The docstring's text before its sections is the
            description; Google, numpy and reST parameter sections are read.
        definition: Fields of `Tool` that say otherwise, such as `name` or `tags`.

    Raises:
        InvalidToolError: A parameter cannot be described as JSON, or has no name
            to be called by.

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> tool_from_function(add).tool.parameters["required"]
    ['a']
    """
    name = definition.pop("name", getattr(function, "__name__", ""))
    documented = docstring_parser.parse(inspect.getdoc(function) or "")
    described = {item.arg_name: item.description or "" for item in documented.params}
    about = [documented.short_description, documented.long_description]
    arguments = _arguments_model(name, function, described)
    schema = _without_titles(arguments.model_json_schema())
    tool = Tool(
        **{
            "name": name,
            "description": "\n\n".join(part for part in about if part),
            "parameters": schema if schema.get("properties") else {},
            **definition,
        }
    )
    return ExecutableTool(tool=tool, function=function, arguments=arguments)


def executable_tools(tools: Iterable[ExecutableTool | ToolFunction]) -> tuple[ExecutableTool, ...]:
    """Tools and plain functions, all as tools.

    Raises:
        InvalidToolError: Something is neither, or cannot be described.
    """
    made = []
    for item in tools:
        if isinstance(item, ExecutableTool):
            made.append(item)
        elif callable(item):
            made.append(tool_from_function(item))
        else:
            raise InvalidToolError(f"a tool must be a function or an ExecutableTool, not {item!r}")
    return tuple(made)


class FunctionExecutor:
    """Runs Python functions.

    A function that is not async runs in a thread of its own; one that never returns
    is given up after the time-out, and its thread does not keep the process alive.

    Args:
        tools: What it can run.
        timeout_s: Seconds a call may take.

    Raises:
        DuplicateToolError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[ExecutableTool], *, timeout_s: float = 60.0) -> None:
        self._timeout_s = timeout_s
        self._tools: dict[str, ExecutableTool] = {}
        for item in tools:
            if item.tool.name in self._tools:
                raise DuplicateToolError(f"two tools have the same name: {item.tool.name!r}")
            self._tools[item.tool.name] = item

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Runs one call; yields its one result."""
        yield await self._result(call, context)

    async def _result(self, call: ToolCall, context: ToolContext) -> ExecutionResult:
        item = self._tools.get(call.name)
        say = partial(text, language=context.language, name=call.name)
        if item is None:
            return ExecutionResult(content=say("call.tool_gone"), is_error=True)
        try:
            arguments = _python_arguments(item, call.parsed_arguments() or {}, context)
            async with asyncio.timeout(self._timeout_s) as clock:
                value = await _called(item.function, arguments)
            return ExecutionResult(content=_as_text(value))
        except TimeoutError as exc:
            if clock.expired():
                seconds = f"{self._timeout_s:g}"
                return ExecutionResult(
                    content=say("call.timed_out", seconds=seconds), is_error=True
                )
            return _failure(call, exc, say)
        except Exception as exc:  # noqa: BLE001  # a tool may raise anything; the model is told
            return _failure(call, exc, say)


def _failure(call: ToolCall, exc: Exception, say: Callable[..., str]) -> ExecutionResult:
    _log.warning("tool %r failed: %s: %s", call.name, type(exc).__name__, exc)
    cause = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    return ExecutionResult(content=say("call.failed", cause=cause), is_error=True)


def _python_arguments(
    item: ExecutableTool, given: Mapping[str, Any], context: ToolContext
) -> dict[str, Any]:
    arguments = dict(given)
    if item.arguments is not None:
        try:
            read = item.arguments.model_validate(arguments)
        except ValidationError as exc:
            problems = "; ".join(
                f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()
            )
            raise ValueError(problems) from exc
        known = type(read).model_fields
        arguments = {known[key].alias or key: getattr(read, key) for key in read.model_fields_set}
    place = _context_parameter(item.function)
    return {**arguments, place: context} if place else arguments


async def _called(function: ToolFunction, arguments: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object's async call is meant
    ):
        return await _contained(function(**arguments))
    value = await _in_thread(partial(function, **arguments))
    return await _contained(value) if inspect.isawaitable(value) else value


async def _contained(work: Awaitable[Any]) -> Any:
    """What is awaited; a tool that exits, or cancels itself, has failed like any other."""
    try:
        return await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _carried(exc) from exc
    except (SystemExit, GeneratorExit, BaseExceptionGroup) as exc:
        raise _carried(exc) from exc


def _in_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    """Runs work in a daemon thread: one that hangs must not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(setter: str, value: object) -> None:
        if not future.done():
            getattr(future, setter)(value)

    def run() -> None:
        try:
            outcome = ("set_result", context.run(work))
        except BaseException as exc:  # noqa: BLE001  # handed over to the awaiting task
            outcome = ("set_exception", _carried(exc))
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True, name="tool").start()
    return future


def _carried(exc: BaseException) -> BaseException:
    """An exception that a future takes: it refuses `StopIteration`, and exits are no results."""
    if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
        return exc
    return RuntimeError(f"{type(exc).__name__}: {exc}")


def _as_text(value: object) -> str:
    """A result as the model reads it: text as it is, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return compact_json(to_jsonable_python(value, fallback=str))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _context_parameter(function: ToolFunction) -> str | None:
    return next((name for name, kind in _hints(function).items() if _is_context(kind)), None)


def _is_context(kind: object) -> bool:
    """Whether an annotation is `ToolContext`, optional or not."""
    return kind is ToolContext or ToolContext in get_args(kind)


def _hints(function: ToolFunction) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as exc:
        raise InvalidToolError(
            f"tool {getattr(function, '__name__', function)!r}: an annotation cannot be "
            f"resolved ({exc}); import its type at run time"
        ) from exc


def _arguments_model(
    name: str, function: ToolFunction, described: Mapping[str, str]
) -> type[BaseModel]:
    hints = _hints(function)
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(_signature(name, function).parameters.values()):
        kind = hints.get(parameter.name, Any)
        if _is_context(kind):
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidToolError(
                f"tool {name!r}: parameter {parameter} cannot be given by name; "
                "use named parameters"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        described_as = described.get(parameter.name)
        # Under an alias, because a model reserves field names such as `json` and `schema`.
        field = Field(default=default, alias=parameter.name, description=described_as)
        fields[f"argument_{index}"] = (kind, field)
    try:
        model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        model.model_json_schema()
    except Exception as exc:
        raise InvalidToolError(
            f"tool {name!r}: its parameters cannot be described as JSON: {exc}"
        ) from exc
    return model


def _signature(name: str, function: ToolFunction) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(f"tool {name!r}: its parameters cannot be read: {exc}") from exc


def _without_titles(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of names: they say nothing new."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k != "title" or isinstance(v, dict)}
    return {
        key: {k: _without_titles(v) for k, v in value.items()}
        if key in ("properties", "$defs") and isinstance(value, dict)
        else value
        if key in ("default", "const", "enum", "examples")
        else _without_titles(value)
        for key, value in kept.items()
    }
