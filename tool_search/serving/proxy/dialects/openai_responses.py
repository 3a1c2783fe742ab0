"""OpenAI's Responses, as a proxy reads and changes it.

Sources: OpenAI, "Responses API" (events, `output_index`, `sequence_number`,
`previous_response_id`), "Tool search" (`tool_search_call`, `tool_search_output`,
namespaces); the openai SDK 3.54, which refuses a stream whose `response.id` changes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from tool_search.adapters.hosts.chain import ChainItem
from tool_search.adapters.openai_chat.parts import message_text
from tool_search.adapters.openai_responses.parts import ENDS, functions_in, is_client_search
from tool_search.adapters.openai_responses.wire import to_wire
from tool_search.adapters.wire.values import arguments_text, mappings_of
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.serving.proxy.dialects.base import (
    JSON,
    CallAnswers,
    Emulated,
    ListedTool,
    ReplyStream,
    SentEvent,
    VisibleCall,
    WireCall,
    WireTool,
    summed_usage,
    visible,
    without_space,
)
from tool_search.serving.proxy.dialects.client_search import (
    ClientSearch,
    grouped_tools,
    listed_tools,
)
from tool_search.serving.proxy.dialects.openai import OpenAIDialect

__all__ = ["OpenAIResponses"]

_BEGINS = ("response.created", "response.in_progress", "response.queued")
# Fields of a response that repeat the request: the client sees its own.
_ECHOED = ("tools", "instructions", "tool_choice", "previous_response_id")
# Calls that the proxy reads. Of other kinds are `custom_tool_call`, `computer_call` and the like.
_CALLS = ("function_call", "tool_search_call")
# Items that define functions from their place on.
_DEFINING = ("tool_search_output", "additional_tools")
_usage = partial(summed_usage, before="input_tokens", after="output_tokens")


class OpenAIResponses(OpenAIDialect):
    """OpenAI's Responses."""

    name = "openai_responses"
    path = "/v1/responses"
    items_key = "input"

    def items(self, body: JSON) -> list[JSON]:
        """Return the history's items; a text is the user's message."""
        given = body.get("input")
        if isinstance(given, str):
            return [{"role": "user", "content": given}]
        return super().items(body)

    def is_kept(self, body: JSON) -> bool:
        """True if the service keeps the reply to a request, under its id."""
        return body.get("store") is not False

    def is_searchable(self, body: JSON) -> bool:
        """True if a hidden exchange can be part of the request.

        A response in the background is asked for later, without the request.
        """
        return bool(self.items(body)) and not body.get("background")

    def listed(self, tools: Iterable[JSON]) -> list[ListedTool]:
        """Return the entries of a list of tools; `own` is what the provider runs itself."""
        return listed_tools(tools)

    def defers(self, body: JSON) -> bool:
        """True if a client leaves searches of deferred tools to the service, or answers them."""
        return any(entry.get("type") == "tool_search" for entry in body.get("tools") or ())

    def emulated(self, body: JSON) -> Emulated:
        """Return the request for a provider that does not know deferred tools."""
        given, items = body.get("tools") or (), self.items(body)
        if any(map(is_client_search, given)):
            search = ClientSearch(given)
            return Emulated(search.request(body, items), client_search=search)
        tools = [entry for entry in given if not _is_hosted_search(entry)]
        found = dict.fromkeys(call.name for item in items for call in self.calls(item))
        own = [i for i in items if i.get("type") not in ("tool_search_call", "tool_search_output")]
        return Emulated({**body, "tools": tools, "input": own}, tuple(found), is_searched=True)

    def write_tools(
        self,
        given: Sequence[JSON],  # noqa: ARG002  # for formats with marks in definitions
        listed: Sequence[ListedTool],
        others: Sequence[JSON],
    ) -> list[JSON]:
        """Return the list of tools: first the provider's own, which no discovery moves."""
        return [*others, *grouped_tools(listed)]

    def write_plain(self, tools: Sequence[WireTool]) -> list[JSON]:
        """Return definitions as the client wrote them, in its namespaces."""
        return grouped_tools(ListedTool(tool) for tool in tools)

    def required_tools(self, body: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names that `tool_choice` names."""
        choice = body.get("tool_choice")
        if not isinstance(choice, dict):
            return []
        named = choice.get("tools") if choice.get("type") == "allowed_tools" else [choice]
        found = [each for each in named or () if isinstance(each, dict)]
        return [(each.get("namespace"), each["name"]) for each in found if each.get("name")]

    def write_system(self, body: JSON, instruct: Callable[[str], str]) -> None:
        """Put the instructions of a search into a request, which is changed in place."""
        given = body.get("instructions")
        body["instructions"] = instruct(given if isinstance(given, str) else "")

    def chain_item(self, item: JSON) -> ChainItem | None:
        """Return what no client changes of an item; None for one that clients may drop."""
        kind = item.get("type")
        if kind == "reasoning":
            return None
        if "call_id" in item:
            return ChainItem(str(kind), "", (str(item["call_id"]),))
        return ChainItem(str(item.get("role") or kind), message_text(item))

    def chained(self, items: Sequence[JSON]) -> list[tuple[int, ChainItem]]:
        """Return what no client changes of a history: of a reply the ids of its calls, or its text.

        A reply has several items. Clients join its messages to one, drop the text of one with
        calls, or drop its reasoning.
        """
        chained: list[tuple[int, ChainItem]] = []
        for is_reply, run in groupby(enumerate(items), lambda each: self.is_reply(each[1])):
            group = [(index, self.chain_item(item)) for index, item in run]
            known = [(index, chain_item) for index, chain_item in group if chain_item is not None]
            if not is_reply:
                chained += known
            elif known:
                ids = tuple(each for _, chain_item in known for each in chain_item.ids)
                text = "".join(chain_item.text for _, chain_item in known)
                text = "" if ids else without_space(text)
                chained.append((group[-1][0], ChainItem("assistant", text, ids)))
        return chained

    def is_reply(self, item: JSON) -> bool:
        """True for an item of the model."""
        kind = str(item.get("type") or "message")
        return item.get("role") == "assistant" or kind.endswith("_call") or kind == "reasoning"

    def calls(self, item: JSON) -> list[WireCall]:
        """Return the calls in an item of the model, in order."""
        kind, call_id = item.get("type"), str(item.get("call_id"))
        if kind == "function_call":
            namespace = item.get("namespace")
            arguments = str(item.get("arguments") or "")
            return [WireCall(call_id, str(item.get("name")), arguments, namespace)]
        if kind == "tool_search_call" and item.get("execution") != "server":
            arguments = arguments_text(item.get("arguments"))
            return [WireCall(call_id, "", arguments, is_search=True)]
        return []

    def answered(self, item: JSON) -> list[tuple[str, bool]]:
        """Return the ids of the calls that an item answers; the format has no failures."""
        is_output = str(item.get("type")).endswith("_output") and "call_id" in item
        return [(str(item["call_id"]), False)] if is_output else []

    def received(self, reply: JSON, body: JSON) -> JSON:
        """Return a provider's reply with calls as the client's request declares their tools."""
        known = _places(self.tools(body)[0])
        output = [_as_declared(item, known) for item in reply.get("output") or ()]
        return {**reply, "output": output} if output else reply

    def reply_items(self, reply: JSON) -> list[JSON]:
        """Return a provider's reply as the items that the next request has."""
        return [_sent_back(item) for item in reply.get("output") or ()]

    def settled(self, items: list[JSON], declared: Sequence[JSON]) -> list[JSON]:
        """Return a history whose calls name the namespaces of functions that a search loaded.

        The service puts such a function into a namespace of its own name, which clients that
        declared it plainly do not know.
        """
        plain = {entry.get("name") for entry in declared if entry.get("type") == "function"}
        loaded = {
            name for item in items for namespace, name in self.defined(item) if namespace is None
        } - plain
        return [
            {**item, "namespace": item["name"]}
            if item.get("type") == "function_call"
            and item.get("name") in loaded
            and "namespace" not in item
            else item
            for item in items
        ]

    def defined(self, item: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names of the functions that an item defines."""
        if item.get("type") not in _DEFINING:
            return []
        return [(each.namespace, each.name) for each in self.tools(item)[0]]

    def definitions_item(self, tools: Sequence[WireTool]) -> JSON:
        """Return the item from which on functions are defined."""
        return {"type": "additional_tools", "role": "developer", "tools": self.write_plain(tools)}

    def is_cut(self, reply: JSON) -> bool:
        """True if the provider cut a reply off, so that its last call may be broken."""
        return reply.get("status") == "incomplete"

    def waits_for_client(self, reply: JSON) -> bool:
        """True if a reply has a call of another kind without its output, or asks for approval."""
        items = reply.get("output") or ()
        answered = {i.get("call_id") for i in items if str(i.get("type")).endswith("_output")}
        return any(
            item.get("type") == "mcp_approval_request"
            or (
                str(item.get("type")).endswith("_call")
                and item.get("type") not in _CALLS
                and item.get("call_id") is not None
                and item["call_id"] not in answered
            )
            for item in items
        )

    def with_definitions(
        self, items: Sequence[JSON], tool_of: Callable[[str], WireTool | None]
    ) -> list[JSON]:
        """Return results with definitions as the client wrote them, in its namespaces."""
        return [
            {**item, "tools": _load(item.get("tools") or (), tool_of)}
            if item.get("type") == "tool_search_output"
            else item
            for item in items
        ]

    def visible_items(self, replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
        """Return the provider's replies as the client sends them back."""
        return [_sent_back(item) for item in _visible_output(replies, answers)]

    def wire(self, plan: RequestPlan, profile: ProviderProfile) -> JSON:
        """Return the request of a plan, which has no marks of the cache."""
        return to_wire(plan, profile, stream=False)

    def stream(self, holds: Callable[[str, str | None], bool], body: JSON) -> ReplyStream:
        """Return a reader of streamed replies."""
        return _ResponseStream(holds, body)

    def merged(self, replies: Sequence[JSON], answers: CallAnswers) -> JSON:
        """Return the one reply that the client sees."""
        return _visible_response(replies, answers)

    def echoed(self, reply: JSON, body: JSON) -> JSON:
        """Return a reply that repeats the client's tools and instructions."""
        return _echo(reply, body)


class _ResponseStream(ReplyStream):
    """A response whose output items come from one or more responses."""

    def __init__(self, holds: Callable[[str, str | None], bool], body: JSON) -> None:
        self._sequence = 0
        self._id: object = None
        self._declared = _places(OpenAIResponses().tools(body)[0])
        self._replies: list[JSON] = []
        self._released: dict[str, VisibleCall | None] = {}
        super().__init__(holds, body)

    def begin_step(self) -> None:
        """Prepare for the events of the provider's next response."""
        super().begin_step()
        self._response: JSON = {}
        self._items: dict[int, JSON] = {}
        self._end = "response.failed"

    def read(self, event: SentEvent) -> Iterator[SentEvent]:
        """Take in an event of the provider, and yield those that the client sees."""
        data, kind = event.data, str(event.data.get("type"))
        if isinstance(data.get("item"), dict):
            data = {**data, "item": _as_declared(data["item"], self._declared)}
        if kind in ENDS:
            self._end, self.is_complete = kind, True
            self._response = data.get("response") or {}
            self._replies.append(OpenAIResponses().received(self.reply(), self.body))
            return
        if kind in _BEGINS:
            if self._id is None or (not self._replies and kind != "response.created"):
                self._id = (data.get("response") or {}).get("id")
                self.has_begun = True
                shown = _echo(data.get("response") or {}, self.body)
                yield self._number(event.name, {**data, "response": shown})
            return
        if kind == "error":
            self.failed = True
        if "output_index" in data:
            placed = self._place(kind, data)
            if placed is not None:
                yield self._number(event.name, placed)
            return
        yield self._number(event.name, data)

    def _place(self, kind: str, data: JSON) -> JSON | None:
        """Return an event of an item with the client's index; None if the client lacks the item."""
        index, item = data["output_index"], data.get("item") or {}
        if kind == "response.output_item.added" and not self._is_held(item):
            self.show(index)
        if kind == "response.output_item.done":
            self._items[index] = item
            if index not in self.indexes:
                self._released[str(item.get("call_id"))] = None
        if index not in self.indexes:
            return None
        return {**data, "output_index": self.indexes[index]}

    def _is_held(self, item: JSON) -> bool:
        calls = OpenAIResponses().calls(item)
        if not calls:
            return False
        return calls[0].is_search or self.holds(calls[0].name, calls[0].namespace)

    def _number(self, name: str | None, data: JSON) -> SentEvent:
        number = self._sequence
        self._sequence += 1
        return SentEvent(name, {**data, "sequence_number": number})

    def reply(self) -> JSON:
        """Return the provider's last response, as a whole one would have come."""
        # Some services leave the output out of the last event.
        output = self._response.get("output") or [item for _, item in sorted(self._items.items())]
        return {**self._response, "output": output}

    def release(self, call_id: str, visible: VisibleCall) -> Iterator[SentEvent]:
        """Yield the events of a call that was held back."""
        self._released[call_id] = visible
        kept = next(i for i in self.reply()["output"] if str(i.get("call_id")) == call_id)
        item = _under(kept, visible)
        index, item_id = self.next_index, item.get("id")
        self.next_index += 1
        place = {"output_index": index, "item_id": item_id}
        begun = {**item, "arguments": "", "status": "in_progress"}
        for kind, more in (
            ("response.output_item.added", {"output_index": index, "item": begun}),
            ("response.function_call_arguments.delta", {**place, "delta": visible.arguments}),
            (
                "response.function_call_arguments.done",
                {**place, "name": visible.name, "arguments": visible.arguments},
            ),
            ("response.output_item.done", {"output_index": index, "item": item}),
        ):
            yield self._number(kind, {"type": kind, **more})

    def finish(self) -> Iterator[SentEvent]:
        """Yield the event that ends the response."""
        kind = self._end
        response = _echo(_visible_response(self._replies, self._released), self.body)
        yield self._number(kind, {"type": kind, "response": response})

    def error(self, status: int, body: JSON | None, message: str) -> Iterator[SentEvent]:
        """Yield `response.failed`, which ends a response."""
        error = (body or OpenAIResponses().error_body(status, message)).get("error")
        given = error if isinstance(error, dict) else {}
        failure = {
            "code": str(given.get("code") or given.get("type") or "server_error"),
            "message": str(given.get("message") or message),
        }
        response = {
            "id": self._id,
            "object": "response",
            "status": "failed",
            "model": self.body.get("model"),
            "output": _visible_output(self._replies, self._released),
            "error": failure,
        }
        kind = "response.failed"
        yield self._number(kind, {"type": kind, "response": response})


def _is_hosted_search(entry: JSON) -> bool:
    return entry.get("type") == "tool_search" and entry.get("execution") != "client"


def _load(definitions: object, tool_of: Callable[[str], WireTool | None]) -> list[JSON]:
    """Return the definitions that a search loads; each has `defer_loading`."""
    entries: list[ListedTool] = []
    for _, function in functions_in(definitions):
        wire = tool_of(str(function.get("name")))
        own = function if wire is None else {**wire.definition, "defer_loading": True}
        entries.append(ListedTool(wire and replace(wire, definition=own), own, deferred=True))
    return grouped_tools(entries)


def _sent_back(item: JSON) -> JSON:
    """Return an output item as input: an unfinished one has no place there."""
    return {k: v for k, v in item.items() if v is not None and (k, v) != ("status", "incomplete")}


def _places(tools: Iterable[WireTool]) -> frozenset[tuple[str | None, str]]:
    return frozenset((each.namespace, each.name) for each in tools)


def _as_declared(item: JSON, declared: Container[tuple[str | None, str]]) -> JSON:
    """Return a call as a client declared its function.

    A function that a search loaded has its own name as namespace.
    """
    namespace, name = item.get("namespace"), str(item.get("name"))
    if item.get("type") != "function_call" or namespace != name or (namespace, name) in declared:
        return item
    return {key: value for key, value in item.items() if key != "namespace"}


def _under(item: JSON, seen: VisibleCall) -> JSON:
    named = {**item, "name": seen.name, "arguments": seen.arguments}
    named.pop("namespace", None)
    return {**named, "namespace": seen.namespace} if seen.namespace else named


def _visible_output(replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
    outputs = (mappings_of(reply.get("output")) for reply in replies)
    return visible(outputs, answers, _call_id, _under)


def _call_id(item: JSON) -> str | None:
    return str(item["call_id"]) if "call_id" in item else None


def _visible_response(replies: Sequence[JSON], answers: CallAnswers) -> JSON:
    # The SDK refuses a response whose id changes, so the first reply's stays.
    shown = {"id": replies[0].get("id"), "output": _visible_output(replies, answers)}
    merged, last = {**replies[-1], **shown}, replies[-1]
    if last.get("usage"):
        merged["usage"] = _usage([reply.get("usage") or {} for reply in replies])
    return merged


def _echo(response: JSON, body: JSON) -> JSON:
    """Return a response that repeats the client's request, not the provider's."""
    own = {key: body.get(key) for key in _ECHOED if key in response}
    if own.get("tools", ()) is None:
        own["tools"] = []
    if own.get("tool_choice", "") is None:
        own["tool_choice"] = response["tool_choice"]
    return {**response, **own}
