"""Tool search for agents of the OpenAI Agents SDK.

::

    agent = with_tool_search(Agent("bot", tools=TOOLS, model="gpt-5.4"))

Every tool stays with the agent, and the search tool joins them. The agent's model is wrapped:
it decides which tools a request declares. What was found is read out of the request's items,
so sessions keep it, and another agent or model goes on with it.

openai-agents 0.10 or later. Source: OpenAI Agents SDK, "Models" (`Model`), "Tools"
(`FunctionTool`), "Sessions".
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

try:
    from agents import (
        Agent,
        FunctionTool,
        FunctionToolResult,
        Model,
        ModelResponse,
        ModelSettings,
        MultiProvider,
        Tool,
        ToolsToFinalOutputResult,
        TResponseInputItem,
    )
    from agents.items import TResponseStreamEvent
    from agents.tool_context import ToolContext
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.openai_agents needs openai-agents 0.10 or later: "
        "pip install 'tool-search-middleware[openai-agents]'; in a clone: "
        "pip install '.[openai-agents]'"
    ) from exc

from tool_search.adapters.hosts.kept_names import KeptNames
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.conversation.view import append_instructions
from tool_search.core.services import SearchResult
from tool_search.errors import ConfigurationError

__all__ = ["with_tool_search"]

if not hasattr(ToolContext, "agent"):
    raise ImportError(
        "tool_search.adapters.openai_agents was tested with openai-agents 0.10 to 0.24; in this "
        "version a ToolContext has no agent"
    )

_MAX_KEPT = 1_000
# The language of a conversation is seen in its first words.
_MAX_FIRST_CHARS = 2_000
# What the SDK answers for a tool that raised, took too long, or was not approved.
_FAILURE = re.compile(
    "An error occurred while |Tool execution was not approved|Tool '.*' timed out"
)
_TContext = TypeVar("_TContext")
_Kept = TypeVar("_Kept")


def with_tool_search(
    agent: Agent[_TContext],
    config: ToolSearchConfig | None = None,
    *,
    search: ToolSearch | None = None,
) -> Agent[_TContext]:
    """Return a clone of an agent that finds its tools, those of its MCP servers too.

    Args:
        agent: An agent with any model. A model's name, or none, is resolved by the SDK's
            `MultiProvider`; for another provider, give the agent a `Model`.
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several agents share, instead of `config`.

    Raises:
        ConfigurationError: The settings cannot be used, or a tool has the search tool's name.
    """
    used = search or ToolSearch((), config)
    used.view(tools=())  # refuses a mode that needs a loop of its own
    searching = _Searching(used)
    if any(getattr(tool, "name", "") == searching.name for tool in agent.tools):
        raise ConfigurationError(
            f"the agent has a tool named {searching.name!r} already, as the search tool is; set "
            "search_tool_name, or call with_tool_search once"
        )
    clone = agent.clone(
        tools=[*agent.tools, searching.tool()],
        model=_SearchingModel(agent.model, searching),
        tool_use_behavior=searching.use(agent.tool_use_behavior),
    )
    # The SDK takes the default settings of a model's name away with the name.
    clone.model_settings = agent.model_settings
    return clone


@dataclass
class _Shown:
    """The searches and calls of a conversation whose items the service keeps.

    Attributes:
        found: The found names, in their order.
        items: The items since the user's last message.
        first: The first message.
    """

    found: Sequence[str] = ()
    items: Sequence[Mapping[str, Any]] = ()
    first: str = ""


@dataclass
class _Request:
    """A request, and the calls of its reply.

    Attributes:
        view: The tools of the request.
        shown: What the conversation has shown.
        calls: The ids of the calls.
    """

    view: ToolView
    shown: _Shown
    calls: set[str] = field(default_factory=set)


_current: contextvars.ContextVar[_Request | None] = contextvars.ContextVar(
    "tool_search_request", default=None
)


class _Recent(Generic[_Kept]):
    """The values that were used last, for any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: OrderedDict[str, _Kept] = OrderedDict()

    def get(self, key: str | None) -> _Kept | None:
        with self._lock:
            if key is None or key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: str, value: _Kept) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > _MAX_KEPT:
                self._values.popitem(last=False)


class _Memory:
    """The state that the agents of one `ToolSearch` share.

    Attributes:
        results: Results by their text: a text has no result of each of several queries.
        shown: The searches and calls of conversations, by the id of their last response.
    """

    def __init__(self) -> None:
        self.results: _Recent[SearchResult] = _Recent()
        self.shown: _Recent[_Shown] = _Recent()


_memories: WeakKeyDictionary[ToolSearch, _Memory] = WeakKeyDictionary()


