"""Replies in OpenAI's Chat Completions format: the only place that reads their fields.

Needs no SDK. Sources: OpenAI, "Chat Completions API" (the completion and its chunks);
DeepSeek, "Thinking mode" and "Context caching" (`reasoning_content`,
`prompt_cache_hit_tokens`); OpenRouter, "Reasoning tokens" (`reasoning`, `reasoning_details`
and the merging of their chunks); Moonshot, "Chat" (`cached_tokens`, usage within a choice).
Endpoints that are only compatible differ in ways that the comments name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tool_search.adapters.arguments import arguments_text
from tool_search.adapters.failures import (
    BROKEN_REPLY,
    MALFORMED_REPLY,
    Failure,
    ReplyFailedError,
    shown_body,
)
from tool_search.adapters.names import canonical_names
from tool_search.adapters.openai_chat_wire import REASONING_FIELDS
from tool_search.adapters.openai_failures import body_failure
from tool_search.adapters.wire_values import count_of, known, list_of, mapping_of, text_of
from tool_search.messages import Message, NativeReply, RequestPlan, ToolCall
from tool_search.profiles import ProviderProfile
from tool_search.providers import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent, StopReason, Usage
from tool_search.schema import compact_json

__all__ = ["StreamedReply", "events_of", "from_wire"]

JSON = Mapping[str, Any]

# More than any model writes: 128,000 tokens are about half of it. What is longer is not kept.
_MAX_REASONING_CHARS = 1_000_000

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "answer",
    "tool_calls": "answer",
    "function_call": "answer",
    "length": "length",
    "content_filter": "refusal",
}


def from_wire(reply: object, plan: RequestPlan, profile: ProviderProfile) -> ReplyEnd:
    """The reply under canonical names.

    Args:
        reply: A completion as parsed JSON.
        plan: What was asked.
        profile: Who was asked.

    Raises:
        ReplyFailedError: It reports an error, or is no completion.
    """
    choices = list_of(mapping_of(reply).get("choices"))
    choice = mapping_of(choices[0]) if choices else {}
    if not isinstance(choice.get("message"), Mapping):
        raise ReplyFailedError(body_failure(reply, status=200) or _malformed(reply))
    wire = choice["message"]
    given = [mapping_of(call) for call in list_of(wire.get("tool_calls"))]
    calls = _calls(given, canonical_names(plan, profile.name_rule))
    refusal = text_of(wire.get("refusal"))
    message = Message(
        role="assistant",
        content=_content(wire.get("content")) or refusal,
        tool_calls=calls,
        native=_native(wire, given, profile),
    )
    reason = "refusal" if refusal else _STOP_REASONS.get(text_of(choice.get("finish_reason")))
    return ReplyEnd(
        message=message,
        # Some endpoints say "stop" although there are calls.
        stop_reason="calls" if calls and reason in ("answer", None) else reason or "other",
        # Moonshot counts within the choice.
        usage=_usage(known(mapping_of(reply).get("usage")) or known(choice.get("usage"))),
    )


def _calls(given: Iterable[JSON], canonical: Callable[[str], str]) -> tuple[ToolCall, ...]:
    functions = ((call, mapping_of(call.get("function"))) for call in given)
    return tuple(
        ToolCall(
            id=text_of(call.get("id")) or f"call_{index}",
            name=canonical(text_of(function.get("name"))),
            arguments=arguments_text(function.get("arguments")),
        )
        for index, (call, function) in enumerate(functions)
    )


def events_of(reply: object, plan: RequestPlan, profile: ProviderProfile) -> Iterator[ReplyEvent]:
    """The events of a reply that came whole.

    Raises:
        ReplyFailedError: It reports an error, or is no completion.
    """
    end = from_wire(reply, plan, profile)
    if end.message.text:
        yield ReplyDelta(end.message.text)
    for call in end.message.tool_calls:
        yield CallDelta(call)
    yield end


class StreamedReply:
    """Reads one streamed reply, chunk by chunk.

    Args:
        plan: What was asked.
        profile: Who was asked.
    """

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        self._plan = plan
        self._profile = profile
        self._texts: dict[str, list[str]] = {}
        self._details: list[_Detail] = []
        self._calls: list[_OpenCall] = []
        self._finish_reason = ""
        self._usage: dict[str, Any] = {}

    def read(self, chunk: object) -> Iterator[ReplyEvent]:
        """What a chunk adds to the reply.

        Raises:
            ReplyFailedError: It reports an error.
        """
        failure = body_failure(chunk, status=200)
        if failure is not None or not isinstance(chunk, Mapping):
            raise ReplyFailedError(failure or _malformed(chunk))
        self._usage = known(chunk.get("usage")) or self._usage
        for choice in map(mapping_of, list_of(chunk.get("choices"))):
            if choice.get("index") not in (0, None):
                continue
            self._usage = known(choice.get("usage")) or self._usage
            yield from self._extend(mapping_of(choice.get("delta")))
            self._finish_reason = text_of(choice.get("finish_reason")) or self._finish_reason

    def end(self) -> Iterator[ReplyEvent]:
        """The calls and the whole reply, once its last chunk was read.

        Raises:
            ReplyFailedError: The chunk with the finish reason has not come.
        """
        if not self._finish_reason:
            raise ReplyFailedError(
                Failure(detail="the stream ended before its finish_reason", code=BROKEN_REPLY)
            )
        message: dict[str, Any] = {key: "".join(parts) for key, parts in self._texts.items()}
        message["tool_calls"] = [call.whole() for call in self._calls]
        message["reasoning_details"] = [detail.whole() for detail in self._details]
        choice = {"message": message, "finish_reason": self._finish_reason}
        end = from_wire({"choices": [choice], "usage": self._usage}, self._plan, self._profile)
        # Only now is it sure that a call is whole: parallel ones may come interleaved.
        yield from map(CallDelta, end.message.tool_calls)
        yield end

    def _extend(self, delta: JSON) -> Iterator[ReplyEvent]:
        for key in ("content", "refusal", "reasoning_content", "reasoning"):
            text = _content(delta.get(key))
            if text:
                self._texts.setdefault(key, []).append(text)
            if text and key in ("content", "refusal"):
                yield ReplyDelta(text)
        for detail in map(mapping_of, list_of(delta.get("reasoning_details"))):
            if not (self._details and self._details[-1].extend(detail)):
                self._details.append(_Detail(detail))
        for call in map(mapping_of, list_of(delta.get("tool_calls"))):
            self._call(call).extend(call)

    def _call(self, delta: JSON) -> _OpenCall:
        """The call that a delta belongs to.

        By its id where it has one, since some endpoints give every call the index 0 or
        none; else by its index. A second name under one index is another call, unless
        the first one's arguments are still open.
        """
        call_id, index = text_of(delta.get("id")), delta.get("index")
        name = text_of(mapping_of(delta.get("function")).get("name"))
        alike = [call for call in self._calls if index is None or call.index == index]
        same_id = [call for call in alike if call_id and call.id == call_id]
        if same_id:
            return same_id[-1]
        if alike and not (name and alike[-1].is_over(call_id)):
            return alike[-1]
        self._calls.append(_OpenCall(index=index))
        return self._calls[-1]


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    """A call of a stream, as far as it has come."""

    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: object = None

    def is_over(self, next_id: str) -> bool:
        """Whether a delta with a name and this id begins another call."""
        if not self.name:
            return False
        if next_id and self.id:
            return next_id != self.id
        return ToolCall(id="", name="", arguments="".join(self.arguments) or "?").is_readable

    def extend(self, delta: JSON) -> None:
        function = mapping_of(delta.get("function"))
        self.id = self.id or text_of(delta.get("id"))
        self.name = self.name or text_of(function.get("name"))
        self.extra_content = delta.get("extra_content") or self.extra_content
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self.arguments.append(arguments)
        elif arguments is not None:
            self.arguments = [arguments_text(arguments)]

    def whole(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "function": function, "extra_content": self.extra_content}


class _Detail:
    """One entry of `reasoning_details`, as far as it has come.

    Args:
        first: Its first chunk.
    """

    def __init__(self, first: JSON) -> None:
        self._fields = dict(first)
        self._parts = {key: [first[key]] for key in ("text", "summary") if text_of(first.get(key))}

    def extend(self, chunk: JSON) -> bool:
        """Add a chunk; return False if it begins the next entry.

        Text and summaries come in pieces under one index, a signature after the text.
        """
        kind = chunk.get("type")
        alike = all(chunk.get(key) == self._fields.get(key) for key in ("type", "index"))
        if not alike or kind not in ("reasoning.text", "reasoning.summary"):
            return False
        if chunk.get("id") not in (None, self._fields.get("id")) and self._fields.get("id"):
            return False
        for key, value in chunk.items():
            if key in ("text", "summary") and isinstance(value, str):
                self._parts.setdefault(key, []).append(value)
            elif value is not None:
                self._fields[key] = value
        return True

    def whole(self) -> dict[str, Any]:
        return {**self._fields, **{key: "".join(parts) for key, parts in self._parts.items()}}


def _content(content: object) -> str:
    """The text; some endpoints (Mistral) send parts in its place."""
    if isinstance(content, str):
        return content
    parts = map(mapping_of, list_of(content))
    return "".join(text_of(part.get("text")) for part in parts if part.get("type") == "text")


def _native(wire: JSON, given: Sequence[JSON], profile: ProviderProfile) -> NativeReply | None:
    """Return the reasoning and the signatures of calls, which the neutral form cannot carry."""
    own = _reasoning(wire)
    extras = [sent.get("extra_content") for sent in given]
    if any(extras):
        # By the call's place: ids may repeat, and then change in the history.
        own["extra_content"] = extras
    return NativeReply(profile.origin, (own,)) if own else None


def _reasoning(wire: JSON) -> dict[str, Any]:
    """Return the reply's reasoning by the most exact of its names, if it is not too long."""
    for name in REASONING_FIELDS:
        value = wire.get(name)
        given = isinstance(value, str) or (
            name == "reasoning_details" and all(isinstance(d, Mapping) for d in list_of(value))
        )
        if value and given:
            size = len(value) if isinstance(value, str) else len(compact_json(value))
            return {name: value} if size <= _MAX_REASONING_CHARS else {}
    return {}


def _usage(usage: JSON) -> Usage:
    """The figures; `prompt_tokens` includes what came from the cache."""
    details = mapping_of(usage.get("prompt_tokens_details"))
    read = (
        details.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cached_tokens"),
    )
    return Usage(
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=count_of(usage.get("completion_tokens")),
        cache_read_tokens=max(map(count_of, read)),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
    )


def _malformed(reply: object) -> Failure:
    return Failure(
        detail=f"the reply is no completion: {shown_body(reply)!r}",
        status=200,
        code=MALFORMED_REPLY,
    )
