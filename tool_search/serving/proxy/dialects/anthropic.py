"""Anthropic's Messages, as a proxy reads and changes it.

Sources: Anthropic, "Messages API", "Streaming messages" (events, indexes of content blocks),
"Prompt caching" (`cache_control`), "Tool use" (results come first in a message), "Extended
thinking" (blocks go back unchanged).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tool_search.adapters.anthropic.reply import (
    EMPTY_TEXT,
    THINKING,
    StreamedBlock,
    blocks_of,
    blocks_text,
    is_search,
    is_search_block,
    references_in,
)
from tool_search.adapters.anthropic.wire import to_wire
from tool_search.adapters.hosts.chain import ChainItem
from tool_search.adapters.wire.values import fields_of, mappings_of
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import compact_json, read_json
from tool_search.serving.proxy.dialects.base import (
    JSON,
    CallAnswers,
    Emulated,
    ListedTool,
    ReplyStream,
    SentEvent,
    VisibleCall,
    WireCall,
    WireDialect,
    WireTool,
    summed_usage,
    undeferred,
    visible,
    without_space,
)

__all__ = ["AnthropicMessages"]

_PLAIN = (None, "custom")
_usage = partial(summed_usage, before="", after="output_tokens")


class AnthropicMessages(WireDialect):
    """Anthropic's Messages."""

    name = "anthropic"
    path = "/v1/messages"

    def listed(self, tools: Iterable[JSON]) -> list[ListedTool]:
        """Return the entries of a list of tools; `own` is what the provider runs itself."""
        return [
            ListedTool(WireTool(e, e["name"])) if _is_function(e) else ListedTool(None, e)
            for e in tools
        ]

    def defers(self, body: JSON) -> bool:
        """True if a client defers tools by itself, or refers to them."""
        return any(
            entry.get("defer_loading") or is_search(entry) for entry in body.get("tools") or ()
        ) or any(True for item in self.items(body) for _ in _references(item))

    def emulated(self, body: JSON) -> Emulated:
        """Return the request for a provider that does not know deferred tools.

        Without a search of the service, the client searches by itself, and the deferred tools
        that the history refers to are declared, in its order: so the list grows at its end.
        """
        items, tools = self.items(body), body.get("tools") or []
        found = dict.fromkeys(
            name
            for item in items
            for name in (*_references(item), *(call.name for call in self.calls(item)))
        )
        searches = any(map(is_search, tools))
        shown = [entry for entry in tools if not is_search(entry)]
        if not searches:
            required = (name for _, name in self.required_tools(body))
            shown = _show_deferred(shown, [*found, *required])
        emulated = {**body, "tools": shown, "messages": [_with_names(item) for item in items]}
        return Emulated(emulated, tuple(found), is_searched=searches)

    def write_tools(
        self, given: Sequence[JSON], listed: Sequence[ListedTool], others: Sequence[JSON]
    ) -> list[JSON]:
        """Return the list of tools: first the provider's own, which no discovery moves."""
        written = [_write_entry(entry) for entry in listed]
        marked = [entry["cache_control"] for entry in given if entry.get("cache_control")]
        own = next((i for i, entry in enumerate(listed) if entry.own is not None), None)
        # A mark on a tool that waits is refused, and one that is left out would be lost.
        if marked and own is not None and not any("cache_control" in each for each in written):
            written[own] = {**written[own], "cache_control": marked[-1]}
        return [*others, *written]

    def required_tools(self, body: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names that `tool_choice` names."""
        choice = body.get("tool_choice")
        if not isinstance(choice, dict) or not isinstance(choice.get("name"), str):
            return []
        return [(None, choice["name"])]

    def write_system(self, body: JSON, instruct: Callable[[str], str]) -> None:
        """Put the instructions of a search into a request, which is changed in place."""
        system = body.get("system")
        if not isinstance(system, list):
            body["system"] = instruct(system if isinstance(system, str) else "")
            return
        # Marks of the cache are on the client's own blocks, so these stay as they are.
        before = blocks_text(mappings_of(system))
        if instruct(before) != before:
            body["system"] = [*system, {"type": "text", "text": instruct("")}]

    def chain_item(self, item: JSON) -> ChainItem | None:
        """Return what no client changes of an item; None for one that clients may drop."""
        blocks = blocks_of(item)
        ids = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
        ids += [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
        # Clients add reminders to messages with results, and take them out later.
        text = "" if ids else blocks_text(blocks)
        text = without_space(text) if self.is_reply(item) else text
        return ChainItem(str(item.get("role")), text, tuple(ids))

    def asked(self, item: JSON) -> str | None:
        """Return the text of the user's message; None for any other item."""
        blocks = blocks_of(item)
        if item.get("role") != "user" or any(b.get("type") == "tool_result" for b in blocks):
            return None
        return blocks_text(blocks)

    def calls(self, item: JSON) -> list[WireCall]:
        """Return the calls in an item of the model, in order."""
        if not self.is_reply(item):
            return []
        return [
            WireCall(str(b.get("id")), str(b.get("name")), compact_json(b.get("input") or {}))
            for b in blocks_of(item)
            if b.get("type") == "tool_use"
        ]

    def answered(self, item: JSON) -> list[tuple[str, bool]]:
        """Return the ids of the calls that an item answers, and True for those that failed."""
        return [
            (str(b.get("tool_use_id")), bool(b.get("is_error")))
            for b in blocks_of(item)
            if b.get("type") == "tool_result"
        ]

    def reply_items(self, reply: JSON) -> list[JSON]:
        """Return a provider's reply as the items that the next request has."""
        content = reply.get("content") or []
        return [{"role": "assistant", "content": content}] if content else []

    def without_thinking(self, body: JSON, items: list[JSON]) -> tuple[JSON, list[JSON]]:
        """Return a request and its history without the thinking of earlier replies."""
        plain = [_without_thinking(item) if self.is_reply(item) else item for item in items]
        thinking = body.get("thinking")
        is_budget = isinstance(thinking, dict) and thinking.get("type") == "enabled"
        # Thinking with a budget is refused while calls of a reply without any are answered.
        if is_budget and plain and self.answered(plain[-1]):
            return {**body, "thinking": {"type": "disabled"}}, plain
        return body, plain

    def is_cut(self, reply: JSON) -> bool:
        """True if the provider cut a reply off, so that its last call may be broken."""
        return reply.get("stop_reason") in ("max_tokens", "model_context_window_exceeded")

    def visible_items(self, replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
        """Return the provider's replies as the client sends them back."""
        return self.reply_items({"content": _visible_blocks(replies, answers)})

    def wire(self, plan: RequestPlan, profile: ProviderProfile) -> JSON:
        """Return the request of a plan, without marks of the cache: those are the client's."""
        return to_wire(plan, replace(profile, cache="automatic"), stream=False)

    def with_later(self, items: Iterable[JSON], later: Sequence[JSON]) -> list[JSON]:
        """Return the items after a reply, with results that the client has not seen first."""
        rest = list(items)
        if not rest or rest[0].get("role") != "user":
            return [*later, *rest]
        blocks = [*(b for item in later for b in blocks_of(item)), *blocks_of(rest[0])]
        # A message is refused in which a result follows anything else.
        ordered = sorted(blocks, key=lambda block: block.get("type") != "tool_result")
        return [{**rest[0], "content": ordered}, *rest[1:]]

    def stream(self, holds: Callable[[str, str | None], bool], body: JSON) -> ReplyStream:
        """Return a reader of streamed replies."""
        return _MessageStream(holds, body)

    def merged(self, replies: Sequence[JSON], answers: CallAnswers) -> JSON:
        """Return the one reply that the client sees."""
        last, content = replies[-1], _visible_blocks(replies, answers)
        return {
            **last,
            "id": replies[0].get("id"),
            "content": content,
            "stop_reason": _stop_reason(
                last.get("stop_reason"), any(b.get("type") == "tool_use" for b in content)
            ),
            "usage": _usage([reply.get("usage") or {} for reply in replies]),
        }

    def error_body(self, status: int, message: str) -> JSON:
        """Return the dialect's form of an error of the proxy itself."""
        kind = "invalid_request_error" if 400 <= status < 500 else "api_error"
        return {"type": "error", "error": {"type": kind, "message": message}}


class _MessageStream(ReplyStream):
    """A message whose blocks come from one or more messages."""

    def __init__(self, holds: Callable[[str, str | None], bool], body: JSON) -> None:
        self._has_call = False
        super().__init__(holds, body)

    def begin_step(self) -> None:
        """Prepare for the events of the provider's next message."""
        super().begin_step()
        self._message: JSON = {}
        self._blocks: dict[int, StreamedBlock] = {}
        self._delta: JSON = {}

    def read(self, event: SentEvent) -> Iterator[SentEvent]:
        """Take in an event of the provider, and yield those that the client sees."""
        data, kind = event.data, event.data.get("type")
        if kind == "message_start":
            self._message = dict(data.get("message") or {})
            self.usages.append(dict(self._message.get("usage") or {}))
            if not self.has_begun:
                self.has_begun = True
                yield event
        elif kind == "message_delta":
            self._delta = data
            usage = self.usages[-1] if self.usages else {}
            usage.update({k: v for k, v in (data.get("usage") or {}).items() if v is not None})
        elif kind == "message_stop":
            self.is_complete = True
        elif kind == "error":
            self.failed = True
            yield event
        elif "index" in data:
            self._extend(data)
            if data["index"] in self.indexes:
                yield SentEvent(event.name, {**data, "index": self.indexes[data["index"]]})
        else:
            yield event

    def _extend(self, data: JSON) -> None:
        index, kind = data["index"], data.get("type")
        if kind == "content_block_start":
            block = self._blocks[index] = StreamedBlock(fields_of(data.get("content_block")))
            is_call = block.kind == "tool_use"
            if not is_call or not self.holds(str(block.start.get("name")), None):
                self.show(index)
                self._has_call |= is_call
        elif kind == "content_block_delta" and index in self._blocks:
            self._blocks[index].extend(fields_of(data.get("delta")))

    def reply(self) -> JSON:
        """Return the provider's last message, as a whole one would have come."""
        usage = self.usages[-1] if self.usages else {}
        content = [_with_arguments(block.whole()) for _, block in sorted(self._blocks.items())]
        return {**self._message, **(self._delta.get("delta") or {})} | {
            "content": content,
            "usage": usage,
        }

    def release(self, call_id: str, visible: VisibleCall) -> Iterator[SentEvent]:
        """Yield the events of a call that was held back."""
        self._has_call = True
        place, kept = next(
            (n, b.start) for n, b in self._blocks.items() if str(b.start.get("id")) == call_id
        )
        index, block = self.show(place), {**kept, "name": visible.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": visible.arguments}
        for kind, more in (
            ("content_block_start", {"content_block": block}),
            ("content_block_delta", {"delta": delta}),
            ("content_block_stop", {}),
        ):
            yield SentEvent(kind, {"type": kind, "index": index, **more})

    def finish(self) -> Iterator[SentEvent]:
        """Yield the events that end the message."""
        delta = dict(self._delta.get("delta") or {})
        delta["stop_reason"] = _stop_reason(delta.get("stop_reason"), self._has_call)
        end = {**self._delta, "type": "message_delta", "delta": delta}
        yield SentEvent("message_delta", {**end, "usage": _usage(self.usages)})
        yield SentEvent("message_stop", {"type": "message_stop"})

    def error(self, status: int, body: JSON | None, message: str) -> Iterator[SentEvent]:
        """Yield Anthropic's `error` event."""
        own = AnthropicMessages().error_body(status or 502, message)
        yield SentEvent("error", body if body and body.get("type") == "error" else own)


def _is_function(tool: JSON) -> bool:
    named = tool.get("type") in _PLAIN and isinstance(tool.get("name"), str)
    return named and "input_schema" in tool


def _show_deferred(tools: Sequence[JSON], found: Iterable[str]) -> list[JSON]:
    """Return the tools that are not deferred, then those that were found, without marks of it."""
    waiting = {str(tool.get("name")): tool for tool in tools if tool.get("defer_loading")}
    named = [waiting[name] for name in dict.fromkeys(found) if name in waiting]
    shown = [*(tool for tool in tools if not tool.get("defer_loading")), *named]
    return [*map(undeferred, shown)]


def _references(item: JSON) -> Iterator[str]:
    """Yield the names of tools that results in a message refer to."""
    found = (part for block in blocks_of(item) for part in references_in(block))
    yield from (str(part.get("tool_name")) for part in found)


def _with_names(item: JSON) -> JSON:
    """Return a message whose references are text, without searches of the service."""
    if not isinstance(item.get("content"), list):
        return item
    blocks = [block for block in blocks_of(item) if not is_search_block(block)]
    named = [_name(block) for block in blocks]
    return {**item, "content": named or [{"type": "text", "text": EMPTY_TEXT}]}


def _name(block: JSON) -> JSON:
    references = references_in(block) if block.get("type") == "tool_result" else []
    if not references:
        return block
    names = compact_json([str(part.get("tool_name")) for part in references])
    rest = [part for part in block["content"] if part not in references]
    return {**block, "content": [{"type": "text", "text": names}, *rest]}


def _write_entry(entry: ListedTool) -> JSON:
    """Return an entry of the list; a deferred tool has no mark, which would be refused."""
    if entry.wire is None or not entry.deferred:
        return entry.definition
    return {**_unmark(entry.definition), "defer_loading": True}


def _unmark(tool: JSON) -> JSON:
    return {key: value for key, value in tool.items() if key != "cache_control"}


def _without_thinking(message: JSON) -> JSON:
    blocks = [block for block in blocks_of(message) if block.get("type") not in THINKING]
    if len(blocks) == len(blocks_of(message)):
        return message
    return {**message, "content": blocks or [{"type": "text", "text": EMPTY_TEXT}]}


def _visible_blocks(replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
    return visible(map(blocks_of, replies), answers, _call_id, _under)


def _call_id(block: JSON) -> str | None:
    return str(block.get("id")) if block.get("type") == "tool_use" else None


def _under(block: JSON, seen: VisibleCall) -> JSON:
    return {**block, "name": seen.name, "input": _parse(seen.arguments)}


def _stop_reason(reason: object, has_call: bool) -> object:
    """Return the reason as it fits what the client sees: no call, no `tool_use`."""
    return "end_turn" if reason == "tool_use" and not has_call else reason


def _with_arguments(block: JSON) -> JSON:
    """Return a block with its arguments, which a stream gives as text, as an object."""
    given = block.get("input")
    return {**block, "input": _parse(given)} if isinstance(given, str) else block


def _parse(text: str) -> Any:
    """Return the arguments that a model wrote; what is broken stays as text."""
    try:
        return read_json(text or "{}")
    except (ValueError, RecursionError):
        return {"_raw": text}
