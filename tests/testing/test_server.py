"""The stand-in server, asked by the real SDK clients."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tool_search.testing import (
    Endpoint,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
    StandInServerError,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

CALL = ModelReply(
    text="Let me look that up for you.",
    calls=(
        ModelCall(name="get_weather", arguments={"city": "Paris"}),
        ModelCall(name="get_weather", arguments={"city": "巴黎"}),
    ),
)


def stand_in_threads() -> set[threading.Thread]:
    """Return the threads of all stand-in servers of the process."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("stand-in")}


async def test_anthropic_message_has_text_and_both_calls(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL]))
    message = await claude.messages.create(**claude_body)
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert [call.input for call in calls] == [{"city": "Paris"}, {"city": "巴黎"}]
    assert len({call.id for call in calls}) == 2
    assert message.stop_reason == "tool_use"
    assert message.usage.cache_read_input_tokens == 0


async def test_anthropic_stream_accumulates_to_the_same_message(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    reply = ModelReply(text=CALL.text, calls=CALL.calls, thinking="The city is Paris.")
    server.reset(model=ScriptedModel([reply, reply]))
    plain = await claude.messages.create(**claude_body)
    async with claude.messages.stream(**claude_body) as stream:
        streamed = await stream.get_final_message()
    assert [
        block.model_dump(exclude={"id", "citations", "parsed_output"}) for block in streamed.content
    ] == [block.model_dump(exclude={"id", "citations"}) for block in plain.content]
    assert streamed.stop_reason == plain.stop_reason
    assert streamed.usage.input_tokens == plain.usage.input_tokens
    assert streamed.usage.output_tokens == plain.usage.output_tokens


async def test_anthropic_stream_events_come_in_the_recorded_order(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Sunny.", thinking="Hm.")]))
    stream = await claude.messages.create(**claude_body, stream=True)
    thinking, text = (["content_block_delta"] * count for count in (2, 1))
    start, stop = ["content_block_start"], ["content_block_stop"]
    assert [event.type async for event in stream] == [
        "message_start",
        *(start + thinking + stop),
        *(start + text + stop),
        "message_delta",
        "message_stop",
    ]


async def test_anthropic_count_tokens_counts_what_the_model_is_shown(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    del claude_body["max_tokens"]
    before = await claude.messages.count_tokens(**claude_body)
    hidden = {**claude_body["tools"][0], "name": "other", "defer_loading": True}
    claude_body["tools"].append(hidden)
    after = await claude.messages.count_tokens(**claude_body)
    assert after.input_tokens == before.input_tokens > 0


async def test_openai_completion_has_text_and_both_calls(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL]))
    completion = await gpt.chat.completions.create(**gpt_body)
    choice = completion.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", CALL.text)
    assert [call.function.arguments for call in choice.message.tool_calls or ()] == [
        '{"city": "Paris"}',
        '{"city": "巴黎"}',
    ]


async def test_openai_stream_accumulates_to_the_same_completion(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL, CALL]))
    plain = await gpt.chat.completions.create(**gpt_body)
    gpt_body["stream_options"] = {"include_usage": True}
    async with gpt.chat.completions.stream(**gpt_body) as stream:
        streamed = await stream.get_final_completion()
    kept = {"role", "content", "refusal"}
    said = streamed.choices[0].message
    assert said.model_dump(include=kept) == plain.choices[0].message.model_dump(include=kept)
    assert [call.function.arguments for call in said.tool_calls or ()] == [
        call.function.arguments for call in plain.choices[0].message.tool_calls or ()
    ]
    assert streamed.usage == plain.usage


async def test_openai_stream_without_the_option_reports_no_usage(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Sunny.")]))
    stream = await gpt.chat.completions.create(**gpt_body, stream=True)
    chunks = [chunk async for chunk in stream]
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_conversation_with_a_reference_shows_the_model_the_deferred_tool(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    seen: list[list[str]] = []

    def look(view: ModelView) -> ModelReply:
        seen.append([tool.name for tool in view.tools])
        return ModelReply(text="ok") if view.results else CALL

    server.reset(model=ScriptedModel([look, look]))
    hidden = {**claude_body["tools"][0], "name": "get_time", "defer_loading": True}
    claude_body["tools"].append(hidden)
    message = await claude.messages.create(**claude_body)
    found = [{"type": "tool_reference", "tool_name": "get_time"}]
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": found}
        for block in message.content
        if block.type == "tool_use"
    ]
    claude_body["messages"] += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": results},
    ]
    await claude.messages.create(**claude_body)
    assert seen == [["get_weather"], ["get_weather", "get_time"]]


async def test_text_after_results_is_in_the_turn_of_the_results(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    views: list[ModelView] = []

    def look(view: ModelView) -> ModelReply:
        views.append(view)
        return ModelReply(text="ok") if view.results else CALL

    server.reset(model=ScriptedModel([look, look]))
    message = await claude.messages.create(**claude_body)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
        for block in message.content
        if block.type == "tool_use"
    ]
    claude_body["messages"] += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": results},
        {"role": "user", "content": "And the wind?"},
    ]
    await claude.messages.create(**claude_body)

    last = views[-1].messages[-1]
    assert [message.role for message in views[-1].messages] == ["user", "assistant", "user"]
    assert ([result.text for result in last.results], last.text) == (["sunny"] * 2, "And the wind?")


