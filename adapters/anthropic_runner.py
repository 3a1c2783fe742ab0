"""Tool search for the anthropic SDK's tool runner.

::

    tools = searchable(FUNCTIONS)
    runner = client.beta.messages.tool_runner(model=..., messages=..., tools=tools)

Each request declares the whole catalog with `defer_loading`, in the same bytes; the search tool
answers with `tool_reference` blocks. The runner keeps the messages and runs the tools.

anthropic 0.73 or later. Source: the SDK's `lib/tools` (`BetaBuiltinFunctionTool`, the class for
tools that write their own definition); Anthropic, "Tool search tool", "Custom tool search
implementation".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Protocol, cast

try:
    from anthropic.lib import tools as sdk
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaAsyncFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionTool,
        BetaFunctionToolResultType,
    )
    from anthropic.types.beta import BetaToolParam
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.anthropic_runner needs anthropic 0.73 or later: "
        "pip install 'tool-search-middleware[anthropic]'; in a clone: pip install '.[anthropic]'"
    ) from exc

from tool_search.adapters.anthropic.wire import encode_result
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.catalog.schema.declared import declared_schema, text_bytes
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import RunCall
from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.values.aside import LoopThread
from tool_search.core.values.json import shown
from tool_search.errors import ConfigurationError, InvalidToolError
from tool_search.providers.known import CLAUDE_MAX_DEFERRED, CLAUDE_MAX_TOOL_BYTES
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.execution.results import as_text

__all__ = ["SearchableTools", "searchable"]

# The model is not known yet; every model with tool search has the same limits and names.
_CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
_ASYNC_TOOLS = (BetaAsyncBuiltinFunctionTool, BetaAsyncFunctionTool)
_SYNC_TOOLS = (BetaBuiltinFunctionTool, BetaFunctionTool)
# `BetaToolResultBlockParam.content`.
_BLOCKS = frozenset(
    ("text", "image", "document", "search_result", "tool_reference", "browser_state")
)


class SearchableTools(list[Any]):
    """The tools of one conversation, for the runner's `tools`.

    Attributes:
        view: The view of the conversation: `append_instructions(prompt, tools.view)` is a
            system prompt that says how to search.
        search: The `ToolSearch`, which other conversations may share.
    """

    def __init__(self, tools: Iterable[Any], view: ToolView, search: ToolSearch) -> None:
        super().__init__(tools)
        self.view = view
        self.search = search


def searchable(
    functions: Iterable[Any],
    config: ToolSearchConfig | None = None,
    *,
    search: ToolSearch | None = None,
    asynchronous: bool = False,
) -> SearchableTools:
    """Return tools for `client.beta.messages.tool_runner(..., tools=...)`, for one conversation.

    Up to `threshold` tools are declared as they are. Tools that the service runs itself, and
    those without an `input_schema`, stay as they are, at the end. A function's value that is
    neither text nor content blocks is sent as JSON.

    Args:
        functions: Functions, `@beta_tool`s, and anything else that the runner takes.
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several conversations share, instead of `config`.
        asynchronous: True for the runner of an `AsyncAnthropic`; functions without `async` then
            run in threads. Otherwise functions with `async` run in an event loop in a thread.

    Raises:
        ConfigurationError: The settings cannot be used, or the service takes fewer tools.
        InvalidToolError: A callable has no name.
        SessionError: A tool has the search tool's name.
    """
    search = search or ToolSearch((), config)
    runnable, others = _divide(functions)
    view = search.view(tools=[tool.to_dict() for tool in runnable])
    _check_limits(view)
    # Of two tools of one name the first counts, as in the view.
    own = {tool.name: tool for tool in reversed(runnable)}
    made: list[Any] = []
    loop = LoopThread()
    for entry in view.tools(_CLAUDE):
        name = entry.tool.name
        if name == view.search_tool_name:
            definition = _definition(entry.tool)
            made.append(
                _AsyncSearch(definition, view) if asynchronous else _Search(definition, view)
            )
        else:
            inner = own[entry.tool.source[1]]
            definition = _declare(inner, name, deferred=entry.deferred)
            calls = _Calls(name, view, search, loop)
            made.append((_AsyncTool if asynchronous else _Tool)(definition, inner, calls))
    return SearchableTools([*made, *others], view, search)


def _divide(functions: Iterable[Any]) -> tuple[list[_Runnable], list[Any]]:
    """Return the tools that can be searched, and what the runner takes besides."""
    runnable: list[_Runnable] = []
    others: list[Any] = []
    for item in functions:
        tool = _as_runnable(item)
        if tool is not None and "input_schema" in tool.to_dict():
            runnable.append(tool)
        else:
            others.append(item)
    return runnable, others


def _as_runnable(item: Any) -> _Runnable | None:
    """Return a tool of the SDK; None for what is not a function, such as a definition.

    Raises:
        InvalidToolError: A callable has no name.
    """
    is_tool = isinstance(item, _SYNC_TOOLS + _ASYNC_TOOLS)
    if not is_tool and (isinstance(item, Mapping) or not callable(item)):
        return None
    if is_tool:
        return cast("_Runnable", item)
    if not hasattr(item, "__name__"):
        raise InvalidToolError(
            f"{shown(item)} has no name: give beta_tool(..., name=...) of the anthropic SDK"
        )
    return _AsyncFunction(item) if iscoroutinefunction(item) else _Function(item)


def _check_limits(view: ToolView) -> None:
    catalog = view.catalog
    if view.search_tool is None:
        return
    for what, size, most in (
        ("deferred tools", len(catalog.deferred), CLAUDE_MAX_DEFERRED),
        ("bytes of tool text", text_bytes(catalog), CLAUDE_MAX_TOOL_BYTES),
    ):
        if size > most:
            raise ConfigurationError(
                f"{size:,} {what} are more than the {most:,} of a request; give searchable() "
                "fewer tools, and the others to the runner's add_tools() when they are needed"
            )


def _definition(tool: Tool) -> BetaToolParam:
    return {
        "name": wire_name(tool.name, _CLAUDE.name_rule),
        "description": tool.description,
        "input_schema": dict(declared_schema(tool).schema),
    }


def _declare(inner: _Runnable, name: str, *, deferred: bool) -> BetaToolParam:
    """Return the SDK's definition, deferred or not."""
    definition = {**inner.to_dict(), "name": wire_name(name, _CLAUDE.name_rule)}
    definition.pop("defer_loading", None)
    if deferred:
        definition["defer_loading"] = True
        # The service refuses a deferred tool with a mark of the prompt cache.
        definition.pop("cache_control", None)
    return cast("BetaToolParam", definition)


