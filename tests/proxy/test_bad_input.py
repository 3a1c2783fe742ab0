"""Requests that a proxy meets seldom: many tools, lists that change, the same twice at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import CHAT, REPLY, TOOLS, client_of
from tool_search.proxy.app import ToolSearchProxy
from tool_search.proxy.settings import proxy_config

PATH = "/v1/chat/completions"


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    """A raw provider."""
    with raw_provider() as running:
        running.body = json.dumps(REPLY).encode()
        yield running


def names(provider: RawProvider, number: int = -1) -> list[str]:
    """Return the tools that a request declared."""
    sent = json.loads(provider.requests[number].body)
    return [tool["function"]["name"] for tool in sent["tools"]]


def with_call(name: str) -> list[dict[str, Any]]:
    """Return a history in which a tool was called and has answered."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]


async def test_ten_thousand_tools_are_searched_like_forty(provider: RawProvider) -> None:
    function = TOOLS[0]["function"]
    tools = [
        {"type": "function", "function": {**function, "name": f"many_{n}"}}  # type: ignore[dict-item]
        for n in range(10_000)
    ]
    async with client_of(provider) as client:
        reply = await client.post(PATH, json={**CHAT, "tools": tools})

    assert reply.json() == REPLY
    assert names(provider) == ["tool_search"]


async def test_the_same_request_twice_at_once_is_answered_twice(provider: RawProvider) -> None:
    async with client_of(provider) as client:
        body = {**CHAT, "tools": TOOLS}
        replies = await asyncio.gather(*(client.post(PATH, json=body) for _ in range(2)))

    assert [reply.json() for reply in replies] == [REPLY, REPLY]
    assert provider.requests[0].body == provider.requests[1].body


async def test_a_list_that_changes_in_a_turn_keeps_what_is_there(provider: RawProvider) -> None:
    async with client_of(provider) as client:
        for tools in (TOOLS, TOOLS[5:]):
            history = with_call("tool_3") + with_call("tool_7")[1:]
            await client.post(PATH, json={**CHAT, "messages": history, "tools": tools})

    assert names(provider, 0) == ["tool_search", "tool_3", "tool_7"]
    assert names(provider, 1) == ["tool_search", "tool_7"]


async def test_content_of_an_unknown_kind_goes_on_as_it_came(provider: RawProvider) -> None:
    odd = {"role": "user", "content": [{"type": "hologram", "data": [1, {"a": None}]}]}
    async with client_of(provider) as client:
        await client.post(PATH, json={**CHAT, "messages": [odd], "tools": TOOLS})

    assert json.loads(provider.requests[0].body)["messages"][1] == odd


async def test_tokens_are_counted_of_what_will_be_sent(provider: RawProvider) -> None:
    tools = [
        {"name": t["function"]["name"], "input_schema": {"type": "object"}}  # type: ignore[index]
        for t in TOOLS
    ]
    async with client_of(provider) as client:
        await client.post("/v1/messages/count_tokens", json={**CHAT, "tools": tools})

    (asked,) = provider.requests
    sent = json.loads(asked.body)
    assert asked.path == "/v1/messages/count_tokens"
    assert [tool["name"] for tool in sent["tools"]] == ["tool_search"]


def test_a_websocket_is_refused_by_name() -> None:
    app = ToolSearchProxy(proxy_config("https://api.openai.com/v1")).asgi()
    with (
        TestClient(app) as client,
        client.websocket_connect("/v1/responses") as socket,
        pytest.raises(WebSocketDisconnect) as caught,
    ):
        socket.receive_text()
    assert caught.value.reason == "WebSocket is not supported; use HTTP"
