"""The tool set of AstrBot's agent: one object with growing content.

AstrBot reads `req.func_tool` again for every request of a run, so its agent needs no change.
AstrBot is imported with the first set.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from tool_search.adapters.anthropic.wire import encode_tools as encode_claude_tools
from tool_search.adapters.astrbot.preferences import name_rule_of
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.run import LIMITED, UNLIMITED, AstrBotRun
from tool_search.adapters.astrbot.tools import declared_parameters, takes_an_object
from tool_search.adapters.openai_responses.tools import encode_tools as encode_responses_tools
from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import RunCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.i18n import text
from tool_search.providers.known import EVER_KEPT_NAMES
from tool_search.search.discovery.search_tool import (
    CALL_TOOL_NAME,
    call_tool_definition,
    joined_queries,
    read_queries,
)

__all__ = ["run_of", "searching_tool_set", "within_limits"]

T = TypeVar("T")
# A provider that AstrBot falls back to has a rule of its own.
_EVERY_RULE = NameRule("identifier", EVER_KEPT_NAMES)
_log = logging.getLogger(__name__)
Answer = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]
Translate = Callable[[Iterable[Any]], Mapping[str, Tool]]


def searching_tool_set(run: AstrBotRun) -> Any:
    """Return the set of one run, to be assigned to `req.func_tool`."""
    return _searching_set_class()(run)


def within_limits(tools: Any, first: Container[str], translate: Translate) -> Any:
    """Return AstrBot's own set without what providers refuse: too many tools, odd names, schemas.

    Args:
        tools: The set, which is not changed.
        first: The names of the tools to keep if there are too many.
        translate: Returns the definitions of tools by name, as far as they have one.
    """
    kept = sorted(tools.tools, key=lambda tool: tool.name not in first)[: LIMITED.max_tools]
    fitting = [each for tool in kept for each in _declarable(tool, translate)]
    # Where not one can be read, the mistake is in no tool's definition.
    fitting = fitting or [tool for tool in kept if wire_name(tool.name) == tool.name]
    if fitting == tools.tools:
        return tools
    made = copy(tools)
    made.tools = fitting
    return made


def _declarable(tool: Any, translate: Translate) -> Iterator[Any]:
    """Yield a tool of AstrBot's as every provider takes it; nothing if none does."""
    try:
        name = wire_name(tool.name, _EVERY_RULE)
        definition = translate([tool]).get(tool.name)
        if definition is None:
            is_taken = name == tool.name and takes_an_object(tool)
        else:
            is_taken = name == tool.name and not declared_schema(definition).changes
        if is_taken:
            yield tool
        elif definition is not None:
            named = replace(definition, name=name)
            yield _searching_set_class().own_tool(named, _answer_of(tool, definition))
    except MISTAKES as exc:
        _log.warning("tool %r is left out of this message: %r", tool.name, exc)


def _answer_of(tool: Any, definition: Tool) -> Answer:
    """Return what runs a tool of AstrBot's, whose arguments may have other keys there."""

    async def answer(context: Any, arguments: Mapping[str, Any]) -> Any:
        return await _execute(tool, context, declared_schema(definition).canonical(arguments)[0])

    return answer


def run_of(tools: Any) -> AstrBotRun | None:
    """Return the run of a set; None for any other set, and for none."""
    run = getattr(tools, "tool_search_run", None)
    return run if isinstance(run, AstrBotRun) else None


class OwnTool:
    """A tool that this library answers; a mixin of AstrBot's class of tools."""

    def __init__(self, definition: Tool, answer: Answer) -> None:
        written: dict[str, Any] = {
            "name": definition.name,
            "description": definition.description,
            "parameters": {},
        }
        super().__init__(**written)
        # Past AstrBot's check, which raises: this schema has had our own.
        self.parameters = declared_parameters(definition)
        self._answer = answer

    async def call(self, context: Any, **kwargs: Any) -> Any:
        """Return the result of a call, by the library or, through it, by AstrBot."""
        return await self._answer(context, kwargs)


