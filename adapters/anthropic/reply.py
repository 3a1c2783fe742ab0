"""Replies in Anthropic's Messages format, whole and streamed.

Needs no SDK. Sources: Anthropic, "Messages API" (`Message`, `usage`, `stop_reason`);
"Streaming Messages" (events); "Prompt caching" (`input_tokens` leaves out what was read
from or written to the cache); "Tool search tool" (blocks of a server-side search).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tool_search.adapters.sdk.failures import ReplyFailedError, foreign_reply
from tool_search.adapters.sdk.reply_stream import ReplyReader, reply_end
from tool_search.adapters.wire.values import (
    arguments_object,
    canonical_names,
    count_of,
    is_whole,
    known,
    made_call,
    mapping_of,
    mappings_of,
    position_of,
    text_of,
)
from tool_search.core.messages import NativeReply, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import read_object
from tool_search.providers.base import (
    CallDelta,
    ReplyDelta,
    ReplyEnd,
    ReplyEvent,
    StopReason,
    Usage,
)

__all__ = [
    "EMPTY_TEXT",
    "THINKING",
    "StreamedBlock",
    "StreamedReply",
    "blocks_of",
    "blocks_text",
    "from_wire",
    "is_search",
    "is_search_block",
    "references_in",
]

# Blocks of Anthropic's Messages and what is in them, wherever they are read.
#
# Requests, replies, their streams and histories have them. Needs no SDK. Sources: Anthropic,
# "Messages API", "Streaming Messages" (deltas of a block), "Tool search tool" (references, blocks
# of a server-side search), "Citations" (`citations_delta`).


JSON = Mapping[str, Any]

EMPTY_TEXT = "…"
"""Text of a message without content: a request with an empty message is refused."""
THINKING = frozenset({"thinking", "redacted_thinking"})
"""The types of blocks of reasoning, which go back unchanged or not at all."""

_SEARCH_TOOL = "tool_search_tool"
# For each kind of delta: the field with its text, and the block's field that the text extends.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def blocks_of(message: JSON) -> list[dict[str, Any]]:
    """Return the blocks of a message or of a result; a text is one."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return mappings_of(content)


def blocks_text(blocks: Iterable[JSON]) -> str:
    """Return the text in blocks."""
    return "".join(text_of(b.get("text")) for b in blocks if b.get("type") == "text")


def is_search(tool: JSON) -> bool:
    """True for the service's own search in a list of tools: its type has a version's date."""
    return text_of(tool.get("type")).startswith(_SEARCH_TOOL)


def is_search_block(block: JSON) -> bool:
    """True if a block belongs to Claude's own server-side tool search."""
    kind = block.get("type")
    if kind == "server_tool_use":
        return text_of(block.get("name")).startswith(_SEARCH_TOOL)
    return kind == "tool_search_tool_result"


def references_in(block: JSON) -> list[dict[str, Any]]:
    """Return the references to tools in the result of a call or of a server-side search."""
    content = block.get("content")
    parts = content.get("tool_references") if isinstance(content, Mapping) else content
    return [part for part in mappings_of(parts) if part.get("type") == "tool_reference"]


@dataclass(slots=True)
class StreamedBlock:
    """A block of a stream, with the pieces received so far.

    Attributes:
        start: The block as it began.
        position: The number of calls before it.
        pieces: The pieces of its texts, by the field that they extend.
        is_closed: True if it has ended.
    """

    start: JSON
    position: int = 0
    pieces: dict[str, list[str]] = field(default_factory=dict)
    is_closed: bool = False
    _citations: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its type."""
        return text_of(self.start.get("type"))

    @property
    def is_slow(self) -> bool:
        """True while silence is expected: before its first piece, in thinking, in a call.

        The service sends a call's arguments by whole values, each once it is written.
        Source: Anthropic, "Streaming Messages", input JSON delta.
        """
        if self.is_closed:
            return False
        return not self.pieces or self.kind in ("thinking", "tool_use")

    def extend(self, delta: JSON) -> str:
        """Add a delta, and return its text."""
        said, extended = _DELTAS.get(text_of(delta.get("type")), ("", ""))
        text = text_of(delta.get(said))
        if text:
            self.pieces.setdefault(extended, []).append(text)
        elif "citation" in delta:
            self._citations.append(delta["citation"])
        return text

    def whole(self) -> dict[str, Any]:
        """Return the block with its pieces; a call's arguments as the model wrote them."""
        block = dict(self.start)
        if self._citations:
            block["citations"] = [*(block.get("citations") or ()), *self._citations]
        for key, pieces in self.pieces.items():
            if key != "input":
                block[key] = "".join([text_of(block.get(key)), *pieces])
        written = "".join(self.pieces.get("input", ()))
        if written.strip():
            # Broken or not: who reads a call takes text too. What the service runs is an object.
            block["input"] = written if self.kind == "tool_use" else read_object(written) or {}
        return block


