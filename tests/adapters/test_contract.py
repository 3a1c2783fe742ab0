"""Every chat adapter over real HTTP, with the real SDK, against the stand-in server."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.adapters.contract import (
    ADAPTERS,
    KEY,
    QUESTION,
    WEATHER,
    Adapter,
    Responses,
    events_of,
    plan_of,
    reply_of,
)
from tool_search.adapters import build_provider
from tool_search.catalog.schema.declared import schema_json
from tool_search.config.bot import ProviderConfig
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message, ToolCall
from tool_search.errors import ConfigurationError, ProviderError
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent
from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel, StandInServer

TEXT = "Sunny in Paris: 21 °C, 晴, солнечно. 🌤"


@pytest.fixture(scope="module")
def running() -> Iterator[StandInServer]:
    """One server for the module; each test resets it."""
    with StandInServer() as server:
        yield server


@pytest.fixture
def server(running: StandInServer) -> Iterator[StandInServer]:
    """The server without a trace of the test before; no request may break a rule."""
    running.reset(model=ScriptedModel([ModelReply(text=TEXT)]))
    yield running
    assert running.violations == ()


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.dialect)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Every adapter in turn."""
    assert isinstance(request.param, Adapter)
    return request.param


@pytest.fixture(params=[True, False], ids=["streaming", "whole"])
def streaming(request: pytest.FixtureRequest) -> bool:
    """Both ways to reply."""
    return bool(request.param)


async def test_stream_text_yields_deltas_then_the_end(
    server: StandInServer, adapter: Adapter, streaming: bool
) -> None:
    events = await events_of(adapter.connect(server, streaming=streaming), plan_of())
    assert "".join(event.text for event in events if isinstance(event, ReplyDelta)) == TEXT
    assert [type(event) for event in events].count(ReplyEnd) == 1
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert replace(end.message, native=None) == Message(role="assistant", content=TEXT)
    assert end.stop_reason == "answer"
    assert (len(events) > 2) is streaming


async def test_stream_parallel_calls_come_with_the_text(
    server: StandInServer, adapter: Adapter, streaming: bool
) -> None:
    cities = ("Paris", "巴黎", "Париж")
    calls = tuple(ModelCall(name="get_weather", arguments={"city": city}) for city in cities)
    server.reset(model=ScriptedModel([ModelReply(text="Let me see.", calls=calls)]))
    events = await events_of(adapter.connect(server, streaming=streaming), plan_of())
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert tuple(e.call for e in events if isinstance(e, CallDelta)) == end.message.tool_calls
    assert [c.parsed_arguments() for c in end.message.tool_calls] == [{"city": c} for c in cities]
    assert {call.name for call in end.message.tool_calls} == {"get_weather"}
    assert end.message.text == "Let me see."
    assert end.stop_reason == "calls"


@pytest.mark.parametrize("breakage", ["cut", "bad_escape"])
async def test_stream_broken_arguments_arrive_as_written(
    server: StandInServer, adapter: Adapter, streaming: bool, breakage: Any
) -> None:
    """Broken JSON is not an error of the provider: whoever runs the call informs the model."""
    call = ModelCall(name="get_weather", arguments={"city": "Paris"})
    server.reset(model=ScriptedModel([ModelReply(calls=(call,)), ModelReply(text="Sorry.")]))
    server.faults.add(Fault(arguments=breakage))
    end = await reply_of(adapter.connect(server, streaming=streaming), plan_of())
    (made,) = end.message.tool_calls
    assert not made.is_readable
    assert made.arguments
    result = Message(role="tool", tool_call_id=made.id, name=made.name, content="?", is_error=True)
    history = plan_of(QUESTION, end.message, result)
    assert (await reply_of(adapter.connect(server), history)).message.text == "Sorry."