class _Searching:
    """The state that the search tool and the model of an agent share.

    Args:
        search: The tool search.

    Attributes:
        name: The name of the search tool.
        results: As of `_Memory`.
        shown: As of `_Memory`.
    """

    def __init__(self, search: ToolSearch) -> None:
        self.search = search
        self.name = search.config.search_tool_name
        memory = _memories.setdefault(search, _Memory())
        self.results = memory.results
        self.shown = memory.shown

    def tool(self) -> FunctionTool:
        """Return the search tool, whose definition is written for each request."""
        return FunctionTool(
            name=self.name,
            description="Finds tools.",
            params_json_schema={"type": "object", "properties": {}},
            on_invoke_tool=self._invoke,
            strict_json_schema=False,
        )

    def use(self, behavior: Any) -> Any:
        """Return an agent's `tool_use_behavior`, for which a search is no final output."""
        if behavior != "stop_on_first_tool" and not callable(behavior):
            return behavior

        async def decide(context: Any, results: list[FunctionToolResult]) -> Any:
            own = [result for result in results if result.tool.name != self.name]
            if not own:
                return ToolsToFinalOutputResult(is_final_output=False)
            if not callable(behavior):
                return ToolsToFinalOutputResult(is_final_output=True, final_output=own[0].output)
            decided = behavior(context, own)
            return await decided if isawaitable(decided) else decided

        return decide

    async def _invoke(self, context: ToolContext[Any], arguments: str) -> str:
        request = _current.get()
        if request is not None and context.tool_call_id in request.calls:
            view = request.view
        else:  # a model call with a timeout runs in a context of its own
            tools = [] if context.agent is None else await context.agent.get_all_tools(context)
            view = await asyncio.to_thread(self.search.view, tools=self.definitions(tools))
        result = await view.asearch(arguments)
        text = result.to_json()
        self.results.keep(text, result)
        return text

    def definitions(self, tools: Iterable[Tool]) -> list[dict[str, Any]]:
        """Return the definitions of an agent's own tools."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.params_json_schema,
            }
            for tool in map(_own, tools)
            if tool is not None and tool.name != self.name
        ]

    def compact(self, items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return what `read` needs of items that are kept; answers of tools may be long."""
        kept: list[Mapping[str, Any]] = []
        for item in items:
            if _asks(item):
                kept.append({"role": "user"})
            elif item.get("type") == "function_call":
                kept.append({key: item.get(key) for key in ("type", "call_id", "name")})
            elif _answers(item):
                text = _text_of(item.get("output"))
                output = text if self.results.get(text) is not None else ""
                kept.append({**item, "output": output})
        return kept

    def read(self, view: ToolView, items: Sequence[Mapping[str, Any]]) -> None:
        """Let a view take in a conversation's items, in their order.

        The results at the end are new: their tools teach now.
        """
        names: dict[str, str] = {}
        new = 1 + max((n for n, item in enumerate(items) if not _answers(item)), default=-1)
        for index, item in enumerate(items):
            if _asks(item):
                view.begin_turn()
            elif item.get("type") == "function_call":
                names[str(item.get("call_id"))] = str(item.get("name"))
            elif _answers(item):
                text = _text_of(item.get("output"))
                name = names.get(str(item.get("call_id")))
                result = self.results.get(text) if name in (None, self.name) else None
                if result is not None or name == self.name:
                    view.read([result or text])
                elif name is not None and index >= new:
                    view.returned(name, failed=bool(_FAILURE.match(text)))
                elif name is not None:
                    view.read((), [name])