class OrderedTools:
    """A set that is written in its own order: AstrBot sorts the list for OpenAI.

    A mixin of AstrBot's class of sets.
    """

    tools: Any
    plain_set: ClassVar[Any]

    def openai_schema(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Return each tool as AstrBot writes it."""
        one = self.plain_set([])
        written: list[dict[str, Any]] = []
        for tool in self.tools:
            one.tools = [tool]
            written += one.openai_schema(*args, **kwargs)
        return written


class NativeTools(OrderedTools):
    """A set for a model with its vendor's own tool search.

    Attributes:
        wire: The list, written by this library.
        search_tool_name: The search tool's name, if the dialect has none for it.
    """

    wire: list[dict[str, Any]]
    search_tool_name: str

    def anthropic_schema(self) -> list[dict[str, Any]]:
        """Return the list for Claude: the whole catalog, with `defer_loading`."""
        return self.wire

    def openai_schema(self, *_args: Any, **_kwargs: Any) -> list[dict[str, Any]]:
        """Return the list for OpenAI's Responses; an inner `type` replaces AstrBot's own."""
        return [{"type": "function", "function": tool} for tool in self.wire]


class SearchingTools:
    """Core tools, search tool and discoveries of one run, read again at every request.

    A mixin of AstrBot's class of sets, whose methods it replaces.

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
        self._last: list[Any] = []
        self._own = self._own_tools()

    @property
    def tools(self) -> list[Any]:
        """The declared tools; adding to this list adds to the set."""
        declared = self._try(self.declared, lambda: self._last_good(UNLIMITED))
        return _GrowingList(declared, self.add_tool)

    @tools.setter
    def tools(self, tools: Iterable[Any]) -> None:
        """Replace the tools; the empty list of AstrBot's own class is ignored."""
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
        """Return the declared tools; any error is raised."""
        self._last = [*self._tools_to_declare(self.tool_search_run.declared())]
        return self._last

    def add_tool(self, tool: Any) -> None:
        """Add a tool of another plugin."""
        if self._own.get(tool.name) is not tool:
            self.tool_search_run.add(tool.name, tool)

    def remove_tool(self, name: str) -> None:
        """Remove a tool for another plugin."""
        self.tool_search_run.remove(name)
        self._last = [tool for tool in self._last if tool.name != name]

    def get_tool(self, name: str) -> Any:
        """Return the tool that runs a call: AstrBot's own, or ours if the call is checked."""
        run = self.tool_search_run
        definition = self._try(lambda: run.definition_to_check(name), lambda: None)
        if definition is not None:
            return self._checking_tool(definition, name)
        return run.executors.get(name) or (self._own.get(name) if run.is_own(name) else None)

    def for_profile(self, profile: ProviderProfile) -> Any:
        """Return the set for one provider."""
        run = self.tool_search_run
        run.record_request(profile)
        if not profile.is_native:
            return _make_set(self.ordered_set, self._tools_to_declare(run.declared(profile)))
        tools = run.plan(profile).tools
        declared = {*tools.names, *tools.by_wire_name(profile.name_rule)}
        added = [run.executors[name] for name in run.added if name not in declared]
        native = _make_set(self.native_set, [*self._tools_to_declare(tools.names), *added])
        native.search_tool_name = run.search_tool_name
        others = _make_set(self.plain_set, added)
        if profile.dialect == "anthropic":
            native.wire = json.loads(encode_claude_tools(tools, profile))
            native.wire += others.anthropic_schema()
        else:
            native.wire = json.loads(encode_responses_tools(tools, profile))
            native.wire += [tool["function"] for tool in others.openai_schema()]
        return native

    def openai_schema(self, *args: Any, **kwargs: Any) -> Any:
        """Return the list within OpenAI's limit."""
        return self._written_for(LIMITED).openai_schema(*args, **kwargs)

    def google_schema(self) -> Any:
        """Return the list within the same limit."""
        return self._written_for(LIMITED).google_schema()

    def anthropic_schema(self) -> Any:
        """Return the filtered list, for models of this dialect other than Claude."""
        return self._written_for(UNLIMITED).anthropic_schema()

    def get_light_tool_set(self) -> Any:
        """Return the set itself: `skills_like` would freeze it."""
        return self

    def get_param_only_tool_set(self) -> Any:
        """Return an empty set, so that `skills_like` asks nothing twice."""
        return self.plain_set([])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return the set itself: a copy would not grow."""
        return self

    def _written_for(self, profile: ProviderProfile) -> Any:
        """Return the set for a provider whose list AstrBot writes."""
        return self._try(
            lambda: self.for_profile(profile),
            lambda: _make_set(self.ordered_set, self._last_good(profile)),
        )

    def _last_good(self, profile: ProviderProfile) -> list[Any]:
        """Return the last list that could be made, with what was found since.

        The list of all tools may be longer than a provider takes, and have names that it refuses.
        """
        run = self.tool_search_run
        later = (*run.session.found, *run.added)
        added = self._try(lambda: [*self._tools_to_declare(later)], list)
        tools = {tool.name: tool for tool in (*self._last, *added)}
        rule = name_rule_of(run.provider)
        return [tool for tool in tools.values() if wire_name(tool.name, rule) == tool.name][
            : profile.max_tools
        ]

    def _try(self, answer: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Return an answer of the library's; the other one if there was a mistake of ours."""
        try:
            return answer()
        except MISTAKES as exc:
            is_first, self._failure = self._failure is None, exc
            # AstrBot's log shows each object on the way, this set with its tools among them.
            if is_first:
                _log.exception("tool search has failed: this message has the last list that worked")
            return otherwise()

    def _own_tools(self) -> dict[str, Any]:
        run = self.tool_search_run
        named = (entry.tool for entry in run.plan(UNLIMITED).tools)
        search_tool = next(tool for tool in named if tool.name == run.search_tool_name)
        return {
            run.search_tool_name: self.own_tool(search_tool, self._search),
            CALL_TOOL_NAME: self._checking_tool(call_tool_definition(run.session.language)),
        }

    def _checking_tool(self, definition: Tool, name: str | None = None) -> Any:
        """Return a tool whose calls are checked before they run."""

        async def answer(context: Any, arguments: Mapping[str, Any]) -> Any:
            return await self._call(definition.name, context, arguments)

        return self.own_tool(replace(definition, name=name or definition.name), answer)

    async def _search(self, _context: Any, arguments: Mapping[str, Any]) -> str:
        return self._try(
            lambda: self.tool_search_run.search(arguments), lambda: self._unavailable(arguments)
        )

    async def _call(self, name: str, context: Any, arguments: Mapping[str, Any]) -> Any:
        """Return the result of a call that is checked before it runs."""
        run = self.tool_search_run
        decision = self._try(lambda: run.conversation.decide(name, arguments), lambda: None)
        if isinstance(decision, RunCall):
            name, arguments = run.name_of(decision.tool), decision.arguments
        elif decision is not None:
            return decision.content
        elif name not in run.executors:
            return self._unavailable(arguments)
        result = await _execute(run.executors[name], context, arguments)
        self._try(lambda: run.learn(name), lambda: None)
        return result

    def _unavailable(self, arguments: Mapping[str, Any]) -> str:
        said = text(
            "search.unavailable", self.tool_search_run.session.language, cause=self._failure
        )
        return SearchResult(query=joined_queries(read_queries(arguments)), error=said).to_json()

    def _tools_to_declare(self, names: Iterable[str]) -> Iterator[Any]:
        """Yield the tools to declare under these names; a call may run another object.

        A tool is declared by its definition if AstrBot has it under another name than the
        catalog, under a name or with a schema that providers refuse, or with texts that were
        cleaned or cut. No name comes twice.
        """
        run, declared = self.tool_search_run, set()
        rule = name_rule_of(run.provider)
        for name in names:
            tool = run.executors.get(name) or self.get_tool(name)
            definition = run.definition(name)
            if tool is not None and definition is not None and _differs(tool, definition, rule):
                tool = self._checking_tool(definition, wire_name(name, rule))
            if tool is not None and tool.name not in declared:
                declared.add(tool.name)
                yield tool


def _differs(tool: Any, definition: Tool, rule: NameRule) -> bool:
    """True if AstrBot's declaration of a tool differs from its definition."""
    if tool.name != wire_name(definition.name, rule) or declared_schema(definition).changes:
        return True
    if not definition.is_third_party:
        return False
    texts = (tool.description or "") == definition.description
    return not texts or (tool.parameters or {}) != definition.parameters


@cache
def _searching_set_class() -> Any:
    """Return `SearchingTools` as a class of AstrBot's sets."""
    from astrbot.core.agent.tool import FunctionTool, ToolSet  # noqa: PLC0415 - AstrBot is here

    plain = {"plain_set": ToolSet}
    parts = {
        **plain,
        "own_tool": type("OwnFunctionTool", (OwnTool, FunctionTool), {}),
        "ordered_set": type("OrderedToolSet", (OrderedTools, ToolSet), plain),
        "native_set": type("NativeToolSet", (NativeTools, ToolSet), plain),
    }
    return type("SearchingToolSet", (SearchingTools, ToolSet), parts)


def _make_set(set_class: Any, tools: Iterable[Any]) -> Any:
    """Return a set of these tools, without AstrBot's check of each: 20 ms and more a tool."""
    made = set_class([])
    made.tools = list(tools)
    return made


class _GrowingList(list[Any]):
    """The tools of a set, for plugins that append to `func_tool.tools`."""

    def __init__(self, tools: Iterable[Any], add: Callable[[Any], None]) -> None:
        super().__init__(tools)
        self._add = add

    def append(self, tool: Any) -> None:
        """Add a tool to the set."""
        super().append(tool)
        self._add(tool)

    def extend(self, tools: Iterable[Any]) -> None:
        """Add tools to the set."""
        for tool in tools:
            self.append(tool)


async def _execute(tool: Any, context: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the result of a call by AstrBot's executor; a guard decides on it."""
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