async def test_replayed_reply_with_thinking_is_accepted_and_a_changed_prefix_is_not(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hi.", thinking="Hm.")] * 2))
    claude_body["model"] = "claude-sonnet-5-5"
    message = await claude.messages.create(**claude_body)
    claude_body["messages"] += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": "And tomorrow?"},
    ]
    await claude.messages.create(**claude_body)
    claude_body["tools"].append({**claude_body["tools"][0], "name": "another"})
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        await claude.messages.create(**claude_body)
    claude_body["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    server.reset(model=ScriptedModel([ModelReply(text="Hi.")]))
    assert (await claude.messages.create(**claude_body)).content


async def test_captured_request_keeps_the_bytes_and_no_key(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Sunny.")]))
    await claude.messages.create(**claude_body)
    (request,) = server.requests
    assert (request.dialect, request.path, request.status) == ("anthropic", "/v1/messages", 200)
    assert (request.number, request.stream, request.model) == (0, False, claude_body["model"])
    assert request.tools_bytes is not None
    assert request.tools_bytes in request.raw_body
    assert request.tool_names == ("get_weather",)
    assert request.headers["authorization"] == "***"
    assert "a-key" not in repr(request)


async def test_violation_is_answered_and_captured(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    gpt_body["tools"] *= 2
    with pytest.raises(openai.BadRequestError, match="names must be unique") as refused:
        await gpt.chat.completions.create(**gpt_body)
    assert refused.value.code == "invalid_value"
    assert server.requests[0].status == 400
    assert server.requests[0].violation == server.violations[0]


async def test_anthropic_error_code_reaches_the_client(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    claude_body["tools"] += [
        {**claude_body["tools"][0], "name": f"tool_{index}", "defer_loading": True}
        for index in range(10_001)
    ]
    with pytest.raises(anthropic.BadRequestError) as refused:
        await claude.messages.create(**claude_body)
    assert refused.value.error_code == "available_tools_limit_exceeded"
    assert refused.value.type == "invalid_request_error"


def raw_post(url: str, data: bytes, **headers: str) -> tuple[int, Any]:
    """Return the answer to bytes that no SDK would send."""
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310 - the server's
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)  # noqa: S310 - the server's own address
    with refused.value as error:
        return error.status or 0, json.load(error)["error"]


def test_missing_key_is_refused(server: StandInServer, claude_body: Any) -> None:
    url, body = f"{server.anthropic_base_url}/v1/messages", json.dumps(claude_body).encode()
    status, error = raw_post(url, body, **{"anthropic-version": "2023-06-01"})
    assert (status, error["type"]) == (401, "authentication_error")
    status, error = raw_post(url, body, **{"x-api-key": "k"})
    assert (status, error["message"]) == (400, "anthropic-version: header is required")
    status, error = raw_post(f"{server.openai_base_url}/chat/completions", body)
    assert (status, error["type"]) == (401, "invalid_request_error")
    assert [request.status for request in server.requests] == [401, 400, 401]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b'{"n": NaN}', b'{"text": "\\ud83d"}', b"[" * 100_000],
    ids=["empty", "cut", "list", "no UTF-8", "NaN", "half a surrogate", "deep"],
)
def test_body_that_is_no_json_object_is_refused(server: StandInServer, body: bytes) -> None:
    url = f"{server.openai_base_url}/chat/completions"
    status, error = raw_post(url, body, authorization="Bearer k")
    assert status == 400
    assert error["message"].startswith("We could not parse the JSON body of your request.")
    assert server.requests[0].raw_body == body
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    status, error = raw_post(f"{server.anthropic_base_url}/v1/messages", body, **headers)
    assert status == 400
    assert error["message"].startswith("The request body is not valid JSON")


def test_body_beyond_32_megabytes_is_too_large(server: StandInServer) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    body = json.dumps({"model": "x" * (32 * 1024 * 1024)}).encode()
    status, error = raw_post(f"{server.anthropic_base_url}/v1/messages", body, **headers)
    assert (status, error["type"]) == (413, "request_too_large")


async def test_endpoint_that_does_not_know_tool_search_refuses_it(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(endpoint=Endpoint(supports_tool_search=False))
    claude_body["tools"][0]["defer_loading"] = False
    with pytest.raises(anthropic.BadRequestError, match="Extra inputs are not permitted"):
        await claude.messages.create(**claude_body)
    server.reset(endpoint=Endpoint())


async def test_unknown_path_is_not_found(server: StandInServer) -> None:
    client = openai.AsyncOpenAI(api_key="x", base_url=server.url + "/v2", max_retries=0)
    async with client:
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="m", messages=[])


async def test_reset_forgets_requests_faults_and_model(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="One.")]))
    await gpt.chat.completions.create(**gpt_body)
    server.reset(model=ScriptedModel([ModelReply(text="Two.")]))
    assert server.requests == ()
    completion = await gpt.chat.completions.create(**gpt_body)
    assert completion.choices[0].message.content == "Two."


async def test_close_leaves_no_thread_though_a_client_is_connected(gpt_body: Any) -> None:
    before = stand_in_threads()
    with StandInServer(model=ScriptedModel([ModelReply(text="Hi.")])) as server:
        client = openai.AsyncOpenAI(api_key="x", base_url=server.openai_base_url, max_retries=0)
        async with client:
            await client.chat.completions.create(**gpt_body)
            server.close()
            assert stand_in_threads() <= before


def test_server_that_does_not_run_has_no_address() -> None:
    with pytest.raises(StandInServerError, match="with block"):
        _ = StandInServer().openai_base_url


def test_server_starts_once() -> None:
    with StandInServer() as server, pytest.raises(StandInServerError, match="already running"):
        server.start()
