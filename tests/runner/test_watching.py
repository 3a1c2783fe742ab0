"""Watching a bot: async observers, keys in logs, the monitor, settings, and a real exporter."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.project.run_page import ROOT, blocks
from tests.runner.bench import Bench, call, calling, say, search, some_tools, tool, turn
from tool_search import (
    CallOptions,
    ConfigurationError,
    Done,
    ExecutableTool,
    ProviderConfig,
    ToolContext,
    open_bot,
)
from tool_search.runner.events import TurnEvent
from tool_search.runner.loop_monitor import LoopMonitor
from tool_search.runner.observing import ConversationFilter
from tool_search.testing import ScriptedModel, StandInServer


def script(bench: Bench, *texts: str) -> None:
    bench.server.reset(model=ScriptedModel([say(text) for text in texts]))


async def test_an_async_observer_gets_all_events_in_order_and_holds_up_no_turn(
    bench: Bench,
) -> None:
    seen: list[TurnEvent] = []
    at_once: list[TurnEvent] = []
    free = asyncio.Event()

    async def slow(event: TurnEvent) -> None:
        await free.wait()
        await asyncio.sleep(0)
        seen.append(event)

    script(bench, "Words of an answer.", "Others.")
    calls = CallOptions(turn_observers=[slow, at_once.append])
    runner = await bench.runner("claude", calls=calls)
    first = await turn(runner)
    second = await turn(runner)
    assert isinstance(first[-1], Done)
    assert isinstance(second[-1], Done)
    assert seen == []
    free.set()
    await runner.aclose()
    assert seen == at_once


async def test_an_async_observer_that_fails_loses_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[TurnEvent] = []
    at_once: list[TurnEvent] = []

    async def fails(event: TurnEvent) -> None:
        seen.append(event)
        raise RuntimeError("the database is away, password=hunter22")

    script(bench, "Words.")
    calls = CallOptions(turn_observers=[fails, at_once.append])
    runner = await bench.runner("claude", calls=calls)
    assert isinstance((await turn(runner))[-1], Done)
    await runner.aclose()
    assert seen == at_once
    assert caplog.text.count("an observer of turns failed") == len(seen)
    assert "hunter22" not in caplog.text


async def test_an_observer_whose_own_work_is_cancelled_loses_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[TurnEvent] = []
    at_once: list[TurnEvent] = []

    async def gives_up(event: TurnEvent) -> None:
        seen.append(event)
        raise asyncio.CancelledError

    script(bench, "Words.")
    calls = CallOptions(turn_observers=[gives_up, at_once.append])
    runner = await bench.runner("claude", calls=calls)
    await turn(runner)
    await runner.aclose()
    assert seen == at_once
    assert caplog.text.count("an observer of turns failed") == len(seen)


async def test_an_observer_that_hangs_is_ended_with_the_bot(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tool_search.runner.execution.observers._PATIENCE_S", 0.01)

    async def hangs(_: TurnEvent) -> None:
        await asyncio.Event().wait()

    script(bench, "Words.")
    runner = await bench.runner("claude", calls=CallOptions(turn_observers=[hangs]))
    await turn(runner)
    await runner.aclose()
    assert "events late when the bot was closed" in caplog.text


async def test_every_record_of_a_turn_can_have_its_conversation(bench: Bench) -> None:
    """Those of tools and threads too, side by side with another conversation's."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Lines()
    handler.addFilter(ConversationFilter())
    handler.setFormatter(logging.Formatter("%(conversation)s|%(message)s"))
    log = logging.getLogger("my_tools")
    together = asyncio.Barrier(2)

    async def work(context: ToolContext) -> str:
        await together.wait()
        log.warning("in %s", context.conversation)
        await asyncio.to_thread(log.warning, "thread of %s", context.conversation)
        return "done"

    made = ExecutableTool(tool=tool("work", "Works.", always_load=True), function=work)
    reply = calling(call("work"))
    bench.server.reset(model=ScriptedModel([reply, reply, say("Done."), say("Done.")]))
    log.addHandler(handler)
    try:
        runner = await bench.runner("claude", tools=[made, *some_tools()])
        await asyncio.gather(turn(runner, conversation="a"), turn(runner, conversation="b"))
        log.warning("outside")
    finally:
        log.removeHandler(handler)
    expected = [f"{key}|{what} {key}" for key in "ab" for what in ("in", "thread of")]
    assert sorted(lines) == sorted([*expected, "|outside"])