@pytest.mark.parametrize("name", ["files.read", "天气 查询", "погода", "-x", "a" * 200, "☃"])
async def test_stream_sanitised_name_comes_back_canonical(
    server: StandInServer, adapter: Adapter, streaming: bool, name: str
) -> None:
    """Characters that the wire cannot carry are replaced there and nowhere else."""
    seen: list[str] = []

    def call_it(view: Any) -> ModelReply:
        seen.append(view.tools[0].name)
        return ModelReply(calls=(ModelCall(name=view.tools[0].name),))

    server.reset(model=ScriptedModel([call_it, ModelReply(text="Done.")]))
    plan = plan_of(tools=(Tool(name=name),))
    end = await reply_of(adapter.connect(server, streaming=streaming), plan)
    assert end.message.tool_calls[0].name == name
    assert seen[0].isascii()
    result = Message(role="tool", tool_call_id=end.message.tool_calls[0].id, name=name)
    history = plan_of(QUESTION, end.message, result, tools=(Tool(name=name),))
    assert (await reply_of(adapter.connect(server), history)).message.text == "Done."


async def test_stream_usage_counts_what_was_read_and_written(
    server: StandInServer, adapter: Adapter, streaming: bool
) -> None:
    end = await reply_of(adapter.connect(server, streaming=streaming), plan_of())
    assert end.usage.input_tokens > 20
    assert end.usage.output_tokens == len(TEXT) // 4


async def test_stream_final_phase_keeps_tools_and_forbids_calls(
    server: StandInServer, adapter: Adapter
) -> None:
    server.reset(model=ScriptedModel([lambda view: ModelReply(text=view.tool_choice)]))
    end = await reply_of(adapter.connect(server), plan_of(phase="final", tool_use="none"))
    assert end.message.text == "none"
    assert server.requests[0].tool_names == ("get_weather",)


async def test_stream_without_tools_sends_no_tools(server: StandInServer, adapter: Adapter) -> None:
    await reply_of(adapter.connect(server), plan_of(tools=(), tool_use="none"))
    assert "tools" not in server.requests[0].body
    assert "tool_choice" not in server.requests[0].body


async def test_stream_sends_the_encoded_bytes(server: StandInServer, adapter: Adapter) -> None:
    plan = plan_of()
    await reply_of(adapter.connect(server), plan)
    (request,) = server.requests
    profile = adapter.profile(server)
    assert request.raw_body == adapter.module.encode(plan, profile)
    assert request.body == adapter.module.to_wire(plan, profile)
    assert request.tools_bytes == adapter.module.encode_tools(plan.tools, profile)
    assert request.headers["content-type"] == "application/json"


async def test_extra_body_is_merged_and_can_switch_streaming_off(
    server: StandInServer, adapter: Adapter
) -> None:
    extra = {"stream": False, adapter.limit: 77, "temperature": 0.5, "model": None}
    await reply_of(adapter.connect(server, extra_body={**extra, "model": "claude-x"}), plan_of())
    body = server.requests[0].body
    assert (body["stream"], body[adapter.limit], body["temperature"]) == (False, 77, 0.5)
    assert body["model"] == "claude-x"
    assert "model" not in adapter.module.to_wire(plan_of(), adapter.profile(), extra_body=extra)


@pytest.mark.parametrize("key", ["tools", "messages", "input"])
def test_extra_body_with_what_the_plan_decides_is_refused(adapter: Adapter, key: str) -> None:
    """It would send what no session knows of."""
    with pytest.raises(ConfigurationError, match=f"extra_body.{key}"):
        adapter.provider(profile=adapter.profile(), api_key=KEY, extra_body={key: []})


