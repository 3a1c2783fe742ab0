"""Spans and durations of calls, as an OpenTelemetry SDK receives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.execution.calling import CONTEXT, calls, runner, tool
from tests.runner.test_observing import turn
from tool_search import (
    CallOptions,
    Done,
    Message,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tool_search.adapters.opentelemetry import OpenTelemetry


class Collector:
    """Takes what is exported."""

    def __init__(self, **settings: Any) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        meters = MeterProvider(metric_readers=[self.reader])
        self.options = CallOptions(
            telemetry=OpenTelemetry(tracer_provider=self.tracers, meter_provider=meters, **settings)
        )

    @property
    def finished(self) -> dict[str, ReadableSpan]:
        """The spans by name."""
        return {span.name: span for span in self.spans.get_finished_spans()}

    @property
    def durations(self) -> list[tuple[dict[str, Any], int]]:
        """The attributes and the number of the measured calls."""
        measured = self.reader.get_metrics_data()
        assert measured is not None
        (metric,) = measured.resource_metrics[0].scope_metrics[0].metrics
        assert (metric.name, metric.unit) == ("gen_ai.execute_tool.duration", "s")
        points: Any = metric.data.data_points
        return [(dict(point.attributes), point.count) for point in points]


async def _works(**arguments: Any) -> str:
    return "fine"


async def _fails(**arguments: Any) -> str:
    raise ValueError("no such box")


async def test_call_is_a_span_by_the_conventions() -> None:
    """Named after its tool, with the call's id and the conversation, and nothing it says."""
    collector = Collector()
    run = runner(tool(_works, "send", description="Send."), options=collector.options)
    await run.results(calls(("send", {"to": "bo"})), CONTEXT)
    span = collector.finished["execute_tool send"]
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c0",
        "gen_ai.tool.description": "Send.",
        "gen_ai.conversation.id": "c",
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_failed_call_is_an_error_with_its_type() -> None:
    collector = Collector()
    made = [tool(_works, "good"), tool(_fails, "bad")]
    await runner(*made, options=collector.options).results(calls("good", "bad"), CONTEXT)
    span = collector.finished["execute_tool bad"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "ValueError"
    kinds = {point["gen_ai.tool.name"]: point.get("error.type") for point, _ in collector.durations}
    assert kinds == {"good": None, "bad": "ValueError"}


async def test_what_a_tool_traces_is_inside_its_call() -> None:
    collector = Collector()
    tracer = collector.tracers.get_tracer("tool")

    async def work(**arguments: Any) -> None:
        with tracer.start_as_current_span(f"work {arguments['n']}"):
            pass

    made = tool(work, "work", annotations={"read_only": True})
    run = runner(made, options=collector.options)
    await run.results(calls(("work", {"n": 0}), ("work", {"n": 1})), CONTEXT)
    spans = collector.spans.get_finished_spans()
    own = {s.context.span_id: (s.attributes or {})["gen_ai.tool.call.id"]
           for s in spans if s.context and s.name == "execute_tool work"}  # fmt: skip
    inside = {s.name: own[s.parent.span_id] for s in spans if s.parent}
    assert inside == {"work 0": "c0", "work 1": "c1"}


async def test_content_is_recorded_only_where_the_owner_says_and_masked() -> None:
    collector = Collector(record_content=True)
    run = runner(tool(_works, "send"), options=collector.options)
    await run.results(calls(("send", {"to": "bo", "password": "x"})), CONTEXT)
    attributes = collector.finished["execute_tool send"].attributes or {}
    assert attributes["gen_ai.tool.call.arguments"] == '{"to":"bo","password":"***"}'
    assert attributes["gen_ai.tool.call.result"] == "fine"


async def test_cancelled_call_ends_its_span() -> None:
    collector = Collector()
    run = runner(tool(_works, "work"), options=collector.options)
    batch = run.batch(calls("work", "work"), CONTEXT)
    async for _ in batch.events():
        batch.cancel()
    assert all(span.end_time for span in collector.spans.get_finished_spans())


async def test_a_turn_is_measured_by_the_conventions() -> None:
    reader = InMemoryMetricReader()
    telemetry = OpenTelemetry(meter_provider=MeterProvider(metric_readers=[reader]))
    events = await turn(telemetry.on_turn)
    done = events[-1]
    assert isinstance(done, Done)
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, Any] = {
        metric.name: metric.data.data_points
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in found["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": done.usage.input_tokens, "output": done.usage.output_tokens}
    (duration,) = found["gen_ai.invoke_agent.duration"]
    assert dict(duration.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "tool_search.provider": "claude",
    }
    assert found["gen_ai.invoke_agent.inference_calls"][0].sum == done.steps == 3
    assert found["tool_search.turn.time_to_first_text"][0].count == 1
    assert found["tool_search.cache.read"][0].value == done.usage.cache_read_tokens
    assert found["tool_search.tools.discovered"][0].value >= 1


async def test_a_search_in_a_loop_of_ones_own_is_a_span_too() -> None:
    collector = Collector()
    made = [tool(_works, "send_mail", description="Send an e-mail.", kind="mcp", server="mail")]
    run = runner(*made, options=collector.options)
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    session = ToolSearchSession(run.catalog, config=config)
    session.begin_turn("Mail it.", profile=profile_for("openai_chat", "gpt-5.4"))
    (wanted,) = calls(("tool_search", {"query": "send e-mail"}))
    session.accept(Message(role="assistant", tool_calls=(wanted,)))
    await session.run(wanted, runner=run)
    attributes = dict(collector.finished["execute_tool tool_search"].attributes or {})
    assert attributes["tool_search.search.tools"] == ("send_mail",)
    assert attributes["gen_ai.tool.call.id"] == "c0"
    ((searched, count),) = collector.durations
    assert (searched["gen_ai.tool.name"], count) == ("tool_search", 1)