_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "answer",
    "stop_sequence": "answer",
    "tool_use": "answer",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    # Zhipu's words, in its compatible endpoint too.
    "sensitive": "refusal",
}
_OF_THE_WHOLE = ("stop_reason", "stop_details", "id", "model")
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_CUTTING = ("length", "refusal")
_MAX_DETAIL_CHARS = 300
_NEUTRAL = ("text", "tool_use")


def from_wire(
    reply: object,
    plan: RequestPlan,
    profile: ProviderProfile,
    *,
    unfinished: Collection[int] = (),
) -> ReplyEnd:
    """Return the reply, with canonical names.

    Blocks of a server-side search are left out: the tools that it found are called by name.

    Args:
        reply: A `Message` as parsed JSON.
        plan: The request that is answered.
        profile: The model that answers.
        unfinished: The places of blocks that have not ended.

    Raises:
        ReplyFailedError: The reply reports an error, or is not a `Message`.
    """
    content = reply.get("content") if isinstance(reply, Mapping) else None
    if not isinstance(reply, Mapping) or not isinstance(content, list):
        raise ReplyFailedError(foreign_reply(reply, "message"))
    canonical = canonical_names(plan, profile.name_rule)
    reason = _STOP_REASONS.get(text_of(reply.get("stop_reason")), "other")
    cut = {*unfinished, *_cut_places(content, reason)}
    placed = [(place, block) for place, block in enumerate(content) if isinstance(block, Mapping)]
    uses = [pair for pair in placed if pair[1].get("type") == "tool_use"]
    calls = tuple(
        replace(_call(block, position, canonical), is_cut=place in cut)
        for position, (place, block) in enumerate(uses)
    )
    whole = [b for place, b in placed if place not in cut or b.get("type") in _NEUTRAL]
    return reply_end(
        reply,
        text=blocks_text(block for _, block in placed),
        calls=calls,
        native=_native(whole, calls, profile),
        reason="calls" if calls and reason in ("answer", "other") else reason,
        usage=_usage(reply.get("usage")),
        detail=_detail(reply.get("stop_details")),
    )


def _cut_places(content: list[Any], reason: StopReason) -> Iterator[int]:
    """Yield the places of the blocks that the reply's end has cut.

    A refusal cuts all calls. A limit of length cuts the last block: a call whose arguments are
    incomplete, or thinking without its signature.
    Source: Anthropic, "Handling stop reasons" (an incomplete tool use block).
    """
    for place, block in enumerate(map(mapping_of, content) if reason in _CUTTING else ()):
        kind, is_last = block.get("type"), place == len(content) - 1
        if kind == "tool_use" and (reason == "refusal" or is_last):
            if reason == "refusal" or not is_whole(block.get("input")):
                yield place
        elif is_last and (
            kind == "server_tool_use" or (kind == "thinking" and not block.get("signature"))
        ):
            yield place


def _detail(details: object) -> str:
    """Return the service's words about a refusal: `stop_details`, a category and a sentence."""
    said = mapping_of(details)
    parts = (text_of(said.get("category")), text_of(said.get("explanation")))
    return ": ".join(filter(None, parts))[:_MAX_DETAIL_CHARS]


