"""The object that a bot gives its turns and calls to, and that makes spans and metrics of them."""

from __future__ import annotations

import time
from functools import partial

from opentelemetry import context as context_api
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, SpanKind, TracerProvider, get_tracer, set_span_in_context

from tool_search.adapters.opentelemetry.content import input_messages, system_instructions
from tool_search.adapters.opentelemetry.conventions import (
    SCOPE,
    SECONDS,
    captures_content,
    of_request,
)
from tool_search.adapters.opentelemetry.metrics import TurnMetrics
from tool_search.adapters.opentelemetry.spans import (
    OpenCall,
    OpenRequest,
    OpenTurn,
    call_error,
    fail,
)
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.events import RequestStarted, SearchFinished, TurnEvent
from tool_search.execution.context import ToolContext
from tool_search.execution.results import FinishedCall
from tool_search.values.redaction import redacted_json, redacted_text

__all__ = ["OpenTelemetry"]

_NS = 1_000_000_000


class OpenTelemetry:
    """Spans of turns, requests, searches and calls, and metrics of the same.

    A span of a turn has those of its requests and calls inside, and a call's that of the tool's
    own work. Nothing that users, models or tools say is in a span, unless it is asked for.

    Args:
        tracer_provider: Takes the spans; by default, the process's.
        meter_provider: Takes the metrics; by default, the process's.
        record_content: True if spans have messages, arguments, queries and results, with secrets
            masked; they may contain users' text. None: as the environment variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says.
        agent_name: The bot's name in spans of turns; empty: none.

    Example:
        ::

            open_bot("bot.yaml", calls=CallOptions(telemetry=OpenTelemetry(agent_name="support")))
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        record_content: bool | None = None,
        agent_name: str = "",
    ) -> None:
        self._tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = get_meter(SCOPE, meter_provider=meter_provider)
        self._durations = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="Duration of tool calls.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._held = meter.create_histogram(
            "tool_search.event_loop.held",
            unit="s",
            description="Times for which the event loop was held.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._record_content = captures_content() if record_content is None else record_content
        self._agent_name = agent_name
        self._metrics = TurnMetrics(meter)

    def on_turn(self, seen: TurnEvent) -> None:
        """Measure an event of a turn; a runner calls it by itself."""
        self._metrics.observe(seen)

    def on_hold(self, held_s: float) -> None:
        """Measure a time for which the event loop was held: a callback of `LoopMonitor`."""
        self._held.record(held_s)

    def turn(self, conversation: str, message: Message) -> OpenTurn:
        """Begin the span of a turn."""
        named = {"gen_ai.agent.name": self._agent_name} if self._agent_name else {}
        span = self._tracer.start_span(
            f"invoke_agent {self._agent_name}".rstrip(),
            kind=SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.conversation.id": conversation,
                **named,
            },
        )
        if self._records(span):
            span.set_attribute("gen_ai.input.messages", input_messages((message,)))
        return OpenTurn(
            span,
            record_content=self._record_content,
            ended=partial(self._metrics.forget, conversation),
        )

    def request(self, started: RequestStarted, plan: RequestPlan, conversation: str) -> OpenRequest:
        """Begin the span of a request."""
        kept = started.is_prefix_kept
        span = self._tracer.start_span(
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
                **({} if kept is None else {"tool_search.prefix.kept": kept}),
            },
        )
        if self._records(span):
            span.set_attribute("gen_ai.input.messages", input_messages(plan.messages))
            if plan.system:
                span.set_attribute("gen_ai.system_instructions", system_instructions(plan.system))
        return OpenRequest(span, record_content=self._record_content)

    def start(self, tool: Tool, call: ToolCall, context: ToolContext) -> OpenCall:
        """Begin a call's span, and make it the current one of the call's task."""
        shared = _of_call(tool.name)
        span = self._tracer.start_span(
            f"execute_tool {tool.name}",
            kind=SpanKind.INTERNAL,
            attributes={
                **shared,
                "gen_ai.tool.call.id": call.id,
                "gen_ai.tool.description": tool.description,
                "gen_ai.conversation.id": context.conversation,
            },
        )
        self._add_arguments(span, call)
        token = context_api.attach(set_span_in_context(span))
        return OpenCall(span, token, self._durations, shared, record_content=self._record_content)

    def answered(self, finished: FinishedCall, context: ToolContext) -> None:
        """Record the span of a search, or of a call that was refused before its tool ran."""
        shared, end = _of_call(finished.tool), time.time_ns()
        took = sum(step.duration_s for step in finished.steps)
        span = self._tracer.start_span(
            f"execute_tool {finished.tool}",
            kind=SpanKind.INTERNAL,
            start_time=end - int(took * _NS),
            attributes={
                **shared,
                "gen_ai.tool.call.id": finished.call.id,
                "gen_ai.conversation.id": context.conversation,
            },
        )
        self._add_arguments(span, finished.call)
        if (searched := finished.searched()) is not None:
            self._add_search(span, searched)
        if self._records(span):
            content = redacted_text(finished.result.content)
            span.set_attribute("gen_ai.tool.call.result", content)
        if kind := call_error(finished.result):
            shared = {**shared, "error.type": kind}
            fail(span, kind, finished.result.outcome)
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

    def _add_arguments(self, span: Span, call: ToolCall) -> None:
        if self._records(span):
            arguments = redacted_json(call.parsed_arguments())
            span.set_attribute("gen_ai.tool.call.arguments", arguments)

    def _records(self, span: Span) -> bool:
        return self._record_content and span.is_recording()


def _of_call(tool: str) -> dict[str, str]:
    """Return the attributes that a call's span and metric share."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
    }
