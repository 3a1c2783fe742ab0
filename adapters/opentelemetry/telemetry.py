"""The object that a bot gives its turns and calls to, and that makes spans and metrics of them."""

from __future__ import annotations

from typing import Any

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import TracerProvider, get_tracer

from tool_search.adapters.opentelemetry.conventions import SCOPE, SECONDS, captures_content
from tool_search.adapters.opentelemetry.metrics import TurnMetrics
from tool_search.adapters.opentelemetry.spans import Spans
from tool_search.core.messages import Message, RequestPlan
from tool_search.runner.events import TurnEvent

__all__ = ["OpenTelemetry"]


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
        meter = get_meter(SCOPE, meter_provider=meter_provider)
        durations = meter.create_histogram(
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
        self._metrics = TurnMetrics(meter)
        self._spans = Spans(
            get_tracer(SCOPE, tracer_provider=tracer_provider),
            durations,
            record_content=captures_content() if record_content is None else record_content,
            agent_name=agent_name,
        )

    def on_turn(
        self,
        seen: TurnEvent,
        kept: dict[str, Any] | None = None,
        content: Message | RequestPlan | None = None,
    ) -> None:
        """Measure an event of a turn, and trace it; a runner calls this by itself."""
        kind = type(seen.event)
        if measure := self._metrics.by_kind.get(kind):
            measure(seen.event, seen)
        if kept is not None and (trace := self._spans.by_kind.get(kind)):
            trace(seen.event, seen.conversation, kept, content)

    def on_hold(self, held_s: float) -> None:
        """Measure a time for which the event loop was held: a callback of `LoopMonitor`."""
        self._held.record(held_s)
