"""Replies in OpenAI's Responses format, whole and streamed.

Needs no SDK. Sources: OpenAI, "Responses API" (the response and its output items),
"Streaming events", "Reasoning models", "Tool search" (a client's search is a call to
answer; the service's own stays in the reply).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tool_search.adapters.openai_responses.parts import (
    ENDS,
    is_call,
    message_text,
    own_items,
    says_more,
)
from tool_search.adapters.openai_responses.wire import KEPT_REPLY, history_digest, loaded_by
from tool_search.adapters.sdk.failures import ReplyFailedError, body_failure, foreign_reply
from tool_search.adapters.sdk.reply_stream import ReplyReader, reply_end
from tool_search.adapters.wire.values import (
    canonical_names,
    count_of,
    is_whole,
    known,
    list_of,
    made_call,
    mapping_of,
    position_of,
    text_of,
)
from tool_search.core.messages import NativeReply, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.base import (
    CallDelta,
    ReplyDelta,
    ReplyEnd,
    ReplyEvent,
    StopReason,
    Usage,
)

__all__ = ["StreamedReply", "from_wire"]

JSON = Mapping[str, Any]

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "content_filter": "refusal",
}
_CUTTING = ("length", "refusal")
_TEXT_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_BETWEEN_MESSAGES = "\n\n"
_SEARCH_NAME = "tool_search"


def from_wire(
    reply: object, plan: RequestPlan, profile: ProviderProfile, *, unfinished: Collection[int] = ()
) -> ReplyEnd:
    """Return the reply, with canonical names.

    Searches by the service are not calls: `NativeReply.found` has their results.

    Args:
        reply: A response as parsed JSON.
        plan: The request that is answered.
        profile: The model that answers.
        unfinished: The places of items that have not ended.

    Raises:
        ReplyFailedError: The reply reports an error, or is not a response.
    """
    response = mapping_of(reply)
    failure = body_failure(reply, status=200)
    is_lost = response.get("status") in ("failed", "cancelled")
    if failure is not None or is_lost or not isinstance(response.get("output"), list):
        raise ReplyFailedError(failure or foreign_reply(reply, "response"))
    placed = [
        (place, item)
        for place, item in enumerate(response["output"])
        if text_of(mapping_of(item).get("type"))
    ]
    items = [item for _, item in placed]
    called = [(place, item) for place, item in placed if is_call(item)]
    reason = _stop_reason(response, items, calls=bool(called))
    make = _call_maker(plan, profile)
    calls = tuple(
        replace(make(item, index), is_cut=place in unfinished or _is_cut(item, reason))
        for index, (place, item) in enumerate(called)
    )
    return reply_end(
        reply,
        text=_BETWEEN_MESSAGES.join(filter(None, map(message_text, items))),
        calls=calls,
        native=_native(items, calls, response, plan, profile),
        reason=reason,
        usage=_usage(known(response.get("usage"))),
    )


def _is_cut(item: JSON, reason: StopReason) -> bool:
    """True if the end of its reply cut a call."""
    if item.get("status") == "incomplete" or reason == "refusal":
        return True
    return reason == "length" and not (
        isinstance(item.get("arguments"), Mapping) or is_whole(item.get("arguments"))
    )


@dataclass(slots=True)
class _OpenItem:
    """An item of a stream, with the pieces received so far."""

    place: int | None
    arrival: int
    item: JSON = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    has_spoken: bool = False
    has_begun: bool = False
    is_done: bool = False
    has_arguments: bool = False

    @property
    def is_slow(self) -> bool:
        """True while silence is expected: reasoning, and what has only been opened."""
        if self.is_done:
            return False
        return not self.has_begun or self.item.get("type") == "reasoning"

    def whole(self) -> JSON:
        """Return the item; if it has no arguments, with those that came in pieces."""
        if self.item.get("type") != "function_call" or self.item.get("arguments"):
            return self.item
        return {**self.item, "arguments": "".join(self.arguments)}


class StreamedReply(ReplyReader):
    """A reader of one streamed reply, event by event."""

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        super().__init__(plan, profile)
        self._make = _call_maker(plan, profile)
        self._items: list[_OpenItem] = []
        self._known: dict[int | str, _OpenItem] = {}
        self._speaking: _OpenItem | None = None
        self._made: int = 0
        self._response: JSON | None = None

    def read(self, event: object) -> Iterator[ReplyEvent]:
        """Yield what an event adds to the reply."""
        if not isinstance(event, Mapping):
            raise ReplyFailedError(foreign_reply(event, "response"))
        kind = text_of(event.get("type"))
        if kind == "error" or event.get("error"):
            # Its fields are at the top or under `error`.
            error = {key: value for key, value in event.items() if key != "type"}
            said = event if event.get("error") or not error else {"error": error}
            raise ReplyFailedError(foreign_reply(said, "response"))
        if kind.endswith(".delta"):
            yield from self._extend(kind, event)
        elif kind == "response.output_item.added":
            opened = self._item(event) or self._add(event)
            opened.item = mapping_of(event.get("item"))
        elif kind == "response.function_call_arguments.done":
            self._finish_arguments(event)
        elif kind == "response.output_item.done":
            yield from self._close(event)
        elif kind in ENDS:
            self.progress.steps += 1
            self._response = mapping_of(event.get("response"))
            self.progress.is_over = True
        self.progress.is_waiting = not self._items or self._items[-1].is_slow

    def end(self, *, announced: bool = False) -> Iterator[ReplyEvent]:  # noqa: ARG002 - Chat's word
        """Yield the whole reply, after its last event was read."""
        if self._response is None:
            raise self.broken("response.completed")
        items = self._in_order()
        output = list_of(self._response.get("output"))
        if len(output) > sum(item.is_done for item in items):
            # Items were not streamed to their end, so the output of the last event counts.
            end = from_wire(self._response, self._plan, self._profile)
            if self._speaking is None and end.message.text:
                yield ReplyDelta(end.message.text)
            yield from map(CallDelta, end.message.tool_calls[self._made :])
            yield end
            return
        # Some endpoints omit the output from the last event.
        unfinished = [n for n, item in enumerate(items) if not (item.is_done or item.has_arguments)]
        whole = {**self._response, "output": [item.whole() for item in items]}
        yield from_wire(whole, self._plan, self._profile, unfinished=unfinished)

    def _in_order(self) -> list[_OpenItem]:
        """Return the items by their places, or in their order if some have no place.

        An item that only opened counts if it is a call: it was cut.
        """
        kept = [
            item for item in self._items if item.is_done or item.item.get("type") == "function_call"
        ]
        if all(item.place is not None for item in kept):
            kept.sort(key=lambda item: (item.place or 0, item.arrival))
        return kept

    def _item(self, event: JSON) -> _OpenItem | None:
        """Return the item that an event extends, if it is known and open.

        Its place or its id decides: some endpoints omit `output_index`. An event that names
        neither extends the last item.
        """
        place = position_of(event.get("output_index"))
        named = text_of(event.get("item_id")) or text_of(mapping_of(event.get("item")).get("id"))
        found = self._known.get(named if place is None else place)
        if found is None and place is None and not named and self._items:
            found = self._items[-1]
        return found if found is not None and not found.is_done else None

    def _add(self, event: JSON) -> _OpenItem:
        place = position_of(event.get("output_index"))
        named = text_of(event.get("item_id")) or text_of(mapping_of(event.get("item")).get("id"))
        self.progress.count_event()
        item = _OpenItem(place, len(self._items))
        self._items.append(item)
        if place is not None:
            self._known[place] = item
        if named:
            self._known[named] = item
        return item

    def _extend(self, kind: str, event: JSON) -> Iterator[ReplyEvent]:
        delta = text_of(event.get("delta"))
        if not delta:
            return
        item = self._item(event) or self._add(event)
        item.has_begun = True
        if kind in _TEXT_DELTAS:
            self.progress.count_text(delta)
            item.has_spoken = True
            yield ReplyDelta(self._separator(item) + delta)
        elif kind == "response.function_call_arguments.delta":
            self.progress.count_text(delta)
            item.arguments.append(delta)
        else:
            # Reasoning and others: the end of the item has the whole of it.
            self.progress.steps += 1

    def _separator(self, item: _OpenItem) -> str:
        """Return the separator before a message's first words, if it follows another message."""
        before, self._speaking = self._speaking, item
        return "" if before is None or before is item else _BETWEEN_MESSAGES

    def _finish_arguments(self, event: JSON) -> None:
        """Record a call's whole arguments, which some endpoints send without its item."""
        item, written = self._item(event), event.get("arguments")
        if item is not None and isinstance(written, str):
            self.progress.count_event()
            item.arguments = [written]
            item.has_arguments = True

    def _close(self, event: JSON) -> Iterator[ReplyEvent]:
        self.progress.count_event()
        given = mapping_of(event.get("item"))
        place = position_of(event.get("output_index"))
        again = self._known.get(text_of(given.get("id")) if place is None else place)
        if again is not None and again.is_done and _is_same(again.item, given):
            again.item = given
            return
        opened = self._item(event) or self._add(event)
        opened.item, opened.is_done = given, True
        if place is None and (named := text_of(given.get("id"))):
            self._known[named] = opened
        item = opened.whole()
        if is_call(item):
            self.progress.calls += 1
            self._made += 1
            yield CallDelta(self._make(item, self._made - 1))
        elif not opened.has_spoken and message_text(item):
            yield ReplyDelta(self._separator(opened) + message_text(item))


