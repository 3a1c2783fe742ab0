"""Replies in Anthropic's Messages format: the only place that reads their fields.

Needs no SDK. Sources: Anthropic, "Messages API" (`Message`, `usage`, `stop_reason`);
"Streaming Messages" (events); "Prompt caching" (`input_tokens` leaves out what was read
from or written to the cache); "Tool search tool" (blocks of a server-side search).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tool_search.adapters.arguments import arguments_object, arguments_text
from tool_search.adapters.failures import (
    BROKEN_REPLY,
    MALFORMED_REPLY,
    Failure,
    ReplyFailedError,
    error_in_body,
    shown_body,
)
from tool_search.adapters.names import canonical_names
from tool_search.adapters.wire_values import count_of, known, mapping_of, text_of
from tool_search.messages import Message, NativeReply, RequestPlan, ToolCall
from tool_search.profiles import ProviderProfile
from tool_search.providers import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent, StopReason, Usage

__all__ = ["StreamedReply", "body_failure", "events_of", "from_wire", "is_search_block"]

JSON = Mapping[str, Any]

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "answer",
    "stop_sequence": "answer",
    "tool_use": "answer",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
# Source: Anthropic, "Errors": the status that each type has outside a stream.
_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_SEARCH_TOOL = "tool_search_tool"
_NEUTRAL = ("text", "tool_use")


def from_wire(reply: object, plan: RequestPlan, profile: ProviderProfile) -> ReplyEnd:
    """The reply under canonical names.

    Blocks of a server-side search are left out: what it found is called by name.

    Args:
        reply: A `Message` as parsed JSON.
        plan: What was asked.
        profile: Who was asked.

    Raises:
        ReplyFailedError: It reports an error, or is no `Message`.
    """
    content = reply.get("content") if isinstance(reply, Mapping) else None
    if not isinstance(reply, Mapping) or not isinstance(content, list):
        raise ReplyFailedError(body_failure(reply, status=200) or _malformed(reply))
    canonical = canonical_names(plan, profile.name_rule)
    blocks = [block for block in content if isinstance(block, Mapping)]
    uses = (block for block in blocks if block.get("type") == "tool_use")
    calls = tuple(_call(block, index, canonical) for index, block in enumerate(uses))
    text = "".join(text_of(b.get("text")) for b in blocks if b.get("type") == "text")
    native = _native(blocks, calls, profile)
    message = Message(role="assistant", content=text, tool_calls=calls, native=native)
    return ReplyEnd(
        message=message,
        stop_reason=_stop_reason(reply.get("stop_reason"), calls=bool(calls)),
        usage=_usage(reply.get("usage")),
    )


def events_of(reply: object, plan: RequestPlan, profile: ProviderProfile) -> Iterator[ReplyEvent]:
    """The events of a reply that came whole.

    Raises:
        ReplyFailedError: It reports an error, or is no `Message`.
    """
    end = from_wire(reply, plan, profile)
    if end.message.text:
        yield ReplyDelta(end.message.text)
    for call in end.message.tool_calls:
        yield CallDelta(call)
    yield end


def body_failure(body: object, *, status: int | None) -> Failure | None:
    """The error that an answer reports, or None where it reports none.

    Args:
        body: Parsed JSON: `{"type": "error", "error": {...}}`.
        status: The HTTP status; 200 where the error came inside a stream.
    """
    found = error_in_body(body)
    if found is None:
        return None
    error, message = found
    kind = text_of(error.get("type"))
    details = error.get("details")
    code = text_of(details.get("error_code")) if isinstance(details, Mapping) else ""
    if status == 200:
        status = _STATUS_OF.get(kind)
    # Compatible endpoints have their own codes and no types.
    own = error.get("code")
    named = code or kind or (str(own) if own else None)
    return Failure(detail=message, status=status, code=named)


def is_search_block(block: JSON) -> bool:
    """Whether a block belongs to Claude's own server-side tool search."""
    kind = block.get("type")
    if kind == "server_tool_use":
        return text_of(block.get("name")).startswith(_SEARCH_TOOL)
    return kind == "tool_search_tool_result"


