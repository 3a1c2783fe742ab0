"""Replies in OpenAI's Responses format: the only place that reads their fields.

Needs no SDK. Sources: OpenAI, "Responses API" (the response and its output items),
"Streaming events", "Reasoning models", "Tool search" (a client's search is a call to
answer; the service's own stays in the reply).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tool_search.adapters.arguments import arguments_json, arguments_text
from tool_search.adapters.failures import (
    BROKEN_REPLY,
    MALFORMED_REPLY,
    Failure,
    ReplyFailedError,
    shown_body,
)
from tool_search.adapters.names import canonical_names
from tool_search.adapters.openai_failures import body_failure
from tool_search.adapters.openai_responses_wire import (
    KEPT_REPLY,
    brought_by,
    history_digest,
)
from tool_search.adapters.wire_values import count_of, known, list_of, mapping_of, text_of
from tool_search.messages import Message, NativeReply, RequestPlan, ToolCall
from tool_search.profiles import ProviderProfile
from tool_search.providers import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent, StopReason, Usage

__all__ = ["StreamedReply", "events_of", "from_wire"]

JSON = Mapping[str, Any]

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "content_filter": "refusal",
}
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_TEXT_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_BETWEEN_MESSAGES = "\n\n"
_SEARCH_NAME = "tool_search"
# What an item holds when a request sends it back; the rest is the service's to say.
_FIELDS = {
    "message": ("role", "phase"),
    "function_call": ("call_id", "name", "namespace"),
    "tool_search_call": ("call_id", "execution", "status", "arguments"),
    "tool_search_output": ("call_id", "execution", "status", "tools"),
    "reasoning": ("id", "summary", "content", "encrypted_content"),
}


def from_wire(reply: object, plan: RequestPlan, profile: ProviderProfile) -> ReplyEnd:
    """The reply under canonical names.

    Searches of the service's own are no calls: `NativeReply.found` has what they found.

    Args:
        reply: A response as parsed JSON.
        plan: What was asked.
        profile: Who was asked.

    Raises:
        ReplyFailedError: It reports an error, or is no response.
    """
    response = mapping_of(reply)
    failure = body_failure(reply, status=200)
    is_lost = response.get("status") in ("failed", "cancelled")
    if failure is not None or is_lost or not isinstance(response.get("output"), list):
        raise ReplyFailedError(failure or _malformed(reply))
    items = [item for item in response["output"] if text_of(mapping_of(item).get("type"))]
    called = [item for item in items if _is_call(item)]
    make = _call_maker(plan, profile)
    calls = tuple(make(item, index) for index, item in enumerate(called))
    texts = [text for item in items if (text := _text(item))]
    message = Message(
        role="assistant",
        content=_BETWEEN_MESSAGES.join(texts),
        tool_calls=calls,
        native=_native(items, calls, response, plan, profile),
    )
    return ReplyEnd(
        message=message,
        stop_reason=_stop_reason(response, items, calls=bool(calls)),
        usage=_usage(known(response.get("usage"))),
    )


def events_of(reply: object, plan: RequestPlan, profile: ProviderProfile) -> Iterator[ReplyEvent]:
    """The events of a reply that came whole.

    Raises:
        ReplyFailedError: It reports an error, or is no response.
    """
    end = from_wire(reply, plan, profile)
    if end.message.text:
        yield ReplyDelta(end.message.text)
    for call in end.message.tool_calls:
        yield CallDelta(call)
    yield end


class StreamedReply:
    """Reads one streamed reply, event by event.

    Args:
        plan: What was asked.
        profile: Who was asked.
    """

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        self._plan = plan
        self._profile = profile
        self._make = _call_maker(plan, profile)
        self._items: dict[int, JSON] = {}
        self._arguments: dict[int, list[str]] = {}
        self._speaking: int | None = None
        self._spoken: set[int] = set()
        self._response: JSON | None = None

    def read(self, event: object) -> Iterator[ReplyEvent]:
        """What an event adds to the reply.

        Raises:
            ReplyFailedError: It reports an error.
        """
        if not isinstance(event, Mapping):
            raise ReplyFailedError(_malformed(event))
        kind, index = event.get("type"), count_of(event.get("output_index"))
        if kind == "error" or event.get("error"):
            raise ReplyFailedError(_stream_failure(event))
        if kind in _TEXT_DELTAS and text_of(event.get("delta")):
            yield ReplyDelta(self._separator(index) + event["delta"])
        elif kind == "response.function_call_arguments.delta":
            self._arguments.setdefault(index, []).append(text_of(event.get("delta")))
        elif kind == "response.output_item.done":
            yield from self._close(index, mapping_of(event.get("item")))
        elif kind in _ENDS:
            self._response = mapping_of(event.get("response"))

    def end(self) -> Iterator[ReplyEvent]:
        """The whole reply, once its last event was read.

        Raises:
            ReplyFailedError: The last event has not come, or says that the reply failed.
        """
        if self._response is None:
            raise ReplyFailedError(
                Failure(detail="the stream ended before response.completed", code=BROKEN_REPLY)
            )
        # Some endpoints leave the output out of the last event.
        items = [self._items[index] for index in sorted(self._items)]
        whole = {**self._response, "output": items or self._response.get("output") or []}
        if not items and self._speaking is None:
            yield from events_of(whole, self._plan, self._profile)
        else:
            yield from_wire(whole, self._plan, self._profile)

    def _separator(self, index: int) -> str:
        """What stands before a message's first words, where another was before it."""
        before, self._speaking = self._speaking, index
        self._spoken.add(index)
        return "" if before in (None, index) else _BETWEEN_MESSAGES

    def _close(self, index: int, item: JSON) -> Iterator[ReplyEvent]:
        if item.get("type") == "function_call" and not item.get("arguments"):
            item = {**item, "arguments": "".join(self._arguments.get(index, ()))}
        position = sum(map(_is_call, self._items.values()))
        self._items[index] = item
        if _is_call(item):
            yield CallDelta(self._make(item, position))
        elif index not in self._spoken and _text(item):
            yield ReplyDelta(self._separator(index) + _text(item))