class StreamedReply(ReplyReader):
    """A reader of one streamed reply, event by event."""

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        super().__init__(plan, profile)
        self._canonical = canonical_names(plan, profile.name_rule)
        self._message: dict[str, Any] = {"usage": {}}
        self._blocks: list[StreamedBlock] = []
        self._by_index: dict[int, StreamedBlock] = {}

    def read(self, event: object) -> Iterator[ReplyEvent]:
        """Yield what an event adds to the reply."""
        if not isinstance(event, Mapping):
            raise ReplyFailedError(foreign_reply(event, "message"))
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._open(event)
        elif kind == "content_block_delta":
            yield from self._extend(event)
        elif kind == "content_block_stop":
            yield from self._close(event)
        elif kind == "message_start":
            message = mapping_of(event.get("message"))
            self._record(message, message.get("usage"))
        elif kind == "message_delta":
            self._record(mapping_of(event.get("delta")), event.get("usage"))
        elif kind == "message_stop":
            self.progress.is_over = True
        elif kind == "error" or event.get("error"):
            raise ReplyFailedError(foreign_reply(event, "message"))
        self.progress.is_waiting = not self._blocks or self._blocks[-1].is_slow

    def end(self, *, announced: bool = False) -> Iterator[ReplyEvent]:  # noqa: ARG002 - Chat's word
        """Yield the whole reply, after its last event was read."""
        if not self.progress.is_over:
            raise self.broken("message_stop")
        content = [block.whole() for block in self._blocks]
        unfinished = [place for place, block in enumerate(self._blocks) if not block.is_closed]
        reply = {**self._message, "content": content}
        yield from_wire(reply, self._plan, self._profile, unfinished=unfinished)

    def _record(self, message: JSON, usage: object) -> None:
        """Record fields and counts of the whole reply; a null means "as before"."""
        said = known(message)
        self._message |= {key: said[key] for key in _OF_THE_WHOLE if key in said}
        counted = known(usage)
        self._message["usage"] |= {key: counted[key] for key in _COUNTS if key in counted}

    def _block(self, event: JSON) -> StreamedBlock | None:
        """Return the block that an event extends: by its index, or else the last one."""
        index = position_of(event.get("index"))
        if index is None:
            return self._blocks[-1] if self._blocks else None
        return self._by_index.get(index)

    def _add(self, event: JSON, block: StreamedBlock) -> None:
        self._blocks.append(block)
        index = position_of(event.get("index"))
        if index is not None:
            self._by_index[index] = block
        if block.kind == "tool_use":
            self.progress.calls += 1

    def _open(self, event: JSON) -> Iterator[ReplyEvent]:
        self.progress.count_event()
        start = mapping_of(event.get("content_block"))
        self._add(event, StreamedBlock(start, self.progress.calls))
        if start.get("type") == "text" and text_of(start.get("text")):
            yield ReplyDelta(start["text"])

    def _extend(self, event: JSON) -> Iterator[ReplyEvent]:
        delta = mapping_of(event.get("delta"))
        known = self._block(event)
        block = known or StreamedBlock({"type": "text", "text": ""}, self.progress.calls)
        text = block.extend(delta)
        if not text:
            return
        if known is None:
            self._add(event, block)
        self.progress.count_text(text)
        if delta["type"] == "text_delta":
            yield ReplyDelta(text)

    def _close(self, event: JSON) -> Iterator[ReplyEvent]:
        block = self._block(event)
        if block is None or block.is_closed:
            return
        self.progress.steps += 1
        block.is_closed = True
        if block.kind == "tool_use":
            yield CallDelta(_call(block.whole(), block.position, self._canonical))


def _call(block: JSON, place: int, canonical: Callable[[str], str]) -> ToolCall:
    return made_call(canonical, place, block.get("id"), block.get("name"), block.get("input"))


def _native(
    blocks: list[JSON], calls: Iterable[ToolCall], profile: ProviderProfile
) -> NativeReply | None:
    """Return the reply's own blocks, if the neutral form cannot carry them all."""
    kept = [b for b in blocks if text_of(b.get("type")) and not is_search_block(b)]
    if all(block["type"] in _NEUTRAL for block in kept):
        return None
    made = iter(calls)
    sendable = [
        _with_arguments(block, next(made)) if block["type"] == "tool_use" else block
        for block in kept
        if block["type"] != "text" or text_of(block.get("text")).strip()
    ]
    return NativeReply(profile.origin, tuple(sendable))


def _with_arguments(block: JSON, call: ToolCall) -> JSON:
    """Return a call's block as a request has it: with an id, and an object for arguments."""
    return {**block, "id": call.id, "input": arguments_object(call)}


def _usage(usage: object) -> Usage:
    counted = mapping_of(usage)
    read = count_of(counted.get("cache_read_input_tokens"))
    written = count_of(counted.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count_of(counted.get("input_tokens")) + read + written,
        output_tokens=count_of(counted.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
