"""The stand-in server, asked by the real SDK clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLAUDE_TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather.",
    "input_schema": SCHEMA,
}
OPENAI_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA},
}
CALL = ModelReply(
    text="Let me look that up for you.",
    calls=(
        ModelCall(name="get_weather", arguments={"city": "Paris"}),
        ModelCall(name="get_weather", arguments={"city": "巴黎"}),
    ),
)


@pytest.fixture(scope="module")
def running() -> Iterator[StandInServer]:
    """One server for the module; each test resets it."""
    with StandInServer() as server:
        yield server


@pytest.fixture
def server(running: StandInServer) -> StandInServer:
    """The server without a trace of the test before."""
    running.reset(model=ScriptedModel([CALL, ModelReply(text="Sunny, 21 °C.")]))
    return running


def claude(server: StandInServer) -> anthropic.AsyncAnthropic:
    """A real client that does not repeat failed requests."""
    return anthropic.AsyncAnthropic(
        api_key="a-key", base_url=server.anthropic_base_url, max_retries=0
    )


def gpt(server: StandInServer) -> openai.AsyncOpenAI:
    """A real client that does not repeat failed requests."""
    return openai.AsyncOpenAI(api_key="a-key", base_url=server.openai_base_url, max_retries=0)


def claude_request(**changes: Any) -> Any:
    """A valid request to Claude."""
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "messages": [QUESTION],
        "tools": [CLAUDE_TOOL],
        **changes,
    }


def gpt_request(**changes: Any) -> Any:
    """A valid request to OpenAI."""
    return {"model": "gpt-5.4", "messages": [QUESTION], "tools": [OPENAI_TOOL], **changes}


async def test_anthropic_message_has_text_and_both_calls(server: StandInServer) -> None:
    """A reply that is not streamed is read by the SDK as a complete message."""
    async with claude(server) as client:
        message = await client.messages.create(**claude_request())
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"city": "Paris"},
        {"city": "巴黎"},
    ]
    assert message.stop_reason == "tool_use"
    assert message.usage.cache_read_input_tokens == 0


async def test_anthropic_stream_accumulates_to_the_same_message(server: StandInServer) -> None:
    """The SDK's own stream accumulation gives what the plain reply gives."""
    async with claude(server) as client:
        plain = await client.messages.create(**claude_request())
        server.reset(model=ScriptedModel([CALL]))
        async with client.messages.stream(**claude_request()) as stream:
            streamed = await stream.get_final_message()
    assert [b.model_dump(exclude={"id"}) for b in streamed.content] == [
        b.model_dump(exclude={"id"}) for b in plain.content
    ]
    assert streamed.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == plain.usage.output_tokens


async def test_anthropic_stream_events_come_in_the_recorded_order(server: StandInServer) -> None:
    """As recorded from the service; the SDK keeps the ping to itself."""
    server.reset(model=ScriptedModel([ModelReply(text="Sunny.", thinking="Hm.")]))
    async with claude(server) as client:
        stream = await client.messages.create(**claude_request(), stream=True)
        kinds = [event.type async for event in stream]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_openai_completion_has_text_and_both_calls(server: StandInServer) -> None:
    """A reply that is not streamed is read by the SDK as a completion."""
    async with gpt(server) as client:
        completion = await client.chat.completions.create(**gpt_request())
    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == CALL.text
    assert [call.function.arguments for call in choice.message.tool_calls] == [
        '{"city": "Paris"}',
        '{"city": "巴黎"}',
    ]


async def test_openai_stream_accumulates_to_the_same_completion(server: StandInServer) -> None:
    """The SDK's own stream accumulation gives what the plain reply gives."""
    async with gpt(server) as client:
        plain = await client.chat.completions.create(**gpt_request())
        server.reset(model=ScriptedModel([CALL]))
        request = gpt_request(stream_options={"include_usage": True})
        async with client.chat.completions.stream(**request) as stream:
            streamed = await stream.get_final_completion()
    assert streamed.choices[0].message.content == plain.choices[0].message.content
    assert [c.function.arguments for c in streamed.choices[0].message.tool_calls] == [
        c.function.arguments for c in plain.choices[0].message.tool_calls
    ]
    assert streamed.usage is not None
    assert streamed.usage.total_tokens == plain.usage.total_tokens


async def test_captured_requests_keep_the_bytes_and_no_key(server: StandInServer) -> None:
    """What arrived is kept as sent; the key is not."""
    async with claude(server) as client:
        await client.messages.create(**claude_request())
    (request,) = server.requests
    assert (request.dialect, request.path, request.status) == ("anthropic", "/v1/messages", 200)
    assert request.headers["authorization"] == "***"
    assert request.tools_bytes is not None
    assert request.tools_bytes in request.raw_body
    assert request.tool_names == ("get_weather",)
    assert b"a-key" not in request.raw_body + repr(request).encode()


async def test_script_exhausted_is_an_error_that_says_so(server: StandInServer) -> None:
    """A request more than the script has steps names the script."""
    server.reset(model=ScriptedModel())
    async with gpt(server) as client:
        with pytest.raises(openai.InternalServerError, match="exhausted: it has 0 steps"):
            await client.chat.completions.create(**gpt_request())