async def test_a_hold_of_the_loop_is_reported_and_a_quiet_loop_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holds: list[float] = []
    async with LoopMonitor(hold_s=5.0, on_hold=holds.append):
        await asyncio.sleep(0.06)
    assert holds == []
    assert caplog.text == ""
    async with LoopMonitor(hold_s=0.02, on_hold=holds.append):
        await asyncio.sleep(0)
        time.sleep(0.1)  # noqa: ASYNC251  # what a monitor is for
        await asyncio.sleep(0.01)
    assert holds
    assert max(holds) >= 0.02
    assert "the event loop was held" in caplog.text


def test_a_hold_of_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="hold_s is 0: must be above 0"):
        LoopMonitor(hold_s=0)


# Settings.


def settings(server: StandInServer, **telemetry: object) -> dict[str, Any]:
    provider = ProviderConfig(
        id="p", type="openai_chat", model="m", base_url=server.openai_base_url, api_key_env=None
    )
    return {"providers": [provider], "store": {"type": "memory"}, "telemetry": telemetry}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"enabled": "yes"}, "telemetry.enabled"),
        ({"loop_hold_ms": 0}, "telemetry.loop_hold_ms"),
        ({"agent": "support"}, "telemetry.agent"),
    ],
)
def test_wrong_settings_name_their_key(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        open_bot({"telemetry": wrong})


async def test_telemetry_that_is_asked_for_and_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tool_search.adapters.opentelemetry", None)
    with StandInServer(model=ScriptedModel([say("Hello.")])) as server:
        with pytest.raises(ConfigurationError, match=r"pip install .*\[otel\]"):
            async with open_bot(settings(server, enabled=True)):
                pass
        async with open_bot(settings(server, enabled="auto")) as bot:
            assert await bot.ask("Hello") == "Hello."


async def test_telemetry_that_is_broken_is_logged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken_telemetry.py").write_text("from json import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tool_search.bot._TELEMETRY", "broken_telemetry")
    with StandInServer(model=ScriptedModel([say("Hello.")])) as server:
        async with open_bot(settings(server, enabled="auto")) as bot:
            assert await bot.ask("Hello") == "Hello."
    assert "telemetry_unavailable" in caplog.text


class Receiver:
    """A collector of OTLP over HTTP: what arrived at each path."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        self.headers: list[str | None] = []
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                received.bodies.setdefault(self.path, []).append(body)
                received.headers.append(self.headers.get("authorization"))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


async def test_a_collector_receives_what_a_bot_of_yaml_does(tmp_path: Path) -> None:
    """The program of docs/observability.md in a process of its own, with OTLP over HTTP."""
    proto = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    figures = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    program = blocks(ROOT / "docs" / "observability.md", "py")[0]
    model = ScriptedModel([search("weather forecast"), say("Sunny.")])
    with StandInServer(model=model) as server, receiving() as receiver:
        config = settings(server, agent_name="support")
        config["providers"] = [
            each.model_dump(mode="json", exclude_unset=True) for each in config["providers"]
        ]
        config["tools"] = ["tool_search.sources.toolbox.quantities"]
        config["tool_schema_mode"] = "tool_search"
        (tmp_path / "bot.yaml").write_text(json.dumps(config), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program,
            env={
                "PYTHONPATH": str(ROOT),
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address,
                "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20abc",
                "OTEL_SERVICE_NAME": "my-bot",
            },
            stdout=asyncio.subprocess.PIPE,
            cwd=tmp_path,
        )  # fmt: skip
        printed, _ = await process.communicate()
    assert printed.decode() == "Sunny.\n"
    assert set(receiver.headers) == {"Basic abc"}
    sent = [proto.ExportTraceServiceRequest.FromString(body)
            for body in receiver.bodies["/v1/traces"]]  # fmt: skip
    spans = [
        span
        for request in sent
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = sorted(span.name for span in spans)
    assert names == ["chat m", "chat m", "execute_tool tool_search", "invoke_agent support"]
    (whole,) = (span for span in spans if not span.parent_span_id)
    assert whole.name == "invoke_agent support"
    assert {span.parent_span_id for span in spans if span is not whole} == {whole.span_id}
    measured = figures.ExportMetricsServiceRequest.FromString(receiver.bodies["/v1/metrics"][-1])
    instruments = {
        metric.name
        for resource in measured.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "tool_search.tools.tokens_saved",
        "tool_search.searches",
    } <= instruments
