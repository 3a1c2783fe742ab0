"""Faults of a stand-in server, as the real SDK clients meet them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tests.adapters.contract import http_library
from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel, StandInServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

LONG = 30.0
CALL = ModelReply(
    text="One moment.", calls=(ModelCall(name="get_weather", arguments={"city": "Paris"}),)
)


@pytest.fixture(autouse=True)
def _script(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([CALL] * 3))


async def read(stream: AsyncIterator[Any], seen: list[Any]) -> None:
    """Read a stream to its end, bad or good."""
    async for event in stream:
        seen.append(event)  # noqa: PERF401 - a comprehension would lose what came before the break


ANTHROPIC_ERRORS = {
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "does not have permission"),
    408: ("timeout_error", "timed out"),
    409: ("conflict_error", "conflicts"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "rate limit"),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "unavailable"),
    529: ("overloaded_error", "Overloaded"),
}


@pytest.mark.parametrize("status", ANTHROPIC_ERRORS)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_anthropic_status_has_its_documented_body(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any, status: int, stream: bool
) -> None:
    server.faults.add(Fault(status=status))
    error_type, text = ANTHROPIC_ERRORS[status]
    with pytest.raises(anthropic.APIStatusError, match=text) as failed:
        await claude.messages.create(**claude_body, stream=stream)
    assert (failed.value.status_code, failed.value.type) == (status, error_type)
    assert failed.value.request_id == "req_000000000000000000000000"
    assert server.requests[0].status == status


OPENAI_ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("request_forbidden", "unsupported_country_region_territory"),
    408: ("invalid_request_error", None),
    409: ("invalid_request_error", None),
    413: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("service_unavailable_error", None),
    529: ("server_error", None),
}


@pytest.mark.parametrize("status", OPENAI_ERRORS)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_openai_status_has_its_documented_body(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any, status: int, stream: bool
) -> None:
    server.faults.add(Fault(status=status))
    with pytest.raises(openai.APIStatusError) as failed:
        await gpt.chat.completions.create(**gpt_body, stream=stream)
    assert failed.value.status_code == status
    assert (failed.value.type, failed.value.code) == OPENAI_ERRORS[status]


async def test_error_can_be_worded_and_carry_headers(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.faults.add(
        Fault(
            status=429,
            message="Slow down.",
            error_type="custom_error",
            code="custom_code",
            headers={"retry-after": "7"},
        )
    )
    with pytest.raises(anthropic.RateLimitError, match=r"Slow down\.") as failed:
        await claude.messages.create(**claude_body)
    assert failed.value.response.headers["retry-after"] == "7"
    assert (failed.value.type, failed.value.error_code) == ("custom_error", "custom_code")


async def test_fault_strikes_as_often_as_it_says(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(status=500, skip=1, times=2))
    await gpt.chat.completions.create(**gpt_body)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            await gpt.chat.completions.create(**gpt_body)
    await gpt.chat.completions.create(**gpt_body)
    assert [request.status for request in server.requests] == [200, 500, 500, 200]
    assert server.faults.waiting == ()


async def test_fault_lasts_until_it_is_cleared(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(status=503, times=None))
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            await gpt.chat.completions.create(**gpt_body)
    assert len(server.faults.waiting) == 1
    server.faults.clear()
    assert (await gpt.chat.completions.create(**gpt_body)).choices


async def test_fault_of_one_dialect_leaves_the_other_alone(
    server: StandInServer,
    claude: AsyncAnthropic,
    gpt: AsyncOpenAI,
    claude_body: Any,
    gpt_body: Any,
) -> None:
    server.faults.add(
        Fault(dialect="anthropic", status=529), Fault(path="/v1/messages/count_tokens", status=500)
    )
    assert (await gpt.chat.completions.create(**gpt_body)).choices
    with pytest.raises(anthropic.OverloadedError):
        await claude.messages.create(**claude_body)
    assert (await claude.messages.create(**claude_body)).content


async def test_delay_before_the_answer_lets_the_client_time_out(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    """The request arrives, the answer does not, and the model was never asked."""
    server.faults.add(Fault(delay_s=LONG))
    with pytest.raises(anthropic.APITimeoutError):
        await claude.messages.create(**claude_body, timeout=0.1)
    assert [request.status for request in server.requests] == [None]
    server.reset()
    assert (await claude.messages.create(**claude_body)).content


async def test_client_that_gave_up_during_a_delay_takes_no_step_of_the_script(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    model = ScriptedModel([ModelReply(text="For the second request.")])
    server.reset(model=model)
    server.faults.add(Fault(delay_s=0.3))
    with pytest.raises(openai.APITimeoutError):
        await gpt.chat.completions.create(**gpt_body, timeout=0.05)
    await asyncio.sleep(0.4)
    assert model.remaining == 1
    completion = await gpt.chat.completions.create(**gpt_body)
    assert completion.choices[0].message.content == "For the second request."


async def test_delay_between_events_lets_the_client_time_out(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(event_delay_s=LONG))
    stream = await gpt.chat.completions.create(**gpt_body, stream=True, timeout=0.2)
    with pytest.raises(openai.APITimeoutError):
        _ = [chunk async for chunk in stream]


async def test_short_delays_only_slow_a_stream_down(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(delay_s=0.01, event_delay_s=0.001))
    stream = await gpt.chat.completions.create(**gpt_body, stream=True)
    chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_connection_broken_before_an_answer(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any, stream: bool
) -> None:
    server.faults.add(Fault(broken=True))
    with pytest.raises(anthropic.APIConnectionError):
        await claude.messages.create(**claude_body, stream=stream)
    assert server.requests[0].status is None
    assert (await claude.messages.create(**claude_body)).content


async def test_stream_broken_after_some_events(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.faults.add(Fault(broken=True, after_events=4))
    stream = await claude.messages.create(**claude_body, stream=True)
    seen: list[Any] = []
    with pytest.raises((anthropic.APIConnectionError, http_library(anthropic).RemoteProtocolError)):
        await read(stream, seen)
    kinds = ["message_start", "content_block_start", "content_block_delta"]
    assert [event.type for event in seen] == kinds


async def test_stream_broken_within_a_tool_call(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(broken=True, after_events="tool_call"))
    stream = await gpt.chat.completions.create(**gpt_body, stream=True)
    seen: list[Any] = []
    with pytest.raises((openai.APIConnectionError, http_library(openai).RemoteProtocolError)):
        await read(stream, seen)
    calls = [call for chunk in seen for call in chunk.choices[0].delta.tool_calls or ()]
    arguments = "".join(call.function.arguments for call in calls)
    assert '{"city": "Paris"}'.startswith(arguments)
    assert 0 < len(arguments) < len('{"city": "Paris"}')


async def test_plain_answer_broken_in_its_body(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(broken=True, after_events=1))
    with pytest.raises(openai.APIConnectionError):
        await gpt.chat.completions.create(**gpt_body)


async def test_anthropic_error_inside_a_stream(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.faults.add(Fault(status=529, after_events=3))
    stream = await claude.messages.create(**claude_body, stream=True)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        _ = [event async for event in stream]


async def test_openai_error_inside_a_stream(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(status=500, after_events=2))
    stream = await gpt.chat.completions.create(**gpt_body, stream=True)
    with pytest.raises(openai.APIError, match="had an error"):
        _ = [chunk async for chunk in stream]


async def test_answer_that_closes_the_connection(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(close_connection=True, times=2))
    for _ in range(2):
        raw = await gpt.chat.completions.with_raw_response.create(**gpt_body)
        assert raw.headers["connection"] == "close"


@pytest.mark.parametrize("kind", ["cut", "bad_escape"])
async def test_openai_arguments_that_are_no_json(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any, kind: Any
) -> None:
    server.faults.add(Fault(arguments=kind, times=2))
    plain = await gpt.chat.completions.create(**gpt_body)
    stream = await gpt.chat.completions.create(**gpt_body, stream=True)
    deltas = [chunk.choices[0].delta async for chunk in stream]
    streamed = "".join(
        (call.function and call.function.arguments) or ""
        for delta in deltas
        for call in delta.tool_calls or ()
    )
    calls = plain.choices[0].message.tool_calls or ()
    assert [call.function.arguments for call in calls] == [streamed]
    with pytest.raises(json.JSONDecodeError):
        json.loads(streamed)


@pytest.mark.parametrize("kind", ["cut", "bad_escape"])
async def test_anthropic_arguments_that_are_no_json(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any, kind: Any
) -> None:
    server.faults.add(Fault(arguments=kind))
    stream = await claude.messages.create(**claude_body, stream=True)
    parts = [
        event.delta.partial_json
        async for event in stream
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
    ]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(parts))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_empty_reply(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any, stream: bool
) -> None:
    server.faults.add(Fault(empty=True))
    if stream:
        async with claude.messages.stream(**claude_body) as streamed:
            message: Any = await streamed.get_final_message()
    else:
        message = await claude.messages.create(**claude_body)
    assert (message.content, message.stop_reason) == ([], "end_turn")


async def test_empty_openai_reply(server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any) -> None:
    server.faults.add(Fault(empty=True))
    completion = await gpt.chat.completions.create(**gpt_body)
    assert completion.choices[0].message.content == ""
    assert completion.choices[0].message.tool_calls is None


async def test_body_and_content_type_of_something_else(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.faults.add(Fault(status=502, body=b"<html>Bad Gateway</html>", content_type="text/html"))
    with pytest.raises(openai.InternalServerError) as failed:
        await gpt.chat.completions.create(**gpt_body)
    assert failed.value.response.headers["content-type"] == "text/html"
    assert failed.value.response.content == b"<html>Bad Gateway</html>"


async def test_body_that_is_no_json_in_a_good_answer(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.faults.add(Fault(body=b"{oops"))
    with pytest.raises((anthropic.AnthropicError, ValueError)):
        await claude.messages.create(**claude_body)


def test_broken_arguments_are_never_json() -> None:
    for text in ("{}", '{"a": 1}', '{"a": {"b": [1, 2]}}'):
        for kind in ("cut", "bad_escape"):
            fault = Fault(arguments=kind)
            with pytest.raises(json.JSONDecodeError):
                json.loads(fault.broken_arguments(text))
