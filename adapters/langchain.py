"""Tool search for LangChain's agents, as a middleware.

::

    agent = create_agent(model, tools=TOOLS, middleware=[ToolSearchMiddleware()])

Every tool stays registered with the agent; the middleware decides which of them a request
declares. Discovered names are in the graph's state under `discovered`, so any checkpointer
keeps them, and another model of the same thread goes on with them.

langchain 1.2 or later. Source: LangChain, "Custom middleware" (`wrap_model_call`,
`wrap_tool_call`, `state_schema`); Anthropic, "Tool search tool", for `native`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.tools import BaseTool, ToolRuntime
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.types import Command
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.langchain needs langchain 1.2 or later: "
        "pip install 'tool-search-middleware[langchain]'; in a clone: pip install '.[langchain]'"
    ) from exc

from tool_search.adapters.hosts.kept_names import KeptNames
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.conversation.calls import RunCall
from tool_search.core.conversation.view import append_instructions
from tool_search.core.messages import ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.settings import Dialect
from tool_search.providers.profile_choice import profile_for

__all__ = ["SearchState", "ToolSearchMiddleware"]


def _append(old: Sequence[str] | None, new: Sequence[str]) -> list[str]:
    """Append names without repeats: parallel searches reduce in any order."""
    return list(dict.fromkeys([*(old or ()), *new]))


class SearchState(AgentState[Any]):
    """The agent's state with the names that searches found."""

    discovered: NotRequired[Annotated[list[str], _append]]  # type: ignore[valid-type]