@pytest.mark.parametrize("key", ["", "ключ", "line\nend"])
def test_key_that_no_header_carries_is_refused_unseen(adapter: Adapter, key: str) -> None:
    """The HTTP client would quote it in its error."""
    with pytest.raises(ConfigurationError, match="API key") as caught:
        adapter.provider(profile=adapter.profile(), api_key=key)
    assert not key or key not in str(caught.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """One way to fail, and the error it must become."""

    fault: Fault
    status: int | None
    code: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


HTML = b"<html><body>Bad gateway</body></html>"
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
FAILURES = {
    **{str(s): Failing(fault=Fault(status=s), status=s) for s in STATUSES},
    "401 with the key": Failing(
        fault=Fault(status=401, message=f"Incorrect API key provided: {KEY}."), status=401
    ),
    "not reached": Failing(
        fault=Fault(),
        status=None,
        code="connection",
        options={"base_url": "http://127.0.0.1:9/v1"},
    ),
    "hung up": Failing(fault=Fault(broken=True), status=None, code="connection"),
    "timed out": Failing(
        fault=Fault(delay_s=5.0), status=None, code="timeout", options={"first_byte_timeout_s": 0.1}
    ),
    "html": Failing(
        fault=Fault(body=HTML, content_type="text/html"), status=200, code="malformed_reply"
    ),
    "not JSON": Failing(fault=Fault(body=b"{"), status=200, code="malformed_reply"),
    "empty": Failing(fault=Fault(body=b""), status=200, code="malformed_reply"),
    "not UTF-8": Failing(fault=Fault(body=b'{"a": "\xff"}'), status=200, code="malformed_reply"),
    "no object": Failing(fault=Fault(body=b"[1]"), status=200, code="malformed_reply"),
    "null": Failing(fault=Fault(body=b"null"), status=200, code="malformed_reply"),
    "no reply": Failing(fault=Fault(body=b'{"id": 1}'), status=200, code="malformed_reply"),
    "error with 200": Failing(
        fault=Fault(body=b'{"error": {"type": "rate_limit_error", "message": "Slow down"}}'),
        status=429,
        code="rate_limit_error",
    ),
}


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES.keys())
async def test_stream_failure_is_a_provider_error_without_the_key(
    running: StandInServer, adapter: Adapter, streaming: bool, case: Failing
) -> None:
    running.reset(model=ScriptedModel([ModelReply(text=TEXT)]))
    running.faults.add(case.fault)
    options = {"streaming": streaming, **case.options}
    with pytest.raises(ProviderError) as caught:
        await reply_of(adapter.connect(running, **options), plan_of())
    error = caught.value
    if streaming and case.fault.content_type == "text/html":
        # As a stream it is one without events, which ends too early.
        assert error.code == "broken_reply"
    else:
        assert error.status == case.status
        assert case.code in (None, error.code)
    assert error.provider == "tested"
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert KEY not in repr(adapter.connect(running))
    assert "bearer" not in shown.lower()


@pytest.mark.parametrize("after", [0, 1, 3, "tool_call"])
@pytest.mark.parametrize("status", [None, 529, 500], ids=["cut", "error 529", "error 500"])
async def test_stream_broken_in_the_middle_is_a_provider_error(
    server: StandInServer, adapter: Adapter, after: Any, status: int | None
) -> None:
    """A broken connection, or an error event; a call that was half streamed is never yielded."""
    call = ModelCall(name="get_weather", arguments={"city": "Paris"})
    server.reset(model=ScriptedModel([ModelReply(text=TEXT, calls=(call,))]))
    server.faults.add(Fault(after_events=after, status=status, broken=status is None))
    events: list[ReplyEvent] = []
    async with adapter.connect(server) as provider:
        with pytest.raises(ProviderError) as caught:
            await _listen(provider.stream(plan_of()), events)
    assert not any(isinstance(event, CallDelta | ReplyEnd) for event in events)
    if status is None:
        assert caught.value.status is None
    else:
        assert caught.value.status in (status, 500)


async def test_stream_that_ends_too_early_is_a_broken_reply(
    server: StandInServer, adapter: Adapter
) -> None:
    server.faults.add(Fault(body=b": nothing\n\n", content_type="text/event-stream"))
    with pytest.raises(ProviderError) as caught:
        await reply_of(adapter.connect(server), plan_of())
    assert caught.value.code == "broken_reply"


async def test_stream_abandoned_closes_its_response(
    server: StandInServer, adapter: Adapter
) -> None:
    server.faults.add(Fault(event_delay_s=0.02))
    responses = Responses()
    async with adapter.client(server, responses) as client:
        provider = adapter.connect(server, client=client)
        async with aclosing(provider.stream(plan_of())) as stream:
            async for _ in stream:
                break
        assert [response.is_closed for response in responses.seen] == [True]