def _malformed(reply: object) -> Failure:
    return Failure(
        detail=f"the reply is no response: {shown_body(reply)!r}",
        status=200,
        code=MALFORMED_REPLY,
    )


def _stream_failure(event: JSON) -> Failure:
    """An error event: what it says stands at its top, or under `error`."""
    error = {key: value for key, value in event.items() if key != "type"}
    return body_failure(
        event if event.get("error") else {"error": error}, status=200
    ) or _malformed(event)


def _is_call(item: JSON) -> bool:
    """Whether an item is a call for us to answer."""
    kind = item.get("type")
    return kind == "function_call" or (
        kind == "tool_search_call" and item.get("execution") == "client"
    )


def _call_maker(plan: RequestPlan, profile: ProviderProfile) -> Callable[[JSON, int], ToolCall]:
    """Makes a call of an item and its place among the reply's calls."""
    canonical = canonical_names(plan, profile.name_rule)
    searches = (entry.tool.name for entry in plan.tools if entry.is_search)
    search = next(searches, _SEARCH_NAME)

    def make(item: JSON, position: int) -> ToolCall:
        is_search = item.get("type") == "tool_search_call"
        return ToolCall(
            id=text_of(item.get("call_id")) or f"call_{position}",
            name=search if is_search else canonical(text_of(item.get("name"))),
            arguments=arguments_text(item.get("arguments")),
        )

    return make


def _text(item: JSON) -> str:
    """What a message says, a refusal too."""
    if item.get("type") != "message":
        return ""
    parts = map(mapping_of, list_of(item.get("content")))
    return "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts)


def _stop_reason(response: JSON, items: Sequence[JSON], *, calls: bool) -> StopReason:
    if response.get("status") == "incomplete":
        details = mapping_of(response.get("incomplete_details"))
        return _INCOMPLETE.get(text_of(details.get("reason")), "other")
    if calls:
        return "calls"
    parts = [part for item in items for part in map(mapping_of, list_of(item.get("content")))]
    return "refusal" if any(part.get("type") == "refusal" for part in parts) else "answer"


def _native(
    items: Sequence[JSON],
    calls: tuple[ToolCall, ...],
    response: JSON,
    plan: RequestPlan,
    profile: ProviderProfile,
) -> NativeReply | None:
    """The reply's own items, where they hold what the neutral form cannot carry."""
    canonical = canonical_names(plan, profile.name_rule)
    found = tuple(canonical(name) for _, name in brought_by(items))
    made = iter(calls)
    sent = [_sendable(item, next(made) if _is_call(item) else None) for item in items]
    blocks = [item for item in sent if _is_worth_sending(item)]
    # Cut short, or before an empty message: refused without what it was about.
    while blocks and blocks[-1]["type"] == "reasoning":
        blocks.pop()
    if profile.keeps_replies and text_of(response.get("id")):
        digest = history_digest(plan, profile)
        blocks.append({"type": KEPT_REPLY, "id": response["id"], "input": digest})
    elif not any(map(_says_more, blocks)):
        return None
    return NativeReply(profile.origin, tuple(blocks), found)


def _is_worth_sending(item: JSON) -> bool:
    """Not an empty message, and not reasoning that the service would have to look up."""
    if item["type"] == "message":
        return bool(item["content"].strip())
    # DeepSeek and vLLM give reasoning as text: there is nothing to look up.
    return item["type"] != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _says_more(item: JSON) -> bool:
    if item["type"] == "tool_search_call":
        return item.get("execution") != "client"
    if item["type"] in ("message", "function_call"):
        return "phase" in item or "namespace" in item
    return True


def _sendable(item: JSON, call: ToolCall | None) -> dict[str, Any]:
    """An item as a request takes it back; one of an unknown kind unchanged.

    A message is told by its text: with parts, it would need the id that it had.
    """
    kind = item["type"]
    if kind not in _FIELDS:
        return dict(item)
    sent = {"type": kind}
    sent |= {key: item[key] for key in _FIELDS[kind] if item.get(key) is not None}
    if kind == "reasoning" and not sent.get("content"):
        sent.pop("content", None)  # OpenAI's own is empty, and not wanted back
    if kind == "message":
        sent["content"] = _text(item)
    elif call is not None:
        sent["call_id"] = call.id
        if kind == "function_call":
            sent["arguments"] = arguments_json(call)
    elif kind != "reasoning":
        sent["call_id"] = None
    return {key: _without_nulls(value) if key == "tools" else value for key, value in sent.items()}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _usage(usage: JSON) -> Usage:
    """The figures; `input_tokens` includes what came from the cache."""
    details = mapping_of(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=count_of(details.get("cached_tokens")),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
    )
