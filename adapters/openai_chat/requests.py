"""Requests of Chat Completions clients, with searches that the clients do not see.

A client sends its whole history and every tool. A proxy sends on the declared tools alone,
answers searches itself, and asks the model again; the client sees only its own tools' calls::

    request = await ChatRequests(search).open(owner, body)
    while True:
        reply = ...                       # the model's reply to request.messages, request.tools
        if not await request.take(reply):
            break
    reply["tool_calls"], reply["content"] = request.calls, request.text

Source: OpenAI, "Chat Completions" (`messages`, `tools`, `tool_choice`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tool_search.adapters.hosts.chain import ChainItem, ExchangeChain
from tool_search.adapters.hosts.kept_names import KeptNames
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.adapters.openai_chat.parts import (
    called_name,
    function_name,
    instructed,
    message_text,
    required_names,
)
from tool_search.adapters.wire.values import mappings_of
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import RunCall

__all__ = ["ChatRequest", "ChatRequests"]

# A model that only ever searches ends with the text that it has written.
_MAX_STEPS = 10
_BETWEEN_TEXTS = "\n\n"
# The parts of a reply that a provider wants back: Claude refuses thinking without its signature,
# DeepSeek and Kimi calls without the reasoning before them.
_KEPT_PARTS = ("thinking_blocks", "reasoning_content", "reasoning_details")
_log = logging.getLogger(__name__)


class ChatRequests:
    """Opens the requests of all clients of a proxy.

    Args:
        search: The search, which all clients share.
        chain: Keeps the hidden searches; None: in memory of this object.
    """

    def __init__(self, search: ToolSearch, chain: ExchangeChain | None = None) -> None:
        self.search = search
        self.chain = chain or ExchangeChain()
        self._has_warned = False

    async def open(
        self, owner: str, body: Mapping[str, Any], *, user: str | None = None
    ) -> ChatRequest | None:
        """Return a client's request as the model is to get it; None to send it unchanged.

        Unchanged are requests with few tools, with several choices, or with a tool of the
        search tool's name.

        Args:
            owner: The digest of the client's credential, as `owner_digest` returns it.
            body: The body of the request; it is not changed.
            user: The user who asks, if the proxy has authenticated one.
        """
        tools, messages = mappings_of(body.get("tools")), mappings_of(body.get("messages"))
        functions: dict[str, dict[str, Any]] = {}
        for tool in tools:
            if tool.get("type") == "function" and function_name(tool):
                functions.setdefault(function_name(tool), tool)
        if not functions or not messages or body.get("n") not in {None, 1}:
            return None
        if self.search.config.search_tool_name in functions:
            self._warn_of_name()
            return None
        view = await asyncio.to_thread(
            self.search.view,
            tools=[tool for tool in tools if tool.get("type") == "function"],
            first_message=next((message_text(m) for m in messages if m.get("role") == "user"), ""),
            user=user,
        )
        if view.search_tool is None:
            return None
        items = [_item(message) for message in messages]
        hidden = await self.chain.restore(owner, items)
        history = _with_exchanges(messages, hidden)
        _read_history(view, history)
        view.read(called=required_names(body))
        await self.search.learn(view)
        return ChatRequest(
            view,
            view.search_tool,
            chain=self.chain,
            owner=owner,
            items=items,
            history=history,
            functions=functions,
            others=[tool for tool in tools if tool.get("type") != "function"],
        )

    def _warn_of_name(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            name = self.search.config.search_tool_name
            _log.warning(
                "a client's tool has the name %r of the search tool: its requests are sent "
                "unchanged; set another search_tool_name",
                name,
            )


class ChatRequest:
    """One request of a client, until the model's reply is one that the client may see.

    `ChatRequests.open` makes it.

    Attributes:
        view: The client's tools as the conversation shows them.
        steps: The hidden messages of this request: searches and their results.
        calls: After the last `take`: the calls for the client.
        text: The text of all replies so far, as the client sees it.
    """

    def __init__(
        self,
        view: ToolView,
        search_tool: Tool,
        *,
        chain: ExchangeChain,
        owner: str,
        items: Sequence[ChainItem],
        history: Sequence[dict[str, Any]],
        functions: Mapping[str, dict[str, Any]],
        others: Sequence[dict[str, Any]],
    ) -> None:
        self.view = view
        self.steps: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.text = ""
        self._chain, self._owner, self._items = chain, owner, items
        self._history, self._functions, self._others = history, functions, others
        self._search_tool = search_tool
        self._takes = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the next request to the model."""
        return [*instructed(self._history, self.view.instruct), *self.steps]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools of the next request to the model; the list grows at its end."""
        return [*self._others, *map(self._declare, self.view.names)]

    async def take(self, reply: Mapping[str, Any]) -> bool:
        """Take in a reply of the model, and return True if the model must be asked again.

        Args:
            reply: The assistant's message, with `content` and `tool_calls`.
        """
        reply = KeptNames("openai_chat", "", "", self.view.names).own(reply)
        self._takes += 1
        hidden: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        self.calls = []
        for call in mappings_of(reply.get("tool_calls")):
            answer = await self._answer(call)
            if isinstance(answer, str):
                hidden.append(call)
                results.append({"role": "tool", "tool_call_id": call.get("id"), "content": answer})
            else:
                self.calls.append(answer)
        said = message_text(reply)
        goes_on = bool(hidden) and not self.calls
        if hidden:
            # The text of a reply that has calls of the client too belongs to what it sees.
            self.steps += [_hidden_reply(reply, said if goes_on else "", hidden), *results]
        self.text = _BETWEEN_TEXTS.join(filter(None, (self.text, said)))
        if goes_on and self._takes < _MAX_STEPS:
            return True
        if goes_on:
            _log.warning("a model searched %d times in one request, which ends here", self._takes)
        await self._keep()
        return False

    async def _answer(self, call: dict[str, Any]) -> str | dict[str, Any]:
        """Return the result of a call that is answered here, or the call for the client."""
        function = call.get("function")
        if call.get("type", "function") != "function" or not isinstance(function, dict):
            return call
        name, arguments = str(function.get("name")), function.get("arguments") or "{}"
        if name == self.view.search_tool_name:
            return (await self.view.asearch(arguments)).to_json()
        if name not in self.view.catalog:
            return call  # the client, or the provider, may know it
        decision = self.view.check(name, arguments)
        if not isinstance(decision, RunCall):
            return decision.content
        return {**call, "function": {**function, "name": decision.tool.source[1]}}

    async def _keep(self) -> None:
        if self.steps:
            ids = tuple(str(call.get("id")) for call in self.calls)
            reply = ChainItem("assistant", self.text, ids)
            await self._chain.keep(self._owner, [*self._items, reply], self.steps)

    def _declare(self, name: str) -> dict[str, Any]:
        tool = self.view.catalog.get(name)
        if tool is not None:
            definition = self._functions[tool.source[1]]
            if tool.source[1] == name:
                return definition
            return {**definition, "function": {**definition["function"], "name": name}}
        own = self._search_tool
        function = {"name": name, "description": own.description}
        return {"type": "function", "function": {**function, "parameters": dict(own.parameters)}}


def _item(message: Mapping[str, Any]) -> ChainItem:
    ids = [call.get("id") for call in mappings_of(message.get("tool_calls"))]
    ids.append(message.get("tool_call_id"))
    given = tuple(str(each) for each in ids if each is not None)
    return ChainItem(str(message.get("role")), message_text(message), given)


def _with_exchanges(
    messages: Iterable[dict[str, Any]], hidden: Mapping[int, list[Any]]
) -> list[dict[str, Any]]:
    """Return a client's messages with the hidden ones before those that they led to."""
    history: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        exchange = mappings_of(hidden.get(index))
        history += exchange
        history.append(_without_hidden_text(message, exchange))
    return history


