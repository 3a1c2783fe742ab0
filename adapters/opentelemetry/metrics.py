"""The metrics of turns, measured by their events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from opentelemetry.metrics import Counter, Histogram, Meter

from tool_search.adapters.opentelemetry.conventions import (
    SECONDS,
    TOKENS,
    of_answer,
    of_request,
    turn_error,
)
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

__all__ = ["TurnMetrics"]

_AGENT = {"gen_ai.operation.name": "invoke_agent"}
# Turns of which no end was seen.
_MAX_ANSWERING = 10_000
_NOT_FAILURES = ("requested", "primary_available", "second_chance")


class TurnMetrics:
    """The instruments, and the figures that each event has for them.

    No conversation's key is an attribute: there would be too many.
    """

    def __init__(self, meter: Meter) -> None:
        self._requests = _RequestMetrics(meter)
        seconds = partial(
            meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._duration = seconds("gen_ai.invoke_agent.duration", description="Duration of turns.")
        self._steps = meter.create_histogram(
            "gen_ai.invoke_agent.inference_calls",
            unit="{call}",
            description="Requests of a turn that were answered.",
        )
        self._first = seconds(
            "tool_search.turn.time_to_first_text",
            description="Time from a user's message to the first text of its answer.",
        )
        self._search_s = seconds("tool_search.search.duration", description="Duration of searches.")
        self._searches = _counter(meter, "searches", "search", "Searches of models.")
        self._empty = _counter(
            meter, "searches.empty", "search", "Searches of models that found nothing."
        )
        self._found = _counter(meter, "tools.discovered", "tool", "Tools that were found.")
        self._fallbacks = _counter(meter, "fallbacks", "switch", "Changes after a failure.")
        self._warnings = _counter(meter, "warnings", "warning", "Warnings, by their code.")
        self._answering: set[str] = set()
        self._by_kind: dict[type[RunnerEvent], Callable[[Any, TurnEvent], None]] = {
            TextDelta: self._said,
            RequestStarted: self._requests.started,
            RequestFinished: self._requests.finished,
            SearchFinished: self._searched,
            ToolsDiscovered: self._discovered,
            ProviderSwitched: self._switched,
            RunnerWarning: self._warned,
            Done: self._done,
            TurnFailed: self._failed,
        }

    def observe(self, seen: TurnEvent) -> None:
        """Measure one event."""
        measure = self._by_kind.get(type(seen.event))
        if measure is not None:
            measure(seen.event, seen)

    def _failed(self, _: TurnFailed, seen: TurnEvent) -> None:
        self._answering.discard(seen.conversation)

    def _said(self, _: TextDelta, seen: TurnEvent) -> None:
        # One turn of a conversation runs at a time.
        if seen.conversation not in self._answering:
            if len(self._answering) >= _MAX_ANSWERING:
                self._answering.clear()
            self._answering.add(seen.conversation)
            self._first.record(seen.elapsed_s, attributes=_AGENT)

    def _discovered(self, event: ToolsDiscovered, _: TurnEvent) -> None:
        self._found.add(len(event.names), {"tool_search.via": event.via})

    def _switched(self, event: ProviderSwitched, _: TurnEvent) -> None:
        if event.cause not in _NOT_FAILURES:
            names = {"tool_search.from": event.from_provider, "tool_search.to": event.to_provider}
            self._fallbacks.add(1, names)

    def _warned(self, event: RunnerWarning, _: TurnEvent) -> None:
        self._warnings.add(1, {"tool_search.code": event.code})

    def _searched(self, event: SearchFinished, _: TurnEvent) -> None:
        failed = {"error.type": "search_unavailable"} if event.is_error else {}
        self._searches.add(1, failed)
        self._search_s.record(event.duration_s, attributes=failed)
        if not (event.found or event.is_error):
            self._empty.add(1)

    def _done(self, event: Done, seen: TurnEvent) -> None:
        self._answering.discard(seen.conversation)
        shared = {**_AGENT, "tool_search.provider": event.provider}
        kind = turn_error(event)
        failed = {"error.type": kind} if kind else {}
        self._duration.record(seen.elapsed_s, attributes={**shared, **failed})
        self._steps.record(event.steps, attributes=shared)


class _RequestMetrics:
    """The instruments of requests."""

    def __init__(self, meter: Meter) -> None:
        seconds = partial(
            meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._duration: Histogram = seconds(
            "gen_ai.client.operation.duration", description="GenAI operation duration."
        )
        self._first: Histogram = seconds(
            "gen_ai.client.operation.time_to_first_chunk",
            description="Time from a request to the first text or call of its reply.",
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._read = _counter(meter, "cache.read", "token", "Input tokens from caches.")
        self._written = _counter(meter, "cache.write", "token", "Input tokens put into caches.")
        self._sent = _counter(
            meter, "tools.tokens_sent", "token", "Estimated tokens of definitions in requests."
        )
        self._saved = _counter(
            meter, "tools.tokens_saved", "token", "Estimated tokens of definitions not sent."
        )
        self._changed = _counter(
            meter, "prefix.changes", "request", "Requests that do not repeat the one before."
        )

    def started(self, event: RequestStarted, _: TurnEvent) -> None:
        shared = of_request(event)
        self._sent.add(event.tool_tokens, shared)
        self._saved.add(max(0, event.saved_tokens), shared)
        if event.is_prefix_kept is False:
            self._changed.add(1, shared)

    def finished(self, event: RequestFinished, _: TurnEvent) -> None:
        shared, usage = of_answer(event), event.usage
        self._duration.record(event.duration_s, attributes=shared)
        if event.first_s is not None:
            self._first.record(event.first_s, attributes=shared)
        if event.error:
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, attributes={**shared, "gen_ai.token.type": kind})
        self._read.add(usage.cache_read_tokens, shared)
        self._written.add(usage.cache_write_tokens, shared)


def _counter(meter: Meter, name: str, unit: str, description: str) -> Counter:
    return meter.create_counter(f"tool_search.{name}", unit=f"{{{unit}}}", description=description)
