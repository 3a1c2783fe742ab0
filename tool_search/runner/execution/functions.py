"""Python functions as tools: definitions from signatures, and facts from their authors."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from pydantic import BaseModel

from tool_search.catalog.functions import (
    context_parameter,
    described_function,
)
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.redaction import log_failure
from tool_search.errors import InvalidToolError
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.tasks import call_function

__all__ = [
    "ExecutableTool",
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
