"""The spans of turns, requests and calls, made of their events."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from opentelemetry import context as context_api
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from tool_search.core.conversation.calls import AnsweredCall
from tool_search.core.messages import ImagePart, Message, ReferencePart, RequestPlan, ToolCall
from tool_search.core.values.json import compact_json
from tool_search.core.values.redaction import redacted, redacted_json, redacted_text
from tool_search.runner.events import (
    Done,
    RequestFinished,
    RequestStarted,
    RunnerEvent,
    SearchFinished,
)
from tool_search.runner.execution.observers import CallBegun, CallEnded, TurnFailed, TurnStarted
from tool_search.runner.execution.results import ExecutionResult

__all__ = [
    "SCOPE",
    "SECONDS",
    "TOKENS",
    "Spans",
    "captures_content",
    "finish_reason",
    "input_messages",
    "of_answer",
    "of_request",
    "output_messages",
    "system_instructions",
    "turn_error",
]

# The names of OpenTelemetry's conventions for generative AI, and ours next to them.
#
# Source: OpenTelemetry, "Semantic conventions for generative client AI spans", "... agent and
# framework spans" and "... metrics", in development; the names are those of
# opentelemetry-semantic-conventions 0.66b2. Names that begin with `tool_search.` are ours: the
# conventions have none for them.


SCOPE = "tool_search"
# The boundaries that the conventions advise.
SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
TOKENS = [float(4**power) for power in range(14)]

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURING = ("true", "span_only", "span_and_event")
# The well-known values of `gen_ai.provider.name`, by the host that is asked.
_SERVICES = (
    ("*.anthropic.com", "anthropic"),
    ("*.openai.azure.com", "azure.ai.openai"),
    ("*.services.ai.azure.com", "azure.ai.inference"),
    ("*.openai.com", "openai"),
    ("*.deepseek.com", "deepseek"),
    ("*.moonshot.*", "moonshot_ai"),
    ("*.mistral.ai", "mistral_ai"),
    ("*.x.ai", "x_ai"),
    ("*.groq.com", "groq"),
    ("*.perplexity.ai", "perplexity"),
    ("*.cohere.com", "cohere"),
    ("*.amazonaws.com", "aws.bedrock"),
    ("*aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
)
# What a message of the conventions' JSON Schema may end with.
_FINISHED = {"answer": "stop", "calls": "tool_call", "refusal": "content_filter"}
# The ends of turns that have an answer, as `Bot.ask` returns it.
_ANSWERS = ("answer", "length", "max_steps")


def captures_content(environment: Mapping[str, str] | None = None) -> bool:
    """Return True if the process asks for the text of messages in spans.

    Source: opentelemetry-util-genai, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
    """
    said = (os.environ if environment is None else environment).get(_CAPTURE, "")
    return said.strip().lower() in _CAPTURING


def finish_reason(stop_reason: str) -> str:
    """Return the conventions' word for the end of a reply."""
    return _FINISHED.get(stop_reason, stop_reason)


def turn_error(done: Done) -> str:
    """Return the kind of failure of a turn without an answer; empty if it has one."""
    return "" if done.stop_reason in _ANSWERS else done.stop_reason


def of_request(request: RequestStarted) -> dict[str, str | int]:
    """Return the attributes that a request's span and metrics share."""
    dialect, _, rest = request.origin.partition(":")
    host, _, port = rest.partition("/")[0].partition(":")
    shared: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _service(dialect, host),
        "gen_ai.request.model": request.model,
    }
    if host:
        shared["server.address"] = host
    if port.isdigit():
        # An address without a port may be one of http or of https.
        shared["server.port"] = int(port)
    return shared


def of_answer(finished: RequestFinished) -> dict[str, str | int]:
    """Return the same, with what is known at the end of the request."""
    shared = of_request(finished.request)
    if finished.response_model:
        shared["gen_ai.response.model"] = finished.response_model
    if finished.error:
        shared["error.type"] = finished.error
    return shared


def _service(dialect: str, host: str) -> str:
    """Return the service of a host; of an unknown one, that whose dialect it speaks."""
    named = (name for pattern, name in _SERVICES if fnmatchcase(host, pattern))
    return next(named, dialect.partition("_")[0])


# The text of users, models and tools, in the JSON of the conventions.
#
# It is recorded only if the operator asks for it. Secrets are masked, and of a long history the
# last messages are kept.
#
# Source: OpenTelemetry, "gen-ai-input-messages.json" and "gen-ai-output-messages.json".


# About 2 ms of writing and masking. An exporter sends no larger batch than a few megabytes.
_MAX_CHARS = 30_000
_MAX_PART_CHARS = 10_000


def input_messages(messages: Sequence[Message]) -> str:
    """Return the last messages of a history, as many as 30,000 characters hold."""
    kept: list[str] = []
    left = _MAX_CHARS
    for message in reversed(messages):
        written = _write_message(message)
        left -= len(written)
        if left < 0 and kept:
            break
        kept.append(written)
    return f"[{','.join(reversed(kept))}]"


