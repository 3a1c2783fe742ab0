"""Spans of a turn, as an OpenTelemetry SDK receives them: what is inside what, and its facts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    call,
    calling,
    many_tools,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tool_search import (
    AllProvidersFailedError,
    CallOptions,
    Done,
    ExecutableTool,
    ToolSearchRunner,
)
from tool_search.runner.execution import CallLimits
from tool_search.testing import Fault, ModelReply, ScriptedModel

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tool_search.adapters.opentelemetry import OpenTelemetry
from tool_search.adapters.opentelemetry.spans import of_request
from tool_search.runner.events import RequestStarted


class Traced:
    """A process with an SDK, and what it exports."""

    def __init__(self, **settings: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.telemetry = OpenTelemetry(
            tracer_provider=self.tracers,
            meter_provider=MeterProvider(metric_readers=[self.reader]),
            **settings,
        )
        self.calls = CallOptions(telemetry=self.telemetry)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The ended spans, in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    @property
    def metrics(self) -> dict[str, list[Any]]:
        """The points of each metric."""
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: list(metric.data.data_points)
            for metric in data.resource_metrics[0].scope_metrics[0].metrics
        }

    def sum(self, name: str) -> float:
        points = self.metrics[name]
        return float(sum(p.value if hasattr(p, "value") else p.sum for p in points))


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def own_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def traced() -> Traced:
    return Traced(agent_name="support")


def script(bench: Bench, replies: Sequence[ModelReply]) -> None:
    bench.server.reset(model=ScriptedModel(replies))


async def bot(bench: Bench, traced: Traced, *names: str, **settings: Any) -> ToolSearchRunner:
    return await bench.runner(*names, calls=traced.calls, **settings)


def is_well_formed(spans: list[ReadableSpan]) -> bool:
    """Each span has ended, and is inside the times of the one that it belongs to."""
    known = {own_id(span): span for span in spans}
    return all(
        (outer := known[owner]).start_time <= span.start_time  # type: ignore[operator]
        and (span.end_time or 0) <= (outer.end_time or 0)
        for span in spans
        if (owner := parent(span)) is not None
    )


async def test_a_turn_has_its_requests_its_search_and_its_calls_inside(
    bench: Bench, traced: Traced
) -> None:
    script(bench, [search("weather forecast"), calling(FORECAST), say("Sunny.")])
    runner = await bot(bench, traced, "claude")
    await turn(runner, "Weather?", conversation="c1")
    whole = traced.one("invoke_agent support")
    assert [span.name for span in traced.spans if parent(span) == own_id(whole)] == [
        "chat claude-sonnet-4-6",
        "execute_tool tool_search",
        "chat claude-sonnet-4-6",
        "execute_tool get_forecast",
        "chat claude-sonnet-4-6",
    ]
    assert len(traced.spans) == 6
    assert is_well_formed(traced.spans)
    assert {facts(span)["gen_ai.conversation.id"] for span in traced.spans} == {"c1"}
    assert facts(whole)["gen_ai.agent.name"] == "support"
    assert facts(whole)["tool_search.turn.requests"] == 3
    assert facts(whole)["gen_ai.response.finish_reasons"] == ("stop",)


async def test_a_request_follows_the_conventions_and_says_what_was_saved(
    bench: Bench, traced: Traced
) -> None:
    script(bench, [search("weather forecast"), say("Sunny.")])
    runner = await bot(bench, traced, "claude", tools=[*some_tools(), *many_tools(50)])
    await turn(runner)
    first, second = traced.named("chat claude-sonnet-4-6")
    assert first.kind is SpanKind.CLIENT
    said = facts(first)
    assert said["gen_ai.operation.name"] == "chat"
    # The stand-in's host is no known service: the dialect names the vendor.
    assert said["gen_ai.provider.name"] == "anthropic"
    assert said["gen_ai.request.model"] == said["gen_ai.response.model"] == "claude-sonnet-4-6"
    assert said["gen_ai.response.id"].startswith("msg_")
    assert said["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert said["server.address"] == "127.0.0.1"
    assert said["server.port"] == urlsplit(bench.server.anthropic_base_url).port
    assert said["gen_ai.usage.input_tokens"] > 0 < said["gen_ai.usage.output_tokens"]
    assert said["gen_ai.response.time_to_first_chunk"] > 0
    assert said["tool_search.provider"] == "claude"
    assert said["tool_search.strategy"] == "claude"
    assert (said["tool_search.tools.sent"], said["tool_search.tools.deferred"]) == (55, 53)
    assert said["tool_search.tools.tokens_saved"] > 5 * said["tool_search.tools.tokens_sent"]
    # The catalog of the first request is all that one has to go by; the second repeats it.
    assert "tool_search.prefix.kept" not in said
    assert facts(second)["tool_search.prefix.kept"] is True
    loaded = facts(second)["tool_search.tools.tokens_sent"] - said["tool_search.tools.tokens_sent"]
    assert loaded > 0


@pytest.mark.parametrize("name", ["gpt", "responses"])
async def test_both_openai_formats_name_the_reply(bench: Bench, traced: Traced, name: str) -> None:
    script(bench, [say("Hello.")])
    await turn(await bot(bench, traced, name))
    (span,) = (span for span in traced.spans if span.name.startswith("chat "))
    said = facts(span)
    assert said["gen_ai.provider.name"] == "openai"
    assert said["gen_ai.response.id"]
    assert said["gen_ai.response.model"] == said["gen_ai.request.model"]


async def test_a_search_says_what_it_found_and_keeps_the_query_back(
    bench: Bench, traced: Traced
) -> None:
    script(bench, [search("weather forecast", "qwzx vbnm"), say("Done.")])
    await turn(await bot(bench, traced, "claude"))
    found, empty = (facts(span) for span in traced.named("execute_tool tool_search"))
    assert found["tool_search.search.tools"] == ("get_forecast",)
    assert found["tool_search.search.found"] == 1
    assert 0 < found["tool_search.search.best_score"] <= 1
    assert found["tool_search.search.is_empty"] is False
    assert empty["tool_search.search.is_empty"] is True
    assert "tool_search.search.best_score" not in empty
    assert "weather" not in "".join(span.to_json() for span in traced.spans)
    assert traced.sum("tool_search.searches") == 2
    assert traced.sum("tool_search.searches.empty") == 1


async def test_content_is_there_only_if_it_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    traced = Traced()
    script(bench, [search("weather forecast"), say("It is sunny.")])
    runner = await bot(bench, traced, "gpt", system_prompt="Be brief.")
    await turn(runner, "Weather? My key is sk-abcdefghijklmnop123")
    assert "sk-abc" not in "".join(span.to_json() for span in traced.spans)
    whole = facts(traced.one("invoke_agent"))
    (asked,) = json.loads(whole["gen_ai.input.messages"])
    assert asked["parts"] == [{"type": "text", "content": "Weather? My key is ***"}]
    (answered,) = json.loads(whole["gen_ai.output.messages"])
    assert answered["parts"] == [{"type": "text", "content": "It is sunny."}]
    assert answered["finish_reason"] == "stop"
    first, second = (facts(span) for span in traced.spans if span.name.startswith("chat "))
    assert "Be brief." in first["gen_ai.system_instructions"]
    (reply,) = json.loads(first["gen_ai.output.messages"])
    assert reply["parts"][0]["arguments"] == {"query": "weather forecast"}
    roles = [message["role"] for message in json.loads(second["gen_ai.input.messages"])]
    assert roles == ["user", "assistant", "tool"]
    searched = facts(traced.one("execute_tool tool_search"))
    assert searched["gen_ai.retrieval.query.text"] == "weather forecast"


async def test_parallel_calls_are_apart_and_all_inside_the_turn(
    bench: Bench, traced: Traced
) -> None:
    tracer = traced.tracers.get_tracer("a tool")
    together = asyncio.Barrier(2)

    async def work(part: str) -> str:
        with tracer.start_as_current_span(f"work {part}"):
            await together.wait()
        return part

    definition = tool("work", "Works.", "part", always_load=True, annotations={"read_only": True})
    both = calling(call("work", {"part": "a"}), call("work", {"part": "b"}))
    script(bench, [both, say("Done.")])
    made = [ExecutableTool(tool=definition, function=work), *some_tools()]
    await turn(await bot(bench, traced, "claude", tools=made))
    whole = traced.one("invoke_agent support")
    runs = {own_id(span): span for span in traced.named("execute_tool work")}
    assert {parent(span) for span in runs.values()} == {own_id(whole)}
    inner = [traced.one("work a"), traced.one("work b")]
    assert {parent(span) for span in inner} == set(runs)


async def test_a_fallback_is_a_second_span_and_the_first_one_failed(
    bench: Bench, traced: Traced
) -> None:
    bench.may_refuse = True
    script(bench, [say("Hello.")])
    bench.server.faults.add(Fault(dialect="anthropic", status=529, times=None))
    await turn(await bot(bench, traced, "claude", "gpt"))
    failed, answered = traced.one("chat claude-sonnet-4-6"), traced.one("chat gpt-5.4")
    assert failed.status.status_code is StatusCode.ERROR
    assert facts(failed)["error.type"] == "529"
    assert answered.status.status_code is StatusCode.UNSET
    whole = traced.one("invoke_agent support")
    assert parent(failed) == parent(answered) == own_id(whole)
    assert whole.status.status_code is StatusCode.UNSET
    assert traced.sum("tool_search.fallbacks") == 1
    ends = {point.attributes.get("error.type")
            for point in traced.metrics["gen_ai.client.operation.duration"]}  # fmt: skip
    assert ends == {None, "529"}


async def test_a_reply_that_breaks_off_is_an_error_of_its_request(
    bench: Bench, traced: Traced
) -> None:
    bench.may_refuse = True
    script(bench, [say("Word after word."), say("Hello.")])
    bench.server.faults.add(Fault(dialect="anthropic", broken=True, after_events=4))
    await turn(await bot(bench, traced, "claude", "gpt"))
    failed = traced.one("chat claude-sonnet-4-6")
    assert failed.status.status_code is StatusCode.ERROR
    assert facts(failed)["error.type"]
    assert "gen_ai.usage.input_tokens" not in facts(failed)


async def test_a_turn_that_nobody_answers_is_an_error(bench: Bench, traced: Traced) -> None:
    bench.may_refuse = True
    bench.server.faults.add(Fault(dialect="anthropic", status=500, times=None))
    runner = await bot(bench, traced, "claude")
    with pytest.raises(AllProvidersFailedError):
        await turn(runner)
    whole = traced.one("invoke_agent support")
    assert whole.status.status_code is StatusCode.ERROR
    assert facts(whole)["error.type"] == "AllProvidersFailedError"


async def test_a_refused_turn_is_an_error_of_its_span_and_of_its_metric(
    bench: Bench, traced: Traced
) -> None:
    script(bench, [ModelReply(text="", stop_reason="refusal")])
    await turn(await bot(bench, traced, "claude"))
    whole = traced.one("invoke_agent support")
    assert whole.status.status_code is StatusCode.ERROR
    (measured,) = traced.metrics["gen_ai.invoke_agent.duration"]
    assert facts(whole)["error.type"] == measured.attributes["error.type"] == "refusal"
    assert traced.one("chat claude-sonnet-4-6").status.status_code is StatusCode.UNSET


def test_a_port_that_the_address_does_not_name_is_not_guessed() -> None:
    started = RequestStarted(
        provider="p", model="m", origin="openai_chat:llm.example/m", strategy="generic",
        phase="answer", tools=0, deferred=0, tool_tokens=0, saved_tokens=0,
    )  # fmt: skip
    said = of_request(started)
    assert said["server.address"] == "llm.example"
    assert "server.port" not in said


async def test_a_consumer_that_stops_leaves_no_span_open(bench: Bench, traced: Traced) -> None:
    script(bench, [say("Word after word of a long answer. " * 20)])
    runner = await bot(bench, traced, "claude")
    async with aclosing(runner.run("Hello")) as events:
        async for _ in events:
            break
    request, whole = traced.one("chat claude-sonnet-4-6"), traced.one("invoke_agent support")
    assert facts(request)["error.type"] == facts(whole)["error.type"] == "cancelled"
    assert is_well_formed(traced.spans)


async def test_a_cancelled_turn_ends_the_spans_of_its_calls(bench: Bench, traced: Traced) -> None:
    running = asyncio.Event()

    async def wait() -> None:
        running.set()
        await asyncio.Event().wait()

    made = ExecutableTool(tool=tool("wait", "Waits.", always_load=True), function=wait)
    script(bench, [calling(call("wait"))])
    runner = await bot(bench, traced, "claude", tools=[made, *some_tools()])
    task = asyncio.create_task(turn(runner))
    await running.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    names = {span.name: facts(span).get("error.type") for span in traced.spans}
    assert names == {
        "chat claude-sonnet-4-6": None,
        "execute_tool wait": "cancelled",
        "invoke_agent support": "cancelled",
    }
    assert is_well_formed(traced.spans)


async def test_a_turn_belongs_to_its_caller_and_the_callers_work_not_to_the_turn(
    bench: Bench, traced: Traced
) -> None:
    script(bench, [search("weather forecast"), say("Sunny.")])
    runner = await bot(bench, traced, "claude")
    tracer = traced.tracers.get_tracer("the host")
    with tracer.start_as_current_span("webhook") as webhook:
        async with aclosing(runner.run("Weather?")) as events:
            async for _ in events:
                assert trace.get_current_span() is webhook
                tracer.start_span("send to the chat").end()
    outer = traced.one("webhook")
    assert parent(traced.one("invoke_agent support")) == own_id(outer)
    assert {parent(span) for span in traced.named("send to the chat")} == {own_id(outer)}


async def test_a_turn_that_a_tool_begins_is_inside_its_call(bench: Bench, traced: Traced) -> None:
    bots: list[ToolSearchRunner] = []

    async def delegate() -> str:
        await turn(bots[0], "Do it.", conversation="inner")
        return "done"

    made = ExecutableTool(tool=tool("delegate", "Delegates.", always_load=True), function=delegate)
    script(bench, [calling(call("delegate")), say("Inner."), say("Outer.")])
    bots.append(await bot(bench, traced, "claude", tools=[made, *some_tools()]))
    await turn(bots[0], conversation="outer")
    inner, outer = sorted(
        traced.named("invoke_agent support"),
        key=lambda span: facts(span)["gen_ai.conversation.id"],
    )
    assert parent(inner) == own_id(traced.one("execute_tool delegate"))
    assert parent(outer) is None


async def test_a_refused_call_is_a_span_with_its_error(bench: Bench, traced: Traced) -> None:
    script(bench, [calling(call("get_time", "{not json")), say("Sorry.")])
    await turn(await bot(bench, traced, "claude"))
    refused = traced.one("execute_tool get_time")
    assert facts(refused)["error.type"] == "invalid"
    assert refused.status.status_code is StatusCode.ERROR
    assert bench.ran == []


async def test_requests_are_measured_once_each(bench: Bench, traced: Traced) -> None:
    """Also if the owner names the telemetry as an observer too, as earlier pages said."""
    calls = CallOptions(telemetry=traced.telemetry, turn_observers=[traced.telemetry.on_turn])
    script(bench, [search("weather forecast"), say("Sunny.")])
    tools = [*some_tools(), *many_tools(50)]
    await turn(await bench.runner("claude", calls=calls, tools=tools))
    requests = [facts(span) for span in traced.named("chat claude-sonnet-4-6")]
    usage = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in traced.metrics["gen_ai.client.token.usage"]
    }
    assert usage == {
        kind: sum(said[f"gen_ai.usage.{kind}_tokens"] for said in requests)
        for kind in ("input", "output")
    }
    (durations,) = traced.metrics["gen_ai.client.operation.duration"]
    (first,) = traced.metrics["gen_ai.client.operation.time_to_first_chunk"]
    assert durations.count == first.count == 2
    saved = sum(said["tool_search.tools.tokens_saved"] for said in requests)
    assert traced.sum("tool_search.tools.tokens_saved") == saved
    sent = sum(said["tool_search.tools.tokens_sent"] for said in requests)
    assert traced.sum("tool_search.tools.tokens_sent") == sent
    assert traced.sum("gen_ai.invoke_agent.duration") > 0


async def test_a_phase_of_skills_like_is_a_request_of_its_own(bench: Bench, traced: Traced) -> None:
    config = SEARCHING.model_copy(update={"tool_schema_mode": "skills_like"})
    script(bench, [calling(call("get_time")), calling(call("get_time")), say("Now.")])
    await turn(await bot(bench, traced, "gpt", config=config))
    phases = [facts(span)["tool_search.phase"] for span in traced.named("chat gpt-5.4")]
    assert phases == ["select", "detail", "select"]


async def test_without_telemetry_a_request_is_a_line_in_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tool_search.requests")
    script(bench, [search("weather forecast"), say("Sunny.")])
    await turn(await bench.runner("claude"), "Weather?", conversation="c1")
    lines = [each for each in caplog.records if each.name == "tool_search.requests"]
    assert len(lines) == 2
    assert lines[0].getMessage().startswith("claude claude-sonnet-4-6: calls, ")
    assert "prefix kept" in lines[1].getMessage()
    said = lines[1].__dict__
    assert (said["conversation"], said["event"]) == ("c1", "RequestFinished")
    assert said["fields"]["prefix_kept"] is True
    assert said["fields"]["tools"] == 5


async def test_a_call_that_is_given_up_ends_its_span(bench: Bench, traced: Traced) -> None:
    """Its task may never end: a span that waits for it would not be exported."""
    stopped = asyncio.Event()

    async def hang() -> None:
        while not stopped.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await stopped.wait()

    options = CallOptions(telemetry=traced.telemetry, limits=CallLimits(timeout_s=0.01, grace_s=0))
    made = ExecutableTool(tool=tool("hang", "Hangs.", always_load=True), function=hang)
    script(bench, [calling(call("hang")), say("Sorry.")])
    runner = await bench.runner("claude", tools=[made, *some_tools()], calls=options)
    await turn(runner)
    ended = traced.named("execute_tool hang")
    stopped.set()
    assert [facts(span)["error.type"] for span in ended] == ["timed_out"]


async def test_telemetry_that_fails_ends_no_turn(bench: Bench) -> None:
    class Broken:
        def on_turn(self, *given: object) -> None:
            raise ValueError("no collector")

    script(bench, [say("Hello.")])
    runner = await bench.runner("claude", calls=CallOptions(telemetry=Broken()))
    done = (await turn(runner))[-1]
    assert isinstance(done, Done)
    assert done.answer == "Hello."