class StreamedReply:
    """Reads one streamed reply, event by event.

    Args:
        plan: What was asked.
        profile: Who was asked.
    """

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        self._plan = plan
        self._profile = profile
        self._canonical = canonical_names(plan, profile.name_rule)
        self._message: dict[str, Any] = {"usage": {}}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._positions: dict[int, int] = {}
        self._arguments: dict[int, str] = {}
        self._complete = False

    def read(self, event: object) -> Iterator[ReplyEvent]:
        """What an event adds to the reply.

        Raises:
            ReplyFailedError: It reports an error.
        """
        if not isinstance(event, Mapping):
            raise ReplyFailedError(_malformed(event))
        kind = event.get("type")
        if kind == "message_start":
            self._start(mapping_of(event.get("message")))
        elif kind == "content_block_start":
            yield from self._open(
                count_of(event.get("index")), mapping_of(event.get("content_block"))
            )
        elif kind == "content_block_delta":
            yield from self._extend(count_of(event.get("index")), mapping_of(event.get("delta")))
        elif kind == "content_block_stop":
            yield from self._close(count_of(event.get("index")))
        elif kind == "message_delta":
            self._message.update(known(event.get("delta")))
            self._message["usage"].update(known(event.get("usage")))
        elif kind == "message_stop":
            self._complete = True
        elif kind == "error":
            raise ReplyFailedError(body_failure(event, status=200) or _malformed(event))

    def end(self) -> Iterator[ReplyEvent]:
        """The whole reply, once its last event was read.

        Raises:
            ReplyFailedError: The last event has not come.
        """
        if not self._complete:
            raise ReplyFailedError(
                Failure(detail="the stream ended before message_stop", code=BROKEN_REPLY)
            )
        content = [self._blocks[index] for index in sorted(self._blocks)]
        yield from_wire({**self._message, "content": content}, self._plan, self._profile)

    def _start(self, message: JSON) -> None:
        self._message.update(known(message))
        self._message["usage"] = known(message.get("usage"))

    def _open(self, index: int, block: JSON) -> Iterator[ReplyEvent]:
        position = sum(opened.get("type") == "tool_use" for opened in self._blocks.values())
        self._blocks[index] = dict(block)
        self._positions[index] = position
        if block.get("type") == "text" and text_of(block.get("text")):
            yield ReplyDelta(block["text"])

    def _extend(self, index: int, delta: JSON) -> Iterator[ReplyEvent]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        kind = delta.get("type")
        if kind == "text_delta" and text_of(delta.get("text")):
            block["text"] = f"{text_of(block.get('text'))}{delta['text']}"
            yield ReplyDelta(delta["text"])
        elif kind == "thinking_delta":
            block["thinking"] = text_of(block.get("thinking")) + text_of(delta.get("thinking"))
        elif kind == "signature_delta":
            block["signature"] = text_of(block.get("signature")) + text_of(delta.get("signature"))
        elif kind == "input_json_delta":
            piece = text_of(delta.get("partial_json"))
            self._arguments[index] = self._arguments.get(index, "") + piece

    def _close(self, index: int) -> Iterator[ReplyEvent]:
        block = self._blocks.get(index, {})
        if self._arguments.get(index, "").strip():
            # As the model wrote it, broken or not: `from_wire` takes text too.
            block["input"] = self._arguments[index]
        if block.get("type") == "tool_use":
            yield CallDelta(_call(block, self._positions[index], self._canonical))


def _call(block: JSON, position: int, canonical: Callable[[str], str]) -> ToolCall:
    return ToolCall(
        id=text_of(block.get("id")) or f"call_{position}",
        name=canonical(text_of(block.get("name"))),
        arguments=arguments_text(block.get("input")),
    )


def _native(
    blocks: list[JSON], calls: Iterable[ToolCall], profile: ProviderProfile
) -> NativeReply | None:
    """The reply's own blocks, where it has some that the neutral form cannot carry."""
    kept = [b for b in blocks if text_of(b.get("type")) and not is_search_block(b)]
    if all(block["type"] in _NEUTRAL for block in kept):
        return None
    made = iter(calls)
    sendable = [
        _called(block, next(made)) if block["type"] == "tool_use" else block
        for block in kept
        if block["type"] != "text" or text_of(block.get("text")).strip()
    ]
    return NativeReply(profile.origin, tuple(sendable))


def _called(block: JSON, call: ToolCall) -> JSON:
    """A call's block as a request takes it back: with an id, and an object for arguments."""
    return {**block, "id": call.id, "input": arguments_object(call)}


def _stop_reason(reason: object, *, calls: bool) -> StopReason:
    known_reason = _STOP_REASONS.get(text_of(reason), "other")
    return "calls" if calls and known_reason in ("answer", "other") else known_reason


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


def _malformed(reply: object) -> Failure:
    return Failure(
        detail=f"the reply is no message: {shown_body(reply)!r}", status=200, code=MALFORMED_REPLY
    )