def output_messages(reply: Message, finish_reason: str) -> str:
    """Return a reply."""
    return f"[{_write_message(reply, finish_reason=finish_reason)}]"


def system_instructions(system: str) -> str:
    """Return the system text."""
    return compact_json([_text(system)])


def _write_message(message: Message, **more: str) -> str:
    content = {"role": message.role, "parts": list(_parts(message)), **more}
    return compact_json(content)


def _parts(message: Message) -> Iterable[dict[str, Any]]:
    if message.role == "tool":
        yield {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "response": _mask(message.text),
        }
        return
    parts = message.content
    for part in (parts,) if isinstance(parts, str) else parts:
        if isinstance(part, ImagePart):
            # A data address is a whole picture.
            yield {"type": "uri", "modality": "image", "uri": part.url.partition(",")[0][:200]}
        elif isinstance(part, ReferencePart):
            yield _text(f"tools: {', '.join(part.names)}")
        elif text := part if isinstance(part, str) else part.text:
            yield _text(text)
    for call in message.tool_calls:
        arguments = call.parsed_arguments()
        yield {
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            "arguments": _mask(call.arguments) if arguments is None else _small(arguments),
        }


def _small(arguments: dict[str, Any]) -> Any:
    """Return masked arguments; as cut text if they are long."""
    written = compact_json(arguments)
    return redacted(arguments) if len(written) <= _MAX_PART_CHARS else _mask(written)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": _mask(text)}


def _mask(text: str) -> str:
    cut = text if len(text) <= _MAX_PART_CHARS else f"{text[:_MAX_PART_CHARS]}…"
    masked: str = redacted(cut)
    return masked


_NS = 1_000_000_000
_TURN, _REQUEST, _OUTSIDE = "turn", "request", "outside"
_Kept = dict[str, Any]