def _is_same(item: JSON, other: JSON) -> bool:
    """True if an item was sent a second time."""
    return all(item.get(key) == other.get(key) for key in ("id", "call_id", "type"))


def _call_maker(plan: RequestPlan, profile: ProviderProfile) -> Callable[[JSON, int], ToolCall]:
    """Return a function that makes a call of an item and its place among the calls."""
    canonical = canonical_names(plan, profile.name_rule)
    searches = (entry.tool.name for entry in plan.tools if entry.is_search)
    search = next(searches, _SEARCH_NAME)

    def make(item: JSON, position: int) -> ToolCall:
        is_search = item.get("type") == "tool_search_call"
        name = search if is_search else item.get("name")
        names = str if is_search else canonical
        return made_call(names, position, item.get("call_id"), name, item.get("arguments"))

    return make


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
    """Return the reply's own items, if the neutral form cannot carry them."""
    canonical = canonical_names(plan, profile.name_rule)
    found = tuple(canonical(name) for _, name in loaded_by(items))
    blocks = own_items(items, calls)
    if profile.keeps_replies and text_of(response.get("id")):
        digest = history_digest(plan, profile)
        blocks.append({"type": KEPT_REPLY, "id": response["id"], "input": digest})
    elif not any(map(says_more, blocks)):
        return None
    return NativeReply(profile.origin, tuple(blocks), found)


def _usage(usage: JSON) -> Usage:
    """Return the usage; `input_tokens` includes tokens read from the cache."""
    details = mapping_of(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=count_of(details.get("cached_tokens")),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
    )
