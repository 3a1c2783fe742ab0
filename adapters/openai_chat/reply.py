"""Replies in OpenAI's Chat Completions format, whole and streamed.

Needs no SDK. Sources: OpenAI, "Chat Completions API" (the completion and its chunks);
DeepSeek, "Thinking mode" and "Context caching" (`reasoning_content`,
`prompt_cache_hit_tokens`); OpenRouter, "Reasoning tokens" (`reasoning`, `reasoning_details`
and the merging of their chunks); Moonshot, "Chat" (`cached_tokens`, usage within a choice).
Comments name the differences of compatible endpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tool_search.adapters.openai_chat.parts import StreamedCalls
from tool_search.adapters.openai_chat.wire import REASONING_FIELDS
from tool_search.adapters.sdk.failures import Failure, ReplyFailedError, body_failure, foreign_reply
from tool_search.adapters.sdk.reply_stream import ReplyReader, reply_end
from tool_search.adapters.wire.values import (
    canonical_names,
    count_of,
    is_whole,
    known,
    list_of,
    made_call,
    mapping_of,
    named_of,
    text_of,
)
from tool_search.core.messages import NativeReply, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import compact_json
from tool_search.providers.base import (
    CallDelta,
    ReplyDelta,
    ReplyEnd,
    ReplyEvent,
    StopReason,
    Usage,
)

__all__ = ["StreamedReply", "from_wire", "reasoning_of"]

JSON = Mapping[str, Any]

# More than any model writes: 128,000 tokens are about half of it. Longer reasoning is not kept.
_MAX_REASONING_CHARS = 1_000_000

# In lower case. Sources: OpenAI; Mistral (`model_length`); Zhipu (`sensitive`,
# `model_context_window_exceeded`); Google's own words, which gateways pass through; Hugging
# Face (`eos_token`, `stop_sequence`); Anthropic's, if a gateway forgets to translate.
_STOP_REASONS: dict[str, StopReason] = {
    **dict.fromkeys(
        ("stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence",
         "tool_use", "complete", "normal"),
        "answer",
    ),
    **dict.fromkeys(
        ("length", "max_tokens", "model_length", "model_context_window_exceeded"), "length"
    ),
    **dict.fromkeys(
        ("content_filter", "refusal", "sensitive", "safety", "recitation", "blocklist",
         "prohibited_content", "spii", "image_safety"),
        "refusal",
    ),
}  # fmt: skip
# The service did not finish: another provider may. Sources: DeepSeek
# (`insufficient_system_resource`), Zhipu (`network_error`), Mistral and OpenRouter (`error`),
# vLLM and SGLang (`abort`).
_FAILURES = ("insufficient_system_resource", "network_error", "error", "abort")
_CUTTING = ("length", "refusal")
_OF_THE_END = ("finish_reason", "error")


def from_wire(
    reply: object, plan: RequestPlan, profile: ProviderProfile, *, is_finished: bool = True
) -> ReplyEnd:
    """Return the reply, with canonical names.

    Args:
        reply: A completion as parsed JSON.
        plan: The request that is answered.
        profile: The model that answers.
        is_finished: False if the reply has no finish reason.

    Raises:
        ReplyFailedError: The reply reports an error, or is not a completion.
    """
    choices = list_of(mapping_of(reply).get("choices"))
    choice = mapping_of(choices[0]) if choices else {}
    wire = choice.get("message")
    if wire is None and choice.get("finish_reason") == "content_filter":
        wire = {}  # Azure's filter leaves the message out
    if not isinstance(wire, Mapping):
        raise ReplyFailedError(foreign_reply(reply, "completion"))
    given = [mapping_of(call) for call in list_of(wire.get("tool_calls"))]
    refusal = text_of(wire.get("refusal"))
    reason = _reason(choice) if not refusal else "refusal"
    whole = is_finished and reason not in _CUTTING
    canonical = canonical_names(plan, profile.name_rule)
    calls = tuple(
        replace(
            made_call(canonical, place, call.get("id"), said.get("name"), said.get("arguments")),
            is_cut=not whole and (reason == "refusal" or not _is_whole(said.get("arguments"))),
        )
        for place, call in enumerate(given)
        for said in (mapping_of(call.get("function")),)
    )
    return reply_end(
        reply,
        text=_content(wire.get("content")) or refusal,
        calls=calls,
        native=_native(wire, given, profile),
        # Some endpoints send "stop" although there are calls.
        reason="calls" if calls and reason in ("answer", "other") else reason,
        # Moonshot counts within the choice.
        usage=_usage(known(mapping_of(reply).get("usage")) or known(choice.get("usage"))),
    )


def _reason(choice: JSON) -> StopReason:
    """Return the reason for the end of a reply.

    Raises:
        ReplyFailedError: The service names a failure of its own.
    """
    named = text_of(choice.get("finish_reason"))
    # Gemini's endpoint writes "content_filter: SAFETY" and "function_call_filter: ...".
    reason = named.partition(":")[0].strip().lower()
    if reason in _FAILURES:
        failure = body_failure(choice, status=200)
        raise ReplyFailedError(
            failure
            or Failure(detail=f"the service ended the reply: {named!r}", status=503, code=reason)
        )
    return _STOP_REASONS.get(reason, "other")


def _is_whole(arguments: object) -> bool:
    return isinstance(arguments, Mapping) or is_whole(arguments)


def refused_call(body: object) -> dict[str, Any] | None:
    """Return a reply with the call that a service has refused for its name; None: there is none.

    A tool that waits to be found may be called without a search, which Groq takes for an error:
    its `failed_generation` has the call. Harmony's marks may follow the name (mastra 9688).
    """
    error = mapping_of(mapping_of(body).get("error")) or mapping_of(body)
    if "not in request.tools" not in text_of(error.get("message")):
        return None
    try:
        call = mapping_of(json.loads(text_of(error.get("failed_generation"))))
    except (ValueError, RecursionError):
        return None
    name, arguments = text_of(call.get("name")).partition("<|")[0], call.get("arguments")
    if not name or not isinstance(arguments, Mapping | str):
        return None
    written = arguments if isinstance(arguments, str) else compact_json(arguments)
    function = {"name": name, "arguments": written}
    message = {"content": None, "tool_calls": [{"type": "function", "function": function}]}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}


class StreamedReply(ReplyReader):
    """A reader of one streamed reply, chunk by chunk."""

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        super().__init__(plan, profile)
        self._texts: dict[str, list[str]] = {}
        self._details: list[_Detail] = []
        self._calls = StreamedCalls()
        self._finish: JSON = {}
        self._usage: dict[str, Any] = {}
        self._named: dict[str, str] = {}

    def read(self, chunk: object) -> Iterator[ReplyEvent]:
        """Yield what a chunk adds to the reply."""
        failure = body_failure(chunk, status=200)
        if failure is not None or not isinstance(chunk, Mapping):
            raise ReplyFailedError(failure or foreign_reply(chunk, "completion"))
        self._usage = known(chunk.get("usage")) or self._usage
        self._named = self._named or {key: named_of(chunk, key) for key in ("id", "model")}
        for choice in map(mapping_of, list_of(chunk.get("choices"))):
            if choice.get("index") not in (0, None):
                continue
            self._usage = known(choice.get("usage")) or self._usage
            yield from self._extend(mapping_of(choice.get("delta")))
            if text_of(choice.get("finish_reason")):
                self.progress.steps += 1
                self._finish = {key: choice[key] for key in _OF_THE_END if key in choice}

    def end(self, *, announced: bool = False) -> Iterator[ReplyEvent]:
        """Yield the calls and the whole reply, after its last chunk was read.

        Args:
            announced: True if the stream sent `[DONE]`. With usage before that, it needs no
                finish reason: Snowflake Cortex sends none.
        """
        if not self._finish and not (announced and self._usage):
            raise self.broken("its finish_reason")
        message: dict[str, Any] = {key: "".join(parts) for key, parts in self._texts.items()}
        message["tool_calls"] = [call.whole() for call in self._calls.calls]
        message["reasoning_details"] = [detail.whole() for detail in self._details]
        choice = {"finish_reason": "stop", **self._finish, "message": message}
        reply = {**self._named, "choices": [choice], "usage": self._usage}
        end = from_wire(reply, self._plan, self._profile, is_finished=bool(self._finish))
        # A call is complete only now: chunks of parallel calls may be interleaved.
        yield from map(CallDelta, end.message.tool_calls)
        yield end

    def _extend(self, delta: JSON) -> Iterator[ReplyEvent]:
        for key in ("content", "refusal", "reasoning_content", "reasoning"):
            text = _content(delta.get(key))
            if text:
                self.progress.count_text(text)
                self._texts.setdefault(key, []).append(text)
            if text and key in ("content", "refusal"):
                yield ReplyDelta(text)
        for detail in map(mapping_of, list_of(delta.get("reasoning_details"))):
            if self._details and self._details[-1].extend(detail):
                self.progress.count_text(
                    text_of(detail.get("text")) or text_of(detail.get("summary"))
                )
            else:
                self.progress.count_event()
                self._details.append(_Detail(detail))
        for call in map(mapping_of, list_of(delta.get("tool_calls"))):
            self._calls.extend(call)
            arguments = mapping_of(call.get("function")).get("arguments")
            count = len(self._calls.calls)
            if count > self.progress.calls or not isinstance(arguments, str):
                self.progress.count_event()
            else:
                self.progress.count_text(arguments)
            self.progress.calls = count
        self.progress.is_waiting = not self.progress.steps


class _Detail:
    """One entry of `reasoning_details`, with the chunks received so far.

    Args:
        first: Its first chunk.
    """

    def __init__(self, first: JSON) -> None:
        self._fields = dict(first)
        self._parts = {key: [first[key]] for key in ("text", "summary") if text_of(first.get(key))}

    def extend(self, chunk: JSON) -> bool:
        """Add a chunk; return False if it begins the next entry.

        Text and summaries come in pieces under one index; a signature comes after the text.
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
    """Return the text; some endpoints (Mistral) send a list of parts instead.

    Cloudflare sends JSON that the model wrote as the object that it is.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) and content:
        return text_of(content.get("text")) or compact_json(content)
    parts = map(mapping_of, list_of(content))
    return "".join(text_of(part.get("text")) for part in parts if part.get("type") == "text")


def _native(wire: JSON, given: Sequence[JSON], profile: ProviderProfile) -> NativeReply | None:
    """Return the reasoning and the signatures of calls, which the neutral form cannot carry."""
    own = reasoning_of(wire)
    extras = [sent.get("extra_content") for sent in given]
    if any(extras):
        # By the call's place: ids may repeat, and then change in the history.
        own["extra_content"] = extras
    return NativeReply(profile.origin, (own,)) if own else None


def reasoning_of(wire: JSON) -> dict[str, Any]:
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
    """Return the usage; `prompt_tokens` includes tokens read from the cache."""
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
