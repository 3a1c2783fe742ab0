"""A key is planted in every place for one, and searched in every output."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tool_search import (
    AllProvidersFailedError,
    CallOptions,
    ProviderConfig,
    SQLiteStore,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider
from tool_search.adapters.opentelemetry import OpenTelemetry
from tool_search.core.values.redaction import redacted_text
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

KEY = "Zq9-planted.key_0123456789"
DIALECTS = ("anthropic", "openai_chat", "openai_responses")
ERRORS: dict[str, Callable[[], Exception]] = {
    "an address": lambda: ConnectionError(f"cannot reach https://bot:{KEY}@db.example/x"),
    "a user alone": lambda: OSError(f"clone https://{KEY}@git.example/r.git failed"),
    "a parameter": lambda: ValueError(f"GET https://api.example/v1?token={KEY}&q=1: 404"),
    "a key of Google's": lambda: ValueError(f"https://maps.example/json?q=1&key={KEY}"),
    "a header": lambda: RuntimeError(f"{{'Authorization': 'Bearer {KEY}', 'Accept': '*/*'}}"),
    "a header's line": lambda: RuntimeError(f"Authorization: Basic {KEY}\nAccept: */*"),
    "a setting": lambda: KeyError(f"api_key={KEY}"),
    "JSON": lambda: RuntimeError(json.dumps({"access_token": KEY})),
    "a known form": lambda: RuntimeError(f"key sk-ant-{KEY} is refused"),
    "a cookie": lambda: RuntimeError(f"Set-Cookie: {KEY}; HttpOnly"),
}


def failing(error: Callable[[], Exception]) -> Any:
    def fetch_report(name: str) -> str:
        """Fetch a report by its name."""
        del name
        raise error() from error()

    return fetch_report


@pytest.mark.parametrize("where", ERRORS)
async def test_a_secret_in_an_exception_reaches_neither_model_nor_log_nor_store(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool's exception quotes addresses, headers and settings; a model repeats what it reads."""
    caplog.set_level(logging.DEBUG)
    store = SQLiteStore(tmp_path / "bot.db")
    spans = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    script = ScriptedModel(
        [
            ModelReply(calls=(ModelCall(name="fetch_report", arguments={"name": "x"}),)),
            ModelReply(text="It failed."),
        ]
    )
    with StandInServer(model=script) as server:
        config = ProviderConfig(
            id="p", type="anthropic", model="claude-sonnet-4-6",
            base_url=server.anthropic_base_url, api_key_env="KEY",
        )  # fmt: skip
        key = config.api_key({"KEY": KEY})
        async with build_provider(config, api_key=key, fallbacks=False) as provider:
            runner = ToolSearchRunner(
                providers={"p": provider},
                tools=[failing(ERRORS[where])],
                config=ToolSearchConfig(tool_schema_mode="full"),
                store=store,
                calls=CallOptions(
                    telemetry=OpenTelemetry(tracer_provider=tracing, record_content=True)
                ),
            )
            events = [event async for event in runner.run("Fetch it.")]
            shown = [repr(event) for event in events] + [repr(provider), repr(vars(provider))]
            await runner.aclose()
    shown += [request.raw_body.decode() for request in server.requests]
    shown += [span.to_json() for span in spans.get_finished_spans()]
    shown += [caplog.text, repr(config), repr(key)]
    await store.aclose()
    with closing(sqlite3.connect(tmp_path / "bot.db")) as database:
        shown.append("\n".join(database.iterdump()))
    assert "failed" in shown[-1]
    assert [text for text in shown if KEY in text] == []


class _Echo(BaseHTTPRequestHandler):
    """A service that quotes the key in its refusal, as some do."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "")
        body = json.dumps({"error": {"message": f"the key {key} is not valid", "type": "auth"}})
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_service_that_quotes_the_key_is_not_repeated(
    dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    config = ProviderConfig.model_validate(
        {
            "id": "p", "type": dialect, "model": "m", "api_key_env": "KEY",
            "base_url": f"http://127.0.0.1:{server.server_port}",
        }
    )  # fmt: skip
    try:
        key = config.api_key({"KEY": KEY})
        async with build_provider(config, api_key=key, fallbacks=True) as provider:
            runner = ToolSearchRunner(providers={"p": provider}, tools=[failing(ValueError)])
            with pytest.raises(AllProvidersFailedError) as caught:
                _ = [event async for event in runner.run("Hello")]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    cause: BaseException | None = caught.value
    while cause is not None:
        assert KEY not in f"{cause!r} {cause}"
        cause = cause.__cause__
    assert "is not valid" in str(caught.value)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: found 'x'", "the key is missing", "password must have 8 characters",
        "see https://example.com/a?page=2&sort=key", "signature of f(x) differs", "pin 4 is high",
    ],
)  # fmt: skip
def test_words_about_secrets_are_left_as_they_are(text: str) -> None:
    assert redacted_text(text) == text
