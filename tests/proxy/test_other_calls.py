"""Calls of other kinds beside a search, namespaces, and clients that keep less of a reply."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import TOOLS, client_of
from tests.proxy.test_stored_replies import FUNCTIONS, SEARCH, said

EVENTS = {"content-type": "text/event-stream"}
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def function_call(name: str, call_id: str, **more: Any) -> dict[str, Any]:
    """Return a call of a function."""
    return {
        "type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name,
        "arguments": "{}", **more,
    }  # fmt: skip


def response(*output: dict[str, Any], stream: bool) -> bytes:
    """Return a response of a provider."""
    whole = {"id": "r", "object": "response", "status": "completed", "output": [*output]}
    if not stream:
        return json.dumps(whole).encode()
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": []}}
    ]
    for index, item in enumerate(output):
        for kind in ("added", "done"):
            type_ = f"response.output_item.{kind}"
            events.append({"type": type_, "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


async def ask(
    provider: RawProvider, client: httpx2.AsyncClient, body: dict[str, Any], *replies: bytes
) -> list[dict[str, Any]]:
    """Return the output that a client of Responses gets."""
    provider.headers = EVENTS if body.get("stream") else {"content-type": "application/json"}
    provider.bodies = [*replies]
    reply = await client.post("/v1/responses", json=body)
    if not body.get("stream"):
        return list(reply.json()["output"])
    last = [line for line in reply.text.split("\n") if line.startswith("data: ")][-1]
    ended = json.loads(last.removeprefix("data: "))
    assert ended["type"] == "response.completed"
    return list(ended["response"]["output"])


@STREAMS
async def test_a_custom_call_beside_a_search_is_the_clients_at_once(*, stream: bool) -> None:
    custom = {
        "type": "custom_tool_call",
        "id": "ctc",
        "call_id": "c",
        "name": "patch",
        "input": "x",
    }
    body: dict[str, Any] = {
        "model": "m", "input": [{"role": "user", "content": "hi"}], "stream": stream,
        "tools": [*FUNCTIONS, {"type": "custom", "name": "patch"}],
    }  # fmt: skip
    with raw_provider() as provider:
        async with client_of(provider) as client:
            seen = await ask(provider, client, body, response(custom, SEARCH, stream=stream))
            assert seen == [custom]
            result = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
            later = {**body, "input": [*body["input"], *seen, result]}
            await ask(provider, client, later, response(said("ok"), stream=stream))

    sent = json.loads(provider.requests[1].body)["input"]
    assert [each.get("call_id") for each in sent] == [None, "c", "call_1", "call_1", "c"]


async def test_a_custom_call_of_chat_completions_is_streamed_beside_a_search() -> None:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode()

    search = {"name": "tool_search", "arguments": '{"query": "thing"}'}
    calls = [
        {"index": 0, "id": "s", "type": "function", "function": search},
        {"index": 1, "id": "c", "type": "custom", "custom": {"name": "patch", "input": ""}},
        {"index": 1, "custom": {"input": "xy"}},
    ]
    body = {
        "model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}],
        "tools": [*TOOLS, {"type": "custom", "custom": {"name": "patch"}}],
    }  # fmt: skip
    with raw_provider() as provider:
        provider.headers = EVENTS
        provider.body = b"".join(chunk({"tool_calls": [c]}) for c in calls)
        provider.body += chunk({}, "tool_calls") + b"data: [DONE]\n\n"
        async with client_of(provider) as client:
            reply = await client.post("/v1/chat/completions", json=body)

    lines = [line.removeprefix("data: ") for line in reply.text.split("\n") if line]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines[:-1]]
    seen = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [(c["index"], c["custom"]["input"]) for c in seen] == [(0, ""), (0, "xy")]
    assert len(provider.requests) == 1


async def test_a_streamed_call_of_a_hidden_tool_keeps_its_fields() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "c", "name": "tool_3", "input": {}, "caller": caller}
    tools = [{"name": each["name"], "input_schema": each["parameters"]} for each in FUNCTIONS]
    body = {
        "model": "m", "max_tokens": 9, "stream": True, "tools": tools,
        "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    events = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    with raw_provider() as provider:
        provider.headers = EVENTS
        provider.body = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
        async with client_of(provider) as client:
            reply = await client.post("/v1/messages", json=body)

    lines = [line for line in reply.text.split("\n") if line.startswith("data: ")]
    seen = [json.loads(line.removeprefix("data: ")) for line in lines]
    (block,) = (event["content_block"] for event in seen if "content_block" in event)
    assert block == call


@STREAMS
async def test_a_namespace_of_the_clients_stays_if_its_function_has_the_same_name(
    *, stream: bool
) -> None:
    group = {"type": "namespace", "name": "tool_3", "tools": [FUNCTIONS[3]]}
    body = {"model": "m", "input": "hi", "tools": [*FUNCTIONS, group], "stream": stream}
    call = function_call("tool_3", "c", namespace="tool_3")
    with raw_provider() as provider:
        async with client_of(provider) as client:
            seen = await ask(provider, client, body, response(call, stream=stream))

    assert [(each["name"], each.get("namespace")) for each in seen] == [("tool_3", "tool_3")]


@STREAMS
async def test_a_call_of_a_loaded_function_is_the_clients_if_its_search_is_lost(
    *, stream: bool
) -> None:
    body = {"model": "m", "input": "hi", "tools": FUNCTIONS, "stream": stream}
    body["previous_response_id"] = "of_a_proxy_that_is_gone"
    call = function_call("tool_3", "c", namespace="tool_3")
    with raw_provider() as provider:
        async with client_of(provider) as client:
            seen = await ask(provider, client, body, response(call, stream=stream))

    assert [(each["name"], each.get("namespace")) for each in seen] == [("tool_3", None)]


@pytest.mark.parametrize("with_call", [True, False])
async def test_a_client_that_joins_the_messages_of_a_reply_keeps_its_search(
    *, with_call: bool
) -> None:
    body = {"model": "m", "tools": FUNCTIONS, "input": [{"role": "user", "content": "hi"}]}
    calls = [function_call("tool_3", "c")] if with_call else []
    with raw_provider() as provider:
        async with client_of(provider) as client:
            steps = (
                response(said("Look. "), SEARCH, stream=False),
                response({"type": "reasoning", "id": "rs"}, said("Now."), *calls, stream=False),
            )
            await ask(provider, client, body, *steps)
            joined = {"role": "assistant", "content": "Look.\nNow."}
            results = [{**call, "type": "function_call_output", "output": "x"} for call in calls]
            history = [
                *body["input"],
                joined,
                *calls,
                *results,
                {"role": "user", "content": "more"},
            ]
            await ask(
                provider, client, {**body, "input": history}, response(said("ok"), stream=False)
            )

    before, after = (json.loads(each.body) for each in provider.requests[1:])
    assert after["input"][: len(before["input"])] == before["input"]
    assert after["tools"] == before["tools"]
