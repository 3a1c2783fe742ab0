"""The object that a bot gives its turns and calls to, and that makes spans and metrics of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import Meter, MeterProvider, get_meter
from opentelemetry.trace import TracerProvider, get_tracer
from opentelemetry.util.types import Attributes

from tool_search.adapters.opentelemetry.spans import (
    SCOPE,
    SECONDS,
    TOKENS,
    Spans,
    captures_content,
    of_answer,
    of_request,
    turn_error,
)
from tool_search.core.messages import Message, RequestPlan
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RequestFinished,
    RequestStarted,
    RunnerEvent,
    RunnerWarning,
    SearchFinished,
    TextDelta,
    ToolsDiscovered,
    TurnEvent,
)
from tool_search.runner.execution.observers import TurnFailed

__all__ = ["OpenTelemetry", "TurnMetrics"]

# The metrics of turns, measured by their events.


_AGENT = {"gen_ai.operation.name": "invoke_agent"}
# Turns of which no end was seen.
_MAX_ANSWERING = 10_000
_NOT_FAILURES = ("requested", "primary_available", "second_chance")
# Name, unit and description; the names of counters are ours.
_COUNTERS = (
    ("searches", "search", "Searches of models."),
    ("searches.empty", "search", "Searches of models that found nothing."),
    ("tools.discovered", "tool", "Tools that were found."),
    ("fallbacks", "switch", "Changes after a failure."),
    ("warnings", "warning", "Warnings, by their code."),
    ("cache.read", "token", "Input tokens from caches."),
    ("cache.write", "token", "Input tokens put into caches."),
    ("tools.tokens_sent", "token", "Estimated tokens of definitions in requests."),
    ("tools.tokens_saved", "token", "Estimated tokens of definitions not sent."),
    ("prefix.changes", "request", "Requests that do not repeat the one before."),
)
_TURN_S = "gen_ai.invoke_agent.duration"
_TEXT_S = "tool_search.turn.time_to_first_text"
_SEARCH_S = "tool_search.search.duration"
_REQUEST_S = "gen_ai.client.operation.duration"
_CHUNK_S = "gen_ai.client.operation.time_to_first_chunk"
_STEPS = "gen_ai.invoke_agent.inference_calls"
_TOKENS = "gen_ai.client.token.usage"
_HISTOGRAMS = (
    (_TURN_S, "s", "Duration of turns.", SECONDS),
    (_TEXT_S, "s", "Time from a user's message to the first text of its answer.", SECONDS),
    (_SEARCH_S, "s", "Duration of searches.", SECONDS),
    (_REQUEST_S, "s", "GenAI operation duration.", SECONDS),
    (_CHUNK_S, "s", "Time from a request to the first text or call of its reply.", SECONDS),
    (_STEPS, "{call}", "Requests of a turn that were answered.", None),
    (_TOKENS, "{token}", "Number of input and output tokens used.", TOKENS),
)


class TurnMetrics:
    """The instruments, and the figures that each event has for them.

    No conversation's key is an attribute: there would be too many.

    Attributes:
        by_kind: Measures an event of each kind.
    """

    def __init__(self, meter: Meter) -> None:
        self._counters = {
            name: meter.create_counter(
                f"tool_search.{name}", unit=f"{{{unit}}}", description=description
            )
            for name, unit, description in _COUNTERS
        }
        self._histograms = {
            name: meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=boundaries
            )
            for name, unit, description, boundaries in _HISTOGRAMS
        }
        self._answering: set[str] = set()
        self.by_kind: dict[type[RunnerEvent], Callable[[Any, TurnEvent], None]] = {
            TextDelta: self._say,
            RequestStarted: self._start,
            RequestFinished: self._finish,
            SearchFinished: self._search,
            ToolsDiscovered: self._discover,
            ProviderSwitched: self._switch,
            RunnerWarning: self._warn,
            Done: self._done,
            TurnFailed: self._fail,
        }

    def _add(self, name: str, amount: int, attributes: Attributes = None) -> None:
        self._counters[name].add(amount, attributes)

    def _record(self, name: str, amount: float, attributes: Attributes) -> None:
        self._histograms[name].record(amount, attributes)

    def _say(self, _: TextDelta, seen: TurnEvent) -> None:
        # One turn of a conversation runs at a time.
        if seen.conversation not in self._answering:
            if len(self._answering) >= _MAX_ANSWERING:
                self._answering.clear()
            self._answering.add(seen.conversation)
            self._record(_TEXT_S, seen.elapsed_s, _AGENT)

    def _discover(self, event: ToolsDiscovered, _: TurnEvent) -> None:
        self._add("tools.discovered", len(event.names), {"tool_search.via": event.via})

    def _switch(self, event: ProviderSwitched, _: TurnEvent) -> None:
        if event.cause not in _NOT_FAILURES:
            names = {"tool_search.from": event.from_provider, "tool_search.to": event.to_provider}
            self._add("fallbacks", 1, names)

    def _warn(self, event: RunnerWarning, _: TurnEvent) -> None:
        self._add("warnings", 1, {"tool_search.code": event.code})

    def _search(self, event: SearchFinished, _: TurnEvent) -> None:
        failed = {"error.type": "search_unavailable"} if event.is_error else {}
        self._add("searches", 1, failed)
        self._record(_SEARCH_S, event.duration_s, failed)
        if not (event.found or event.is_error):
            self._add("searches.empty", 1)

    def _start(self, event: RequestStarted, _: TurnEvent) -> None:
        shared = of_request(event)
        self._add("tools.tokens_sent", event.tool_tokens, shared)
        self._add("tools.tokens_saved", max(0, event.saved_tokens), shared)
        if event.is_prefix_kept is False:
            self._add("prefix.changes", 1, shared)

    def _finish(self, event: RequestFinished, _: TurnEvent) -> None:
        shared, usage = of_answer(event), event.usage
        self._record(_REQUEST_S, event.duration_s, shared)
        if event.first_s is not None:
            self._record(_CHUNK_S, event.first_s, shared)
        if event.error:
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._record(_TOKENS, tokens, {**shared, "gen_ai.token.type": kind})
        self._add("cache.read", usage.cache_read_tokens, shared)
        self._add("cache.write", usage.cache_write_tokens, shared)

    def _done(self, event: Done, seen: TurnEvent) -> None:
        self._answering.discard(seen.conversation)
        shared = {**_AGENT, "tool_search.provider": event.provider}
        kind = turn_error(event)
        failed = {"error.type": kind} if kind else {}
        self._record(_TURN_S, seen.elapsed_s, {**shared, **failed})
        self._record(_STEPS, event.steps, shared)

    def _fail(self, _: TurnFailed, seen: TurnEvent) -> None:
        self._answering.discard(seen.conversation)


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