class _SearchingModel(Model):
    """A model that declares the core, the search tool and what was found.

    Args:
        model: The agent's model.
        searching: The tool search.
    """

    def __init__(self, model: str | Model | None, searching: _Searching) -> None:
        self._model = model
        self._searching = searching

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002  # the SDK's name
        model_settings: ModelSettings,
        tools: list[Tool],
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        """Return the reply to a request with the declared tools alone."""
        request = await self._request(input, model_settings, tools, more)
        system, declared = self._declare(request.view, system_instructions, tools)
        inner = self._inner()
        while True:
            kept = _kept_names(inner, declared)
            said = kept.text(system or "", self._searching.name) or None
            try:
                response = await inner.get_response(
                    said, kept.sent(input), model_settings, _send(declared, kept), *rest, **more
                )
                break
            except Exception as exc:
                if not kept.learn(exc):
                    raise
        _name_own(response.output, kept)
        self._reply(request, response.response_id, response.output, more)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002  # the SDK's name
        model_settings: ModelSettings,
        tools: list[Tool],
        *rest: Any,
        **more: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Stream the reply to a request with the declared tools alone."""
        request = await self._request(input, model_settings, tools, more)
        system, declared = self._declare(request.view, system_instructions, tools)
        inner = self._inner()
        is_begun = False
        while not is_begun:
            kept = _kept_names(inner, declared)
            said = kept.text(system or "", self._searching.name) or None
            stream = inner.stream_response(
                said, kept.sent(input), model_settings, _send(declared, kept), *rest, **more
            )
            try:
                async for event in stream:
                    is_begun = True
                    _name_own([getattr(event, "item", None)], kept)
                    if event.type == "response.completed":
                        _name_own(event.response.output, kept)
                        self._reply(request, event.response.id, event.response.output, more)
                    yield event
            except Exception as exc:
                if is_begun or not kept.learn(exc):
                    raise
            else:
                return

    async def close(self) -> None:
        """Release the resources of the model."""
        if isinstance(self._model, Model):
            await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return the model's advice on a failed request."""
        return self._inner().get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        # The SDK calls it of models that keep a connection through a run.
        if isinstance(self._model, Model):
            await self._model._cleanup_on_run_end(owner)  # noqa: SLF001

    def _inner(self) -> Model:
        if isinstance(self._model, Model):
            return self._model
        return MultiProvider().get_model(self._model)

    async def _request(
        self,
        given: str | list[TResponseInputItem],
        settings: ModelSettings,
        tools: Iterable[Tool],
        more: Mapping[str, Any],
    ) -> _Request:
        new = [{"role": "user", "content": given}] if isinstance(given, str) else given
        key = more.get("previous_response_id") or more.get("conversation_id")
        shown = self._searching.shown.get(key) or _Shown()
        request = await asyncio.to_thread(self._view, shown, new, list(tools))
        if isinstance(settings.tool_choice, str):
            # A request must declare the tool that it demands.
            request.view.read((), [settings.tool_choice])
        await self._searching.search.learn(request.view)
        return request

    def _view(self, shown: _Shown, new: Iterable[Any], tools: list[Tool]) -> _Request:
        items: list[Mapping[str, Any]] = [*shown.items, *new]
        asked = (_text_of(item.get("content")) for item in items if _asks(item))
        first = shown.first or next(asked, "")[:_MAX_FIRST_CHARS]
        view = self._searching.search.view(
            shown.found, tools=self._searching.definitions(tools), first_message=first
        )
        self._searching.read(view, items)
        last = max((index for index, item in enumerate(items) if _asks(item)), default=0)
        return _Request(view, _Shown(view.found, items[last:], first))

    def _declare(
        self, view: ToolView, system: str | None, tools: Sequence[Tool]
    ) -> tuple[str | None, list[Tool]]:
        own = {tool.name: tool for tool in filter(None, map(_own, reversed(tools)))}
        # Tools that the service runs itself come first, so that the list grows at its end.
        declared = [tool for tool in tools if _own(tool) is None]
        for entry in view.tools():
            tool = own[entry.tool.name]
            if tool.name == self._searching.name:
                schema = dict(entry.tool.parameters)
                text = entry.tool.description
                tool = replace(tool, description=text, params_json_schema=schema)
            declared.append(tool)
        return append_instructions(system or "", view) or None, declared

    def _reply(
        self,
        request: _Request,
        response: str | None,
        output: Iterable[Any],
        more: Mapping[str, Any],
    ) -> None:
        made = [item for item in output if item.type == "function_call"]
        request.calls.update(item.call_id for item in made)
        _current.set(request)
        calls = [{"type": i.type, "call_id": i.call_id, "name": i.name} for i in made]
        items = self._searching.compact([*request.shown.items, *calls])
        shown = replace(request.shown, items=items)
        for key in (response, more.get("conversation_id")):
            if key:
                self._searching.shown.keep(key, shown)


def _own(tool: Tool) -> FunctionTool | None:
    """Return a tool as the agent's own; None if the service runs or hides it."""
    # Tools in a namespace and deferred ones came with openai-agents 0.11 and later.
    if not isinstance(tool, FunctionTool) or getattr(tool, "defer_loading", False):
        return None
    return tool if getattr(tool, "qualified_name", tool.name) == tool.name else None


def _asks(item: Mapping[str, Any]) -> bool:
    return item.get("role") == "user"


def _answers(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "function_call_output"


def _text_of(content: object) -> str:
    """Return the text of a message or of a tool's output."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _kept_names(model: Model, tools: Iterable[Tool]) -> KeptNames:
    """Return the tools of a request whose names the model's service keeps for itself."""
    client = getattr(model, "_client", None)
    name, address = getattr(model, "model", ""), getattr(client, "base_url", "")
    names = (tool.name for tool in tools)
    return KeptNames("openai_responses", str(name), str(address), names)


def _send(tools: Iterable[Tool], kept: KeptNames) -> list[Tool]:
    owned = ((tool, _own(tool)) for tool in tools)
    return [
        replace(own, name=kept.sent({"name": own.name})["name"]) if own else tool
        for tool, own in owned
    ]


def _name_own(items: Iterable[Any], kept: KeptNames) -> None:
    """Give calls of a reply the tools' own names."""
    for item in items:
        if kept and getattr(item, "type", None) == "function_call":
            item.name = kept.own({"name": item.name})["name"]
