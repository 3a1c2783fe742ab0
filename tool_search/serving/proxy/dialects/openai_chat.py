"""OpenAI's Chat Completions, as a proxy reads and changes it.

Sources: OpenAI, "Chat Completions API" (chunks, indexes of tool calls, `stream_options`),
"Function calling" (`tool_choice`, `allowed_tools`); DeepSeek, "Thinking mode" (a reply's
`reasoning_content` goes back with its calls); Moonshot AI, "Dynamic tool loading" (a system
message with `tools` and without content).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from uuid import uuid4

from tool_search.adapters.hosts.chain import ChainItem
from tool_search.adapters.openai_chat.parts import (
    StreamedCalls,
    called_name,
    defined_in,
    extend,
    function_name,
    instructed,
    message_text,
    required_names,
)
from tool_search.adapters.openai_chat.wire import to_wire
from tool_search.adapters.wire.values import mappings_of
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.serving.proxy.dialects.base import (
    JSON,
    CallAnswers,
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
from tool_search.serving.proxy.dialects.openai import OpenAIDialect

__all__ = ["OpenAIChat"]

_MAX_CHOICES = 1
_usage = partial(summed_usage, before="prompt_tokens", after="completion_tokens")


class OpenAIChat(OpenAIDialect):
    """OpenAI's Chat Completions."""

    name = "openai_chat"
    path = "/v1/chat/completions"

    def is_kept(self, body: JSON) -> bool:
        """True if the service keeps the reply to a request, under its id."""
        return body.get("store") is True

    def is_searchable(self, body: JSON) -> bool:
        """True if a hidden exchange can be part of the request.

        Several choices are several conversations, and would need a search each.
        """
        return bool(self.items(body)) and (body.get("n") or 1) <= _MAX_CHOICES

    def listed(self, tools: Iterable[JSON]) -> list[ListedTool]:
        """Return the entries of a list of tools; `own` is what the provider runs itself."""
        named = ((e, function_name(e) if e.get("type") == "function" else "") for e in tools)
        return [ListedTool(WireTool(e, name)) if name else ListedTool(None, e) for e, name in named]

    def write_tools(
        self,
        given: Sequence[JSON],  # noqa: ARG002  # for formats with marks in definitions
        listed: Sequence[ListedTool],
        others: Sequence[JSON],
    ) -> list[JSON]:
        """Return the list of tools: first the provider's own, which no discovery moves."""
        return [*others, *(entry.definition for entry in listed)]

    def required_tools(self, body: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names that `tool_choice` names."""
        return [(None, name) for name in required_names(body)]

    def write_system(self, body: JSON, instruct: Callable[[str], str]) -> None:
        """Put the instructions of a search into a request, which is changed in place."""
        body["messages"] = instructed(self.items(body), instruct)

    def chain_item(self, item: JSON) -> ChainItem | None:
        """Return what no client changes of an item; None for one that clients may drop."""
        ids = [str(call.get("id")) for call in mappings_of(item.get("tool_calls"))]
        if item.get("role") == "tool":
            ids = [str(item.get("tool_call_id"))]
        text = "" if ids else message_text(item)
        text = without_space(text) if self.is_reply(item) else text
        return ChainItem(str(item.get("role")), text, tuple(ids))

    def calls(self, item: JSON) -> list[WireCall]:
        """Return the calls in an item of the model, in order."""
        return [
            WireCall(str(call.get("id")), called_name(call), str(called.get("arguments") or ""))
            for call in mappings_of(item.get("tool_calls"))
            for called in (call.get("function") or {},)
        ]

    def answered(self, item: JSON) -> list[tuple[str, bool]]:
        """Return the ids of the calls that an item answers; the format has no failures."""
        return [(str(item.get("tool_call_id")), False)] if item.get("role") == "tool" else []

    def reply_items(self, reply: JSON) -> list[JSON]:
        """Return a provider's reply as the items that the next request has."""
        message = _message(reply)
        return [message] if message else []

    def is_cut(self, reply: JSON) -> bool:
        """True if the provider cut a reply off, so that its last call may be broken."""
        return bool(_choice(reply).get("finish_reason") == "length")

    def visible_items(self, replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
        """Return the provider's replies as the client sends them back."""
        return [_visible_message(replies, answers)]

    def wire(self, plan: RequestPlan, profile: ProviderProfile) -> JSON:
        """Return the request of a plan, which has no marks of the cache."""
        return to_wire(plan, profile, stream=False)

    def defined(self, item: JSON) -> list[tuple[str | None, str]]:
        """Return the functions that a system message defines; none has a namespace."""
        return [(None, name) for name in map(function_name, defined_in(item))]

    def without_defined(self, item: JSON, known: Collection[tuple[str | None, str]]) -> JSON | None:
        """Return a system message without functions that are defined: Kimi refuses a second one."""
        new = [each for each in defined_in(item) if (None, function_name(each)) not in known]
        if len(new) == len(defined_in(item)):
            return item
        return {**item, "tools": new} if new else None

    def definitions_item(self, tools: Sequence[WireTool]) -> JSON:
        """Return the system message from which on functions are defined."""
        return {"role": "system", "tools": self.write_plain(tools)}

    def with_definitions(
        self, items: Sequence[JSON], tool_of: Callable[[str], WireTool | None]
    ) -> list[JSON]:
        """Return results whose definitions are as the client wrote them."""
        return [
            {**item, "tools": [_as_written(each, tool_of) for each in defined]}
            if (defined := defined_in(item))
            else item
            for item in items
        ]

    def with_later(self, items: Iterable[JSON], later: Sequence[JSON]) -> list[JSON]:
        """Return the items after a reply, with results that the client has not seen first.

        Definitions follow all results of the reply: a message between them is refused.
        """
        rest = list(items)
        own = next((i for i, each in enumerate(rest) if each.get("role") != "tool"), len(rest))
        results = [item for item in later if not defined_in(item)]
        definitions = [item for item in later if defined_in(item)]
        return [*results, *rest[:own], *definitions, *rest[own:]]

    def stream(self, holds: Callable[[str, str | None], bool], body: JSON) -> ReplyStream:
        """Return a reader of streamed replies."""
        return _ChunkStream(holds, body)

    def merged(self, replies: Sequence[JSON], answers: CallAnswers) -> JSON:
        """Return the one reply that the client sees."""
        last, message = replies[-1], _visible_message(replies, answers)
        choice = dict(_choice(last))
        choice["message"] = message
        reason = choice.get("finish_reason")
        choice["finish_reason"] = _finish_reason(reason, bool(message.get("tool_calls")))
        merged = {**last, "id": replies[0].get("id"), "choices": [choice]}
        if last.get("usage"):
            merged["usage"] = _usage([reply.get("usage") or {} for reply in replies])
        return merged


class _ChunkStream(ReplyStream):
    """A completion whose chunks come from one or more completions."""

    def __init__(self, holds: Callable[[str, str | None], bool], body: JSON) -> None:
        self._first_id: object = None
        self._is_usage_apart = True
        self._base: JSON = {}
        super().__init__(holds, body)

    def begin_step(self) -> None:
        """Prepare for the chunks of the provider's next completion."""
        super().begin_step()
        self._message: JSON = {}
        self._calls = StreamedCalls()
        self._held: dict[int, bool] = {}
        self._reason: object = None
        self._usage: JSON | None = None

    def read(self, event: SentEvent) -> Iterator[SentEvent]:
        """Take in a chunk of the provider, and yield the part that the client sees."""
        data = event.data
        if data.get("error"):
            self.failed = True
            yield event
            return
        if data.get("usage"):
            if self._usage is None:
                self.usages.append({})
            self._usage = self.usages[-1] = data["usage"]
            self._is_usage_apart = not data.get("choices")
        if data.get("choices") is None:
            yield event
            return
        if self._first_id is None:
            self._first_id = data.get("id")
        base = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        self._base = {**base, "id": self._first_id}
        for choice in data["choices"]:
            self._reason = choice.get("finish_reason") or self._reason
            self.is_complete = self._reason is not None
            delta = self._visible(dict(choice.get("delta") or {}))
            if delta:
                visible = {**choice, "delta": delta, "finish_reason": None}
                yield SentEvent(event.name, {**self._base, "choices": [visible]})

    def _visible(self, delta: JSON) -> JSON:
        """Return the part of a delta that the client sees, and keep the whole."""
        calls = delta.pop("tool_calls", None) or ()
        extend(self._message, delta)
        if "role" in delta and self.has_begun:
            del delta["role"]
        shown = [call for each in calls for call in self._visible_call(each)]
        if shown:
            delta["tool_calls"] = shown
        # A delta with a role begins the reply, even if nothing else is in it.
        if not any(value not in (None, "", []) for value in delta.values()):
            return {}
        self.has_begun = True
        return delta

    def _visible_call(self, piece: JSON) -> Iterator[JSON]:
        call = self._calls.extend(piece)
        place = call.place
        if place not in self._held and call.name:
            self._held[place] = self.holds(call.name, None)
            if not self._held[place]:
                # Pieces that came before the name.
                yield {"index": self.show(place), **call.whole()}
                return
        if self._held.get(place) is False:
            yield {**piece, "index": self.indexes[place]}

    def reply(self) -> JSON:
        """Return the provider's last completion, as a whole one would have come."""
        # Some services give calls no id, and a result needs one.
        calls = [call.whole(f"call_{uuid4().hex}") for call in self._calls.calls]
        message = {"role": "assistant", "content": None, **self._message}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**self._base, "choices": [choice], "usage": self._usage}

    def release(self, call_id: str, visible: VisibleCall) -> Iterator[SentEvent]:
        """Yield the chunk of a call that was held back."""
        kept = next(call for call in self._calls.calls if call.id == call_id)
        call = {"index": self.show(kept.place), **_under(kept.whole(), visible)}
        yield self._chunk({"tool_calls": [call]}, None)

    def finish(self) -> Iterator[SentEvent]:
        """Yield the chunks that end the completion, with the usage where the provider has it."""
        last = self._chunk({}, _finish_reason(self._reason, self.next_index > 0))
        usage = {"usage": _usage(self.usages)} if self.usages else {}
        if self._is_usage_apart:
            yield last
            if usage:
                yield SentEvent(None, {**self._base, "choices": [], **usage})
        else:
            yield SentEvent(None, {**last.data, **usage})

    def _chunk(self, delta: JSON, reason: object) -> SentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return SentEvent(None, {**self._base, "choices": [choice]})

    def error(self, status: int, body: JSON | None, message: str) -> Iterator[SentEvent]:
        """Yield an event with the error, as services send it in a stream."""
        own = OpenAIChat().error_body(status or 502, message)
        yield SentEvent(None, body if body and "error" in body else own)

    def end_mark(self) -> bytes:
        """Return the mark that ends a stream."""
        return b"data: [DONE]\n\n"


def _choice(reply: JSON) -> JSON:
    choices = reply.get("choices")
    return choices[0] if isinstance(choices, list) and choices else {}


def _as_written(definition: JSON, tool_of: Callable[[str], WireTool | None]) -> JSON:
    tool = tool_of(function_name(definition))
    return definition if tool is None else tool.definition


def _message(reply: JSON) -> JSON:
    message = _choice(reply).get("message")
    return dict(message) if isinstance(message, dict) else {}


def _under(call: JSON, visible: VisibleCall) -> JSON:
    function = {
        **(call.get("function") or {}), "name": visible.name, "arguments": visible.arguments,
    }  # fmt: skip
    return {**call, "function": function}


def _visible_message(replies: Sequence[JSON], answers: CallAnswers) -> JSON:
    merged: JSON = {}
    messages = [*map(_message, replies)]
    for message in messages:
        extend(merged, {key: value for key, value in message.items() if key != "tool_calls"})
    given = (mappings_of(message.get("tool_calls")) for message in messages)
    calls = visible(given, answers, lambda call: str(call.get("id")), _under)
    return {**merged, "tool_calls": calls} if calls else merged


def _finish_reason(reason: object, has_call: bool) -> object:
    """Return the reason as it fits what the client sees: no call, no `tool_calls`."""
    return "stop" if reason == "tool_calls" and not has_call else reason