class ToolSearchMiddleware(AgentMiddleware[SearchState, Any, Any]):
    """Declares the core, the search tool and what was found; searches run as a tool.

    Args:
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several agents share, instead of `config`.
        native: True to send Claude models the whole catalog with `defer_loading`, and
            references as results of searches.

    Raises:
        ConfigurationError: The settings cannot be used.
    """

    state_schema = SearchState

    def __init__(
        self,
        config: ToolSearchConfig | None = None,
        *,
        search: ToolSearch | None = None,
        native: bool = True,
    ) -> None:
        super().__init__()
        self.search = search or ToolSearch((), config)
        self._native = native
        self._name = self.search.config.search_tool_name
        self.tools = [
            StructuredTool.from_function(
                self._run_search,
                name=self._name,
                description="Finds tools. Its definition is written for each request.",
            )
        ]

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Send a request with the declared tools alone."""
        declared = self._declare(request)
        while True:
            kept = _kept_names(declared)
            try:
                return _own(handler(self._send(declared, kept)), kept)
            except Exception as exc:
                if not kept.learn(exc):
                    raise

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Send a request with the declared tools alone."""
        declared = self._declare(request)
        while True:
            kept = _kept_names(declared)
            try:
                return _own(await handler(self._send(declared, kept)), kept)
            except Exception as exc:
                if not kept.learn(exc):
                    raise

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Run a call that the catalog allows, and learn from the search that led to it."""
        view = self._view_of_call(request)
        if view is None:
            return handler(request)
        refused = _refusal(view, request)
        if refused is not None:
            return _with_found(refused, view, request)
        result = handler(request)
        _record_result(view, request, result)
        self.search.learn_now(view)
        return _with_found(result, view, request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run a call that the catalog allows, and learn from the search that led to it."""
        view = self._view_of_call(request)
        if view is None:
            return await handler(request)
        refused = _refusal(view, request)
        if refused is not None:
            return _with_found(refused, view, request)
        result = await handler(request)
        _record_result(view, request, result)
        await self.search.learn(view)
        return _with_found(result, view, request)

    def _run_search(
        self,
        runtime: ToolRuntime[Any, Any],
        queries: Any = None,
        query: Any = None,
        limit: Any = None,
    ) -> Command[Any]:
        given = {"queries": queries, "query": query, "limit": limit}
        view = self._view(runtime.state, runtime.tools)
        result = view.search({name: value for name, value in given.items() if value is not None})
        answer = ToolMessage(result.to_json(), tool_call_id=runtime.tool_call_id, name=self._name)
        return Command(update={"messages": [answer], "discovered": list(view.found)})

    def _view(self, state: Mapping[str, Any], tools: Iterable[BaseTool]) -> ToolView:
        return self.search.view(
            state.get("discovered") or (),
            tools=[convert_to_openai_tool(tool) for tool in tools if tool.name != self._name],
            first_message=_first_text(state.get("messages") or ()),
        )

    def _view_of_call(self, request: ToolCallRequest) -> ToolView | None:
        """Return the view in which a tool is called; None for the search tool itself."""
        if request.tool_call["name"] == self._name:
            return None
        state = request.state if isinstance(request.state, dict) else {}
        view = self._view(state, request.runtime.tools)
        messages = state.get("messages") or ()
        answered = [m for m in messages if isinstance(m, ToolMessage)]
        view.read(
            (m.content for m in answered if m.name == self._name and isinstance(m.content, str)),
            (m.name for m in answered if m.name is not None and m.name != self._name),
        )
        return view

    def _declare(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        own = [tool for tool in request.tools if not isinstance(tool, dict)]
        view = self._view(request.state, own)
        profile = _claude(request.model) if self._native else None
        listed = view.tools(profile)
        tools = {tool.name: tool for tool in own}
        # Tools that the provider runs itself are dicts, and none of ours.
        others = [tool for tool in request.tools if isinstance(tool, dict)]
        changed = request.override(tools=[*self._list_tools(listed, tools), *others])
        if view.search_tool is None:
            return changed
        before = request.system_message.text if request.system_message else ""
        system = SystemMessage(append_instructions(before, view))
        if any(entry.deferred for entry in listed):
            return changed.override(
                system_message=system,
                messages=[self._refer(message, listed) for message in request.messages],
            )
        return changed.override(system_message=system)

    def _send(self, request: ModelRequest[Any], kept: KeptNames) -> ModelRequest[Any]:
        """Return a request in which no tool has a name that the model's service keeps."""
        if not kept:
            return request
        system = request.system_message.text if request.system_message else ""
        return request.override(
            tools=[
                kept.sent(tool)
                if isinstance(tool, dict)
                else tool.model_copy(update=kept.sent({"name": tool.name}))
                for tool in request.tools
            ],
            messages=[_rename(message, kept.sent) for message in request.messages],
            system_message=SystemMessage(kept.text(system, self._name)) if system else None,
        )

    def _list_tools(
        self, listed: ToolList, tools: Mapping[str, BaseTool]
    ) -> Iterable[BaseTool | dict[str, Any]]:
        for entry in listed:
            tool = tools.get(entry.tool.name)
            if entry.tool.name == self._name or tool is None:
                function = {
                    "name": entry.tool.name,
                    "description": entry.tool.description,
                    "parameters": dict(entry.tool.parameters),
                }
                yield {"type": "function", "function": function}
            elif entry.deferred:
                extras = {**(tool.extras or {}), "defer_loading": True}
                yield tool.model_copy(update={"extras": extras})
            else:
                yield tool

    def _refer(self, message: AnyMessage, listed: ToolList) -> AnyMessage:
        """Return a search's result as references, in the request alone.

        The state keeps the JSON, which another model can read.
        """
        if not isinstance(message, ToolMessage) or message.name != self._name:
            return message
        result = SearchResult.from_json(message.text)
        names = [name for name in result.names if listed.declares(name)] if result else []
        if not names:
            return message
        references = [{"type": "tool_reference", "tool_name": name} for name in names]
        return message.model_copy(update={"content": references})


def _claude(model: object) -> ProviderProfile | None:
    """Return the profile of a model of `langchain-anthropic`, which need not be installed."""
    if not any(each.__name__ == "ChatAnthropic" for each in type(model).__mro__):
        return None
    # By the model's name alone: gateways of Claude models take its native search too, and
    # `native=False` is for those that do not.
    return profile_for("anthropic", str(getattr(model, "model", "")))


def _kept_names(request: ModelRequest[Any]) -> KeptNames:
    """Return the tools of a request whose names the model's service keeps for itself."""
    model = request.model
    name = getattr(model, "model_name", None) or getattr(model, "model", "")
    address = getattr(model, "openai_api_base", None) or getattr(model, "xai_api_base", None)
    responses = getattr(model, "use_responses_api", False)
    dialect: Dialect = "openai_responses" if responses else "openai_chat"
    names = (
        str((tool.get("function") or tool).get("name")) if isinstance(tool, dict) else tool.name
        for tool in request.tools
    )
    return KeptNames(dialect, str(name), str(address or ""), names)


def _rename(message: Any, rename: Callable[[Any], Any]) -> Any:
    """Return a message of which calls and results have other names."""
    if not isinstance(message, AIMessage | ToolMessage):
        return message
    parts = (
        ("name",)
        if isinstance(message, ToolMessage)
        else ("content", "tool_calls", "additional_kwargs")
    )
    return message.model_copy(update=rename({part: getattr(message, part) for part in parts}))


def _own(response: ModelResponse[Any], kept: KeptNames) -> ModelResponse[Any]:
    """Return a response with the tools' own names."""
    if kept:
        response.result = [_rename(message, kept.own) for message in response.result]
    return response


def _first_text(messages: Iterable[AnyMessage]) -> str:
    return next((str(m.text) for m in messages if isinstance(m, HumanMessage)), "")


def _refusal(view: ToolView, request: ToolCallRequest) -> ToolMessage | None:
    """Return the answer to a call that must not run, or None."""
    call = request.tool_call
    decision = view.check(call["name"], call["args"])
    if isinstance(decision, RunCall):
        return None
    return ToolMessage(decision.content, tool_call_id=call["id"], name=call["name"], status="error")


def _record_result(
    view: ToolView, request: ToolCallRequest, result: ToolMessage | Command[Any]
) -> None:
    failed = isinstance(result, ToolMessage) and result.status == "error"
    view.returned(request.tool_call["name"], failed=failed)


def _with_found(
    result: ToolMessage | Command[Any], view: ToolView, request: ToolCallRequest
) -> ToolMessage | Command[Any]:
    """Return a result that also notes a hidden tool which the model called by its name."""
    state = request.state if isinstance(request.state, dict) else {}
    if view.search_tool is None or not set(view.found) - set(state.get("discovered") or ()):
        return result
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result], "discovered": list(view.found)})
    update = result.update
    if not isinstance(update, dict):
        return result
    return Command(
        graph=result.graph,
        update={**update, "discovered": list(view.found)},
        resume=result.resume,
        goto=result.goto,
    )