async def test_stream_cancelled_closes_its_response(
    server: StandInServer, adapter: Adapter
) -> None:
    server.faults.add(Fault(event_delay_s=0.5))
    responses = Responses()
    async with adapter.client(server, responses) as client:
        provider = adapter.connect(server, client=client)
        task = asyncio.create_task(_listen(provider.stream(plan_of()), []))
        await responses.came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [response.is_closed for response in responses.seen] == [True]


async def _listen(stream: AsyncIterator[ReplyEvent], events: list[ReplyEvent]) -> None:
    async for event in stream:
        events.append(event)  # noqa: PERF401 - those before an error count


async def test_aclose_leaves_a_given_client_open(server: StandInServer, adapter: Adapter) -> None:
    async with adapter.client(server, Responses()) as client:
        async with adapter.connect(server, client=client):
            pass
        assert not client.is_closed()


async def test_stream_can_be_asked_again_at_once(server: StandInServer, adapter: Adapter) -> None:
    server.reset(model=ScriptedModel([ModelReply(text=TEXT)] * 8))
    async with adapter.connect(server) as provider:
        plans = (_last(provider.stream(plan_of())) for _ in range(8))
        ends = await asyncio.gather(*plans)
    assert [end.message.text for end in ends] == [TEXT] * 8


async def _last(stream: Any) -> ReplyEnd:
    events = [event async for event in stream]
    assert isinstance(events[-1], ReplyEnd)
    return events[-1]


async def test_thinking_goes_back_to_its_origin_only(
    server: StandInServer, adapter: Adapter, streaming: bool
) -> None:
    """Within the turn, unchanged, and never to another provider."""
    call = ModelCall(name="get_weather", arguments={"city": "Paris"})
    reply = ModelReply(text="Hm.", thinking="The user wants weather.", calls=(call,))
    server.reset(model=ScriptedModel([reply, ModelReply(text=TEXT)]))
    end = await reply_of(adapter.connect(server, streaming=streaming), plan_of())
    assert end.message.native is not None
    made = end.message.tool_calls[0]
    result = Message(role="tool", tool_call_id=made.id, name=made.name, content="21 °C")
    history = plan_of(QUESTION, end.message, result)
    await reply_of(adapter.connect(server), history)
    assert b"The user wants weather." in server.requests[1].raw_body
    assert b"The user wants weather." not in adapter.module.encode(history, adapter.profile())


async def test_build_provider_makes_the_adapter_of_its_type(
    server: StandInServer, adapter: Adapter
) -> None:
    config = ProviderConfig(
        id="mine", type=adapter.dialect, model=adapter.model, base_url=adapter.base_url(server)
    )
    provider = build_provider(config, api_key=KEY, fallbacks=True)
    events = [event async for event in provider.stream(plan_of())]
    assert isinstance(provider, adapter.provider)  # type: ignore[arg-type]
    assert isinstance(events[-1], ReplyEnd)
    await provider.aclose()


async def test_build_provider_without_fallbacks_repeats_a_failed_request(
    server: StandInServer, adapter: Adapter
) -> None:
    server.faults.add(Fault(status=500, headers={"retry-after-ms": "1"}))
    config = ProviderConfig(
        id="mine", type=adapter.dialect, model=adapter.model, base_url=adapter.base_url(server)
    )
    provider = build_provider(config, api_key=KEY, fallbacks=False)
    events = [event async for event in provider.stream(plan_of())]
    assert isinstance(events[-1], ReplyEnd)
    assert len(server.requests) == 2
    await provider.aclose()


def test_arguments_that_are_no_json_are_sent_as_nothing(adapter: Adapter) -> None:
    for text in ("{", "[1]", '{"a": NaN}', '{"a": 1e999}', "", "null", '"x"'):
        call = ToolCall(id="c1", name="get_weather", arguments=text)
        history = plan_of(
            QUESTION,
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", tool_call_id="c1", name="get_weather", content="?"),
        )
        sent = json.dumps(adapter.module.to_wire(history, adapter.profile())[adapter.history])
        assert '"input": {}' in sent or '"arguments": "{}"' in sent


def test_weather_is_declared_as_it_is(adapter: Adapter) -> None:
    text = adapter.module.encode(plan_of(), adapter.profile()).decode()
    assert WEATHER.description in text
    assert schema_json(WEATHER) in text