class _Runnable(Protocol):
    """The part of the SDK's tools that is used here."""

    @property
    def name(self) -> str: ...

    def to_dict(self) -> Any: ...

    def call(self, input: object) -> Any: ...  # noqa: A002  # the SDK's name


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one tool: checked before, and learned from after."""

    name: str
    view: ToolView
    search: ToolSearch
    loop: LoopThread

    def check(self, arguments: object) -> None:
        given = arguments if isinstance(arguments, Mapping) else {}
        decision = self.view.check(self.name, given)
        if not isinstance(decision, RunCall):
            raise _REFUSED(decision.content)

    def failed(self) -> None:
        self.view.returned(self.name, failed=True)

    def succeeded(self) -> None:
        self.view.returned(self.name)


async def _result(value: Awaitable[Any]) -> Any:
    return await value


class _Function(BetaFunctionTool[Any]):
    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002
        return _content(super().call(input))


class _AsyncFunction(BetaAsyncFunctionTool[Any]):
    async def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002
        return _content(await super().call(input))


class _Tool(BetaBuiltinFunctionTool):
    def __init__(self, definition: BetaToolParam, inner: _Runnable, calls: _Calls) -> None:
        self._definition = definition
        self._inner = inner
        self._calls = calls

    def to_dict(self) -> BetaToolParam:
        return self._definition.copy()

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002  # the SDK's name
        self._calls.check(input)
        try:
            value = self._inner.call(input)
            if isawaitable(value):
                value = self._calls.loop.submit(_result(value)).result()
        except Exception:
            self._calls.failed()
            raise
        self._calls.succeeded()
        self._calls.search.learn_now(self._calls.view)
        return cast("BetaFunctionToolResultType", value)


class _AsyncTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, definition: BetaToolParam, inner: _Runnable, calls: _Calls) -> None:
        self._definition = definition
        self._inner = inner
        self._calls = calls

    def to_dict(self) -> BetaToolParam:
        return self._definition.copy()

    async def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002
        self._calls.check(input)
        value: Any
        try:
            if isinstance(self._inner, _ASYNC_TOOLS):
                value = await self._inner.call(input)
            else:
                value = await asyncio.to_thread(self._inner.call, input)
        except Exception:
            self._calls.failed()
            raise
        self._calls.succeeded()
        await self._calls.search.learn(self._calls.view)
        return cast("BetaFunctionToolResultType", value)


class _Search(BetaBuiltinFunctionTool):
    def __init__(self, definition: BetaToolParam, view: ToolView) -> None:
        self._definition = definition
        self._view = view

    def to_dict(self) -> BetaToolParam:
        return self._definition.copy()

    def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002
        return _references(self._view.search(cast("dict[str, Any]", input)), self._view)


class _AsyncSearch(BetaAsyncBuiltinFunctionTool):
    def __init__(self, definition: BetaToolParam, view: ToolView) -> None:
        self._definition = definition
        self._view = view

    def to_dict(self) -> BetaToolParam:
        return self._definition.copy()

    async def call(self, input: object) -> BetaFunctionToolResultType:  # noqa: A002
        return _references(await self._view.asearch(cast("dict[str, Any]", input)), self._view)


def _references(result: SearchResult, view: ToolView) -> BetaFunctionToolResultType:
    declared = view.tools(_CLAUDE)
    if result.error is not None and not any(entry.deferred for entry in declared):
        # The engine has failed, and the view declares every tool, which the runner cannot.
        found = (name for name in declared.names if name != view.search_tool_name)
        result = replace(
            result, error=None, matches=tuple(SearchMatch(name=name) for name in found)
        )
    return cast("BetaFunctionToolResultType", encode_result(result, _CLAUDE))


def _content(value: Any) -> BetaFunctionToolResultType:
    """Return a function's value as the service takes it: content blocks stay as they are."""
    is_blocks = isinstance(value, list | tuple) and value and all(map(_is_block, value))
    return cast("BetaFunctionToolResultType", value) if is_blocks else as_text(value)


def _is_block(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") in _BLOCKS


class _Refused(Exception):  # noqa: N818  # never caught: its text is a result
    """A call that was not run; the runner of early versions sends `repr` of an exception."""

    def __repr__(self) -> str:
        return str(self)


# A tool's own error has its text as the result; anthropic 0.73 has no such class.
_REFUSED: type[Exception] = getattr(sdk, "ToolError", _Refused)
