"""Traces and measures of calls, by OpenTelemetry's conventions for generative AI.

Needs the extra `otel`. Nothing is exported here: the tracer and meter providers of the process
take spans and figures, and pass them on, to Prometheus for example. A bot gets it by
`CallOptions(telemetry=OpenTelemetry())`.

Source: OpenTelemetry, "Semantic conventions for generative AI tool execution" (span
`execute_tool {gen_ai.tool.name}`, metric `gen_ai.execute_tool.duration`), in development.
"""

from __future__ import annotations

from contextvars import Token

from tool_search.catalog.tool import Tool
from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionResult
from tool_search.messages import ToolCall
from tool_search.values.redaction import redacted_json

try:
    from opentelemetry import context as context_api
    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, MeterProvider, get_meter
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