class Spans:
    """The spans of all turns. Those that are open are kept with the events of their turn.

    A span is made current where its work is done, and stays so to the end of that work: turns
    and calls have contexts of their own.

    Args:
        tracer: Begins spans.
        durations: Takes the duration of each call.
        record_content: True if spans have the text of messages, arguments and results.
        agent_name: The bot's name.

    Attributes:
        by_kind: Begins or ends the span that an event of each kind is about.
    """

    def __init__(
        self, tracer: Tracer, durations: Histogram, *, record_content: bool, agent_name: str
    ) -> None:
        self._tracer = tracer
        self._durations = durations
        self._record_content = record_content
        self._agent_name = agent_name
        self.by_kind: dict[type[RunnerEvent], Callable[[Any, str, _Kept, Any], None]] = {
            TurnStarted: self._begin_turn,
            TurnFailed: self._fail_turn,
            Done: self._end_turn,
            RequestStarted: self._begin_request,
            RequestFinished: self._end_request,
            CallBegun: self._begin_call,
            CallEnded: self._end_call,
        }

    def _begin_turn(self, event: TurnStarted, conversation: str, kept: _Kept, _: object) -> None:
        named = {"gen_ai.agent.name": self._agent_name} if self._agent_name else {}
        span = kept[_TURN] = self._tracer.start_span(
            f"invoke_agent {self._agent_name}".rstrip(),
            kind=SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.conversation.id": conversation,
                **named,
            },
        )
        _make_current(span)
        if self._records(span):
            span.set_attribute("gen_ai.input.messages", input_messages((event.message,)))

    def _fail_turn(self, event: TurnFailed, _: str, kept: _Kept, __: object) -> None:
        # A consumer may stop at the last event: that span has ended.
        if (span := kept.pop(_TURN, None)) is not None:
            is_cancelled = isinstance(event.error, (asyncio.CancelledError, GeneratorExit))
            _fail(span, "cancelled" if is_cancelled else type(event.error).__name__)
            span.end()

    def _end_turn(self, done: Done, _: str, kept: _Kept, __: object) -> None:
        span, usage = kept.pop(_TURN, None), done.usage
        if span is None:
            return
        # Not `gen_ai.usage`: services add up the spans of a trace, and would count twice.
        span.set_attributes(
            {
                "gen_ai.response.finish_reasons": (finish_reason(done.stop_reason),),
                "tool_search.turn.provider": done.provider,
                "tool_search.turn.requests": done.steps,
                "tool_search.turn.input_tokens": usage.input_tokens,
                "tool_search.turn.output_tokens": usage.output_tokens,
                "tool_search.turn.cache_read_tokens": usage.cache_read_tokens,
            }
        )
        if kind := turn_error(done):
            _fail(span, kind)
        self._add_reply(span, Message(role="assistant", content=done.answer), done.stop_reason)
        span.end()

    def _begin_request(
        self, started: RequestStarted, conversation: str, kept: _Kept, plan: RequestPlan | None
    ) -> None:
        is_kept = started.is_prefix_kept
        span = kept[_REQUEST] = self._tracer.start_span(
            f"chat {started.model}",
            kind=SpanKind.CLIENT,
            attributes={
                **of_request(started),
                "gen_ai.conversation.id": conversation,
                "tool_search.provider": started.provider,
                "tool_search.strategy": started.strategy,
                "tool_search.phase": started.phase,
                "tool_search.tools.sent": started.tools,
                "tool_search.tools.deferred": started.deferred,
                "tool_search.tools.tokens_sent": started.tool_tokens,
                "tool_search.tools.tokens_saved": started.saved_tokens,
                **({} if is_kept is None else {"tool_search.prefix.kept": is_kept}),
            },
        )
        kept[_OUTSIDE] = _make_current(span)
        if plan is not None and self._records(span):
            span.set_attribute("gen_ai.input.messages", input_messages(plan.messages))
            if plan.system:
                span.set_attribute("gen_ai.system_instructions", system_instructions(plan.system))

    def _end_request(
        self, finished: RequestFinished, _: str, kept: _Kept, reply: Message | None
    ) -> None:
        span, usage = kept.pop(_REQUEST), finished.usage
        if finished.first_s is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", finished.first_s)
        if finished.error:
            _fail(span, finished.error)
        if finished.stop_reason is not None:
            span.set_attributes(
                {
                    "gen_ai.response.finish_reasons": (finish_reason(finished.stop_reason),),
                    "gen_ai.usage.input_tokens": usage.input_tokens,
                    "gen_ai.usage.output_tokens": usage.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                }
            )
        if finished.response_model:
            span.set_attribute("gen_ai.response.model", finished.response_model)
        if finished.response_id:
            span.set_attribute("gen_ai.response.id", finished.response_id)
        if reply is not None:
            self._add_reply(span, reply, finished.stop_reason or "")
        span.end()
        context_api.attach(kept.pop(_OUTSIDE))

    def _begin_call(self, event: CallBegun, conversation: str, kept: _Kept, _: object) -> None:
        span = kept[event.call.id] = self._tracer.start_span(
            f"execute_tool {event.tool.name}",
            kind=SpanKind.INTERNAL,
            attributes={
                **_of_call(event.tool.name),
                **_ids(event.call, conversation),
                "gen_ai.tool.description": event.tool.description,
            },
        )
        _make_current(span)

    def _end_call(self, event: CallEnded, conversation: str, kept: _Kept, _: object) -> None:
        """End the span of a call; make that of a search, or of a call that was refused."""
        call, result, took = event.finished, event.finished.result, event.finished.duration_s
        span, end = kept.pop(call.call.id, None), time.time_ns()
        shared = _of_call(call.tool)
        if span is None:
            if not isinstance(call.decision, AnsweredCall):
                return  # cancelled before it began
            took = sum(step.duration_s for step in call.steps)
            span = self._tracer.start_span(
                f"execute_tool {call.tool}",
                kind=SpanKind.INTERNAL,
                start_time=end - int(took * _NS),
                attributes={**shared, **_ids(call.call, conversation)},
            )
        if (searched := call.searched()) is not None:
            self._add_search(span, searched)
        if self._records(span):
            arguments = redacted_json(call.call.parsed_arguments())
            span.set_attribute("gen_ai.tool.call.arguments", arguments)
            span.set_attribute("gen_ai.tool.call.result", redacted_text(result.content))
        if kind := _call_error(result):
            shared["error.type"] = kind
            _fail(span, kind, result.outcome)
        self._durations.record(took, attributes=shared)
        span.end(end_time=end)

    def _add_search(self, span: Span, searched: SearchFinished) -> None:
        span.set_attributes(
            {
                "tool_search.search.found": len(searched.found),
                "tool_search.search.tools": list(searched.found),
                "tool_search.search.total_found": searched.total_found,
                "tool_search.search.total_tools": searched.total_tools,
                "tool_search.search.is_empty": not searched.found and not searched.is_error,
            }
        )
        if searched.best_score is not None:
            span.set_attribute("tool_search.search.best_score", searched.best_score)
        if self._records(span):
            # The conventions' name for the query of a retrieval.
            span.set_attribute("gen_ai.retrieval.query.text", redacted_text(searched.query))

    def _add_reply(self, span: Span, reply: Message, stop_reason: str) -> None:
        if self._records(span):
            written = output_messages(reply, finish_reason(stop_reason))
            span.set_attribute("gen_ai.output.messages", written)

    def _records(self, span: Span) -> bool:
        return self._record_content and span.is_recording()


def _of_call(tool: str) -> dict[str, str]:
    """Return the attributes that a call's span and metric share."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
    }


def _ids(call: ToolCall, conversation: str) -> dict[str, str]:
    return {"gen_ai.tool.call.id": call.id, "gen_ai.conversation.id": conversation}


def _make_current(span: Span) -> Context:
    """Make a span the current one; return the context around it."""
    outside = context_api.get_current()
    # Without an SDK, nothing can be inside the span.
    if span.get_span_context().is_valid:
        context_api.attach(set_span_in_context(span))
    return outside


def _fail(span: Span, kind: str, description: str = "") -> None:
    """Mark a span as failed. No message of an error is in it, which may quote anything."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, description or None))


def _call_error(result: ExecutionResult) -> str:
    """Return the kind of a call's failure, or nothing."""
    if not result.is_error:
        return ""
    return type(result.error).__name__ if result.error else result.failure or "failed"