def _without_hidden_text(
    message: dict[str, Any], exchange: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a reply without the text that hidden replies before it have already."""
    said = [message_text(step) for step in exchange if step.get("role") == "assistant"]
    before = _BETWEEN_TEXTS.join(filter(None, said))
    content = message.get("content")
    if not before or not isinstance(content, str) or not content.startswith(before):
        return message
    return {**message, "content": content[len(before) :].removeprefix(_BETWEEN_TEXTS) or None}


def _hidden_reply(
    reply: Mapping[str, Any], said: str, calls: list[dict[str, Any]]
) -> dict[str, Any]:
    kept = {part: reply[part] for part in _KEPT_PARTS if reply.get(part)}
    return {"role": "assistant", "content": said or None, "tool_calls": calls, **kept}


def _read_history(view: ToolView, history: Sequence[Mapping[str, Any]]) -> None:
    """Let a view take in a history, in its order, so that the names keep theirs.

    The results after the last reply are new: what they teach is learned with this request.
    """
    replies = [i for i, message in enumerate(history) if message.get("role") == "assistant"]
    last = replies[-1] if replies else -1
    names: dict[Any, str] = {}
    for index, message in enumerate(history):
        for call in mappings_of(message.get("tool_calls")):
            names[call.get("id")] = called_name(call)
        if message.get("role") != "tool":
            continue
        name = names.get(message.get("tool_call_id"), "")
        if name == view.search_tool_name:
            view.read([message_text(message)])
        elif index > last:
            view.returned(name)
        else:
            view.read(called=[name])
