"""The tool set that AstrBot's agent is given: one object, whose content grows.

AstrBot reads `req.func_tool` anew for every request of a run, so nothing of its agent
needs a change. AstrBot is imported when the first set is made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from tool_search.adapters.anthropic.wire import encode_tools as encode_claude_tools
from tool_search.adapters.astrbot.run import LIMITED, UNLIMITED, AstrBotRun
from tool_search.adapters.astrbot.tools import shown_parameters
from tool_search.adapters.openai_responses.tools import encode_tools as encode_responses_tools
from tool_search.catalog.names import wire_name
from tool_search.catalog.tool import Tool
from tool_search.conversation.calls import RunCall
from tool_search.discovery.search_tool import CALL_TOOL_NAME, call_tool_definition
from tool_search.i18n import text
from tool_search.providers.profiles import ProviderProfile
from tool_search.search.index.protocol import SearchResult

__all__ = ["run_of", "searching_tool_set"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
Answer = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]


def searching_tool_set(run: AstrBotRun) -> Any:
    """The set of one run, to be assigned to `req.func_tool`."""
    return _searching_set_class()(run)


def run_of(tools: Any) -> AstrBotRun | None:
    """The run whose set this is; None for any other set, and for none."""
    run = getattr(tools, "tool_search_run", None)
    return run if isinstance(run, AstrBotRun) else None


class OwnTool:
    """A tool that is answered here, to be joined with AstrBot's class of tools."""

    def __init__(self, definition: Tool, answer: Answer) -> None:
        written: dict[str, Any] = {
            "name": definition.name,
            "description": definition.description,
            "parameters": shown_parameters(definition),
        }
        super().__init__(**written)
        self._answer = answer

    async def call(self, context: Any, **kwargs: Any) -> Any:
        """What the library or, through it, AstrBot makes of a call."""
        return await self._answer(context, kwargs)


