"""Traces and measures of calls and turns, by OpenTelemetry's conventions for generative AI.

Needs the extra `otel`. Nothing is exported here: the tracer and meter providers of the process
take spans and figures, and pass them on, to Prometheus for example. A bot gets it by
`CallOptions(telemetry=OpenTelemetry())`.

Source: OpenTelemetry, "Semantic conventions for generative AI tool execution" (span
`execute_tool {gen_ai.tool.name}`, metric `gen_ai.execute_tool.duration`), and "metrics"
(`gen_ai.invoke_agent.duration`, `gen_ai.invoke_agent.inference_calls`,
`gen_ai.client.token.usage`), in development. Names that begin with `tool_search.` are ours:
the conventions have none for them.
"""

from __future__ import annotations

from contextvars import Token

from tool_search.catalog.tool import Tool
from tool_search.events import (
    Done,
    ProviderSwitched,
    RunnerWarning,
    TextDelta,
    ToolsDiscovered,
    TurnEvent,
)
from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionResult
from tool_search.messages import ToolCall
from tool_search.values.redaction import redacted_json

try:
    from opentelemetry import context as context_api
    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, Meter, MeterProvider, get_meter
    from opentelemetry.trace import (
        Span,
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        get_tracer,
        set_span_in_context,
    )
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.opentelemetry needs opentelemetry-api: "
        "pip install 'tool-search-middleware[otel]'"
    ) from exc

__all__ = ["OpenTelemetry"]

_SCOPE = "tool_search"
_OPERATION = "execute_tool"
# The conventions' own, in seconds.
_AGENT = {"gen_ai.operation.name": "invoke_agent"}
_TOKEN_BUCKETS = [float(4**power) for power in range(14)]
_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]


class OpenTelemetry:
    """A span and a duration for each call; spans of the tool's own work are inside.

    Args:
        tracer_provider: Takes the spans; by default, the process's.
        meter_provider: Takes the durations; by default, the process's.
        record_content: True if spans have arguments and results, with secrets masked;
            they may contain users' text.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        record_content: bool = False,
    ) -> None:
        self._tracer = get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._durations = get_meter(_SCOPE, meter_provider=meter_provider).create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="Duration of tool calls.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._record_content = record_content
        self._turns = _TurnMetrics(get_meter(_SCOPE, meter_provider=meter_provider))

    def on_turn(self, seen: TurnEvent) -> None:
        """Measure a turn by its events: an observer for `CallOptions.turn_observers`."""
        self._turns.observe(seen)

    def start(self, tool: Tool, call: ToolCall, context: ToolContext) -> _CallSpan:
        """Begin a call's span, and make it the current one of the call's task."""
        shared = {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function",
        }
        span = self._tracer.start_span(
            f"{_OPERATION} {tool.name}",
            kind=SpanKind.INTERNAL,
            attributes={
                **shared,
                "gen_ai.tool.call.id": call.id,
                "gen_ai.tool.description": tool.description,
                "gen_ai.conversation.id": context.conversation,
            },
        )
        if self._record_content and span.is_recording():
            arguments = redacted_json(call.parsed_arguments())
            span.set_attribute("gen_ai.tool.call.arguments", arguments)
        token = context_api.attach(set_span_in_context(span))
        return _CallSpan(span, token, self._durations, shared, self._record_content)


class _TurnMetrics:
    """The figures of turns."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "gen_ai.invoke_agent.duration",
            unit="s",
            description="Duration of turns.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._requests = meter.create_histogram(
            "gen_ai.invoke_agent.inference_calls",
            unit="{call}",
            description="Requests of a turn that were answered.",
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Input and output tokens of turns.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._first = meter.create_histogram(
            "tool_search.turn.time_to_first_text",
            unit="s",
            description="Time from a user's message to the first text of its answer.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        counter = meter.create_counter
        self._cached = counter(
            "tool_search.cache.read", unit="{token}", description="Input tokens from caches."
        )
        self._found = counter(
            "tool_search.tools.discovered", unit="{tool}", description="Tools that were found."
        )
        self._fallbacks = counter(
            "tool_search.fallbacks", unit="{switch}", description="Changes after a failure."
        )
        self._warnings = counter(
            "tool_search.warnings", unit="{warning}", description="Warnings, by their code."
        )
        self._answering: set[str] = set()

    def observe(self, seen: TurnEvent) -> None:
        """Measure one event."""
        event = seen.event
        if isinstance(event, TextDelta):
            # One turn of a conversation runs at a time.
            if seen.conversation not in self._answering:
                self._answering.add(seen.conversation)
                self._first.record(seen.elapsed_s, attributes=_AGENT)
        elif isinstance(event, ToolsDiscovered):
            self._found.add(len(event.names), {"tool_search.via": event.via})
        elif isinstance(event, ProviderSwitched):
            self._switched(event)
        elif isinstance(event, RunnerWarning):
            self._warnings.add(1, {"tool_search.code": event.code})
        elif isinstance(event, Done):
            self._answering.discard(seen.conversation)
            self._done(event, seen.elapsed_s)

    def _switched(self, event: ProviderSwitched) -> None:
        if event.cause not in ("requested", "primary_available", "second_chance"):
            names = {"tool_search.from": event.from_provider, "tool_search.to": event.to_provider}
            self._fallbacks.add(1, names)

    def _done(self, event: Done, elapsed_s: float) -> None:
        shared = {**_AGENT, "gen_ai.provider.name": event.provider}
        is_answer = event.stop_reason in ("answer", "length", "max_steps")
        failed = {} if is_answer else {"error.type": event.stop_reason}
        self._duration.record(elapsed_s, attributes={**shared, **failed})
        self._requests.record(event.steps, attributes=shared)
        usage = event.usage
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, attributes={**shared, "gen_ai.token.type": kind})
        self._cached.add(usage.cache_read_tokens, shared)


class _CallSpan:
    def __init__(
        self,
        span: Span,
        token: Token[Context],
        durations: Histogram,
        shared: dict[str, str],
        record_content: bool,
    ) -> None:
        self._span = span
        self._token = token
        self._durations = durations
        self._shared = shared
        self._record_content = record_content

    def end(self, result: ExecutionResult, duration_s: float) -> None:
        """End the span with the call's outcome, and record its duration."""
        shared = self._shared
        if result.is_error:
            kind = type(result.error).__name__ if result.error else result.failure or "failed"
            shared = {**shared, "error.type": kind}
            self._span.set_attribute("error.type", kind)
            self._span.set_status(Status(StatusCode.ERROR, result.outcome))
        if self._record_content and self._span.is_recording():
            self._span.set_attribute("gen_ai.tool.call.result", redacted_json(result.content))
        self._durations.record(duration_s, attributes=shared)
        context_api.detach(self._token)
        self._span.end()