class OrderedTools:
    """A set that is written in its own order: AstrBot sorts what OpenAI gets.

    To be joined with AstrBot's class of sets.
    """

    tools: Any
    plain_set: ClassVar[Any]

    def openai_schema(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Each tool as AstrBot writes it."""
        one = self.plain_set([])
        written: list[dict[str, Any]] = []
        for tool in self.tools:
            one.tools = [tool]
            written += one.openai_schema(*args, **kwargs)
        return written


class NativeTools(OrderedTools):
    """A set for a model that is told of tools in its vendor's own way.

    Attributes:
        wire: The list as this library writes it.
        search_tool_name: What a search is called, where the dialect has no name for it.
    """

    wire: list[dict[str, Any]]
    search_tool_name: str

    def anthropic_schema(self) -> list[dict[str, Any]]:
        """For Claude: the whole catalog, deferred tools deferred."""
        return self.wire

    def openai_schema(self, *_args: Any, **_kwargs: Any) -> list[dict[str, Any]]:
        """For OpenAI's Responses, as AstrBot takes it: a `type` within goes before its own."""
        return [{"type": "function", "function": tool} for tool in self.wire]


class SearchingTools:
    """Core, search tool and discoveries of one run, read anew at every request.

    To be joined with AstrBot's class of sets, whose methods it answers.

    Args:
        run: The run.
    """

    own_tool: ClassVar[Any]
    plain_set: ClassVar[Any]
    ordered_set: ClassVar[Any]
    native_set: ClassVar[Any]

    def __init__(self, run: AstrBotRun) -> None:
        super().__init__([])  # type: ignore[call-arg]  # AstrBot's class comes next
        self.tool_search_run = run
        self._failure: Exception | None = None
        self._own = self._own_tools()

    @property
    def tools(self) -> list[Any]:
        """What is declared now; adding to this list adds to the set."""
        declared = self._or_every_tool(
            self.declared, lambda: [*self.tool_search_run.executors.values()]
        )
        return _GrowingList(declared, self.add_tool)

    @tools.setter
    def tools(self, tools: Iterable[Any]) -> None:
        """Takes these for the set; the empty list of AstrBot's own class is passed over."""
        wanted = {tool.name: tool for tool in tools}
        if not wanted:
            return
        for tool in self.tools:
            if tool.name not in wanted:
                self.remove_tool(tool.name)
        for tool in wanted.values():
            if self.get_tool(tool.name) is None:
                self.add_tool(tool)

    def declared(self) -> list[Any]:
        """What is declared now; raises whatever is wrong."""
        return [*self._resolved(self.tool_search_run.declared())]

    def add_tool(self, tool: Any) -> None:
        """Takes in what another plugin adds."""
        if self._own.get(tool.name) is not tool:
            self.tool_search_run.add(tool.name, tool)

    def remove_tool(self, name: str) -> None:
        """Takes away what another plugin removes."""
        self.tool_search_run.remove(name)

    def get_tool(self, name: str) -> Any:
        """What runs a call: AstrBot's own tool, or ours where it must be looked at first."""
        run = self.tool_search_run
        definition = self._or_every_tool(lambda: run.to_be_checked(name), lambda: None)
        if definition is not None:
            return self._checked(definition, name)
        return run.executors.get(name) or (self._own.get(name) if run.is_own(name) else None)

    def for_profile(self, profile: ProviderProfile) -> Any:
        """The set as one provider is told of it."""
        run = self.tool_search_run
        if not profile.is_native:
            return _filled(self.ordered_set, self._resolved(run.declared(profile)))
        tools = run.plan(profile).tools
        declared = {*tools.names, *tools.by_wire_name(profile.name_rule)}
        late = [run.executors[name] for name in run.late if name not in declared]
        native = _filled(self.native_set, [*self._resolved(tools.names), *late])
        native.search_tool_name = run.search_tool_name
        others = _filled(self.plain_set, late)
        if profile.dialect == "anthropic":
            native.wire = json.loads(encode_claude_tools(tools, profile))
            native.wire += others.anthropic_schema()
        else:
            native.wire = json.loads(encode_responses_tools(tools, profile))
            native.wire += [tool["function"] for tool in others.openai_schema()]
        return native

    def openai_schema(self, *args: Any, **kwargs: Any) -> Any:
        """The list within OpenAI's limit."""
        return self._written_for(LIMITED).openai_schema(*args, **kwargs)

    def google_schema(self) -> Any:
        """The list within the same limit."""
        return self._written_for(LIMITED).google_schema()

    def anthropic_schema(self) -> Any:
        """The filtered list, for whoever speaks this dialect and is not Claude."""
        return self._written_for(UNLIMITED).anthropic_schema()

    def get_light_tool_set(self) -> Any:
        """The set itself: `skills_like` would freeze it."""
        return self

    def get_param_only_tool_set(self) -> Any:
        """An empty set, so that `skills_like` asks nothing twice."""
        return self.plain_set([])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """The set itself: a copy would not grow."""
        return self

    def _written_for(self, profile: ProviderProfile) -> Any:
        """The set for a provider, of which AstrBot writes the list."""
        executors = self.tool_search_run.executors
        return self._or_every_tool(
            lambda: self.for_profile(profile),
            lambda: _filled(self.plain_set, executors.values()),
        )

    def _or_every_tool(self, answer: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """An answer of the library's; after its first mistake, of a set of every tool."""
        if self._failure is None:
            try:
                return answer()
            except Exception as exc:  # noqa: BLE001  # a bot's turn must not end by our mistake
                self._failure = exc
                _log.exception("tool search has failed: the bot has its full tool set from here on")
        return otherwise()

    def _own_tools(self) -> dict[str, Any]:
        run = self.tool_search_run
        named = (entry.tool for entry in run.plan(UNLIMITED).tools)
        search_tool = next(tool for tool in named if tool.name == run.search_tool_name)
        return {
            run.search_tool_name: self.own_tool(search_tool, self._search),
            CALL_TOOL_NAME: self._checked(call_tool_definition(run.session.language)),
        }

    def _checked(self, definition: Tool, name: str | None = None) -> Any:
        """A tool whose call is looked at before it runs."""

        async def answer(context: Any, arguments: Mapping[str, Any]) -> Any:
            return await self._call(definition.name, context, arguments)

        return self.own_tool(replace(definition, name=name or definition.name), answer)

    async def _search(self, _context: Any, arguments: Mapping[str, Any]) -> str:
        return self._or_every_tool(
            lambda: self.tool_search_run.search(arguments), lambda: self._unavailable(arguments)
        )

    async def _call(self, name: str, context: Any, arguments: Mapping[str, Any]) -> Any:
        """The result of a call that is looked at before it runs."""
        run = self.tool_search_run
        decision = self._or_every_tool(
            lambda: run.conversation.decide(name, arguments), lambda: None
        )
        if isinstance(decision, RunCall):
            name, arguments = run.name_of(decision.tool), decision.arguments
        elif decision is not None:
            return decision.content
        elif name not in run.executors:
            return self._unavailable(arguments)
        return await _executed(run.executors[name], context, arguments)

    def _unavailable(self, arguments: Mapping[str, Any]) -> str:
        said = text(
            "search.unavailable", self.tool_search_run.session.language, cause=self._failure
        )
        return SearchResult(query=str(arguments.get("query", "")), error=said).to_json()

    def _resolved(self, names: Iterable[str]) -> Iterator[Any]:
        """What is declared under these names, which is not always what a call runs.

        A tool that AstrBot has under another name than the catalog, under a name or with a
        schema that no provider takes, or with texts that were cleaned or cut, is declared by
        its definition. No name comes twice.
        """
        run, declared = self.tool_search_run, set()
        for name in names:
            tool = run.executors.get(name) or self.get_tool(name)
            definition = run.definition(name)
            if tool is not None and definition is not None and _differs(tool, definition):
                tool = self._checked(definition, wire_name(name))
            if tool is not None and tool.name not in declared:
                declared.add(tool.name)
                yield tool


def _differs(tool: Any, definition: Tool) -> bool:
    """True if AstrBot would declare a tool otherwise than by its definition."""
    if tool.name != wire_name(definition.name) or definition.declared_schema.changes:
        return True
    if not definition.is_third_party:
        return False
    texts = (tool.description or "") == definition.description
    return not texts or (tool.parameters or {}) != definition.parameters


@cache
def _searching_set_class() -> Any:
    """`SearchingTools` as one of AstrBot's own sets."""
    from astrbot.core.agent.tool import FunctionTool, ToolSet  # noqa: PLC0415 - AstrBot is here

    plain = {"plain_set": ToolSet}
    parts = {
        **plain,
        "own_tool": type("OwnFunctionTool", (OwnTool, FunctionTool), {}),
        "ordered_set": type("OrderedToolSet", (OrderedTools, ToolSet), plain),
        "native_set": type("NativeToolSet", (NativeTools, ToolSet), plain),
    }
    return type("SearchingToolSet", (SearchingTools, ToolSet), parts)


def _filled(set_class: Any, tools: Iterable[Any]) -> Any:
    """A set of these tools, which AstrBot would check one by one: 20 ms and more a tool."""
    made = set_class([])
    made.tools = list(tools)
    return made


class _GrowingList(list[Any]):
    """The tools of a set, for plugins that append to `func_tool.tools`."""

    def __init__(self, tools: Iterable[Any], add: Callable[[Any], None]) -> None:
        super().__init__(tools)
        self._add = add

    def append(self, tool: Any) -> None:
        """Adds a tool to the set."""
        super().append(tool)
        self._add(tool)

    def extend(self, tools: Iterable[Any]) -> None:
        """Adds tools to the set."""
        for tool in tools:
            self.append(tool)


async def _executed(tool: Any, context: Any, arguments: Mapping[str, Any]) -> Any:
    """What AstrBot's executor makes of a call; the guard, where there is one, decides."""
    from astrbot.core.astr_agent_tool_exec import (  # noqa: PLC0415 - AstrBot is here
        FunctionToolExecutor,
    )

    if tool.handler:
        known = (tool.parameters or {}).get("properties") or {}
        arguments = {key: value for key, value in arguments.items() if key in known}
    last = None
    async for result in FunctionToolExecutor.execute(tool=tool, run_context=context, **arguments):
        last = result
    return last
