"""Requests that a proxy meets seldom: many tools, lists that change, the same twice at once."""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import CHAT, KEY, REPLY, TOOLS, client_of
from tool_search.serving.proxy import state
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import StateSettings, proxy_config
from tool_search.serving.proxy.state import SQLiteExchanges

PATH = "/v1/chat/completions"
SELF_SIGNED = Path(__file__).with_name("self_signed.pem")
ASKED = {**CHAT, "tools": TOOLS}
SEARCHES = {
    "id": "c0",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "s1",
                        "type": "function",
                        "function": {"name": "tool_search", "arguments": '{"query": "thing 3"}'},
                    }
                ],
            },
        }
    ],
}


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


async def test_a_hundred_megabytes_are_refused_and_the_next_request_works(
    provider: RawProvider,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    async with client_of(provider) as client:
        refused = await client.post(PATH, content=pieces())
        reply = await client.post(PATH, json=ASKED)

    assert refused.status_code == 413
    assert refused.json()["error"]["type"] == "invalid_request_error"
    assert reply.json() == REPLY
    assert len(provider.requests) == 1


async def test_a_wrong_certificate_is_an_error_and_nothing_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with raw_provider(SELF_SIGNED) as provider:
        async with client_of(provider) as client:
            for path in (PATH, "/v1/models"):
                reply = await client.post(path, json=ASKED)
                assert reply.status_code == 502
                assert "ConnectError" in reply.json()["error"]["message"]
                assert KEY not in reply.text

    assert provider.requests == []
    assert KEY not in caplog.text


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_key_does_not_follow_a_redirect(provider: RawProvider, *, stream: bool) -> None:
    with raw_provider() as elsewhere:
        provider.status, provider.body = 308, b""
        provider.headers = {"location": f"{elsewhere.address}{PATH}"}
        async with client_of(provider) as client:
            replies = [
                await client.post(PATH, json={**ASKED, "stream": stream}),
                await client.get("/v1/models"),
            ]

    assert [reply.status_code for reply in replies] == [308, 308]
    assert elsewhere.requests == []


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_page_in_the_place_of_a_reply_is_passed_on(
    provider: RawProvider, *, stream: bool
) -> None:
    provider.headers = {"content-type": "text/html"}
    provider.body = b"<html>please log in</html>"
    async with client_of(provider) as client:
        reply = await client.post(PATH, json={**ASKED, "stream": stream})

    assert (reply.status_code, reply.content) == (200, provider.body)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_costs_no_answer(
    provider: RawProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = StateSettings(path=str(tmp_path / "state.db"))
    async with client_of(provider, state=settings) as client:
        provider.bodies = [json.dumps(SEARCHES).encode()]
        with full_disk():
            full = await client.post(PATH, json=ASKED)
        provider.bodies = [json.dumps(SEARCHES).encode()]
        after = await client.post(PATH, json=ASKED)

    assert [full.json()["choices"], after.json()["choices"]] == [REPLY["choices"]] * 2
    assert caplog.text.count("state_unavailable") == 1


async def test_a_locked_file_costs_no_answer(
    provider: RawProvider,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "_PATIENCE_S", 0.01)
    path = tmp_path / "state.db"
    async with client_of(provider, state=StateSettings(path=str(path))) as client:
        provider.bodies = [json.dumps(SEARCHES).encode()]
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        locked = await client.post(PATH, json=ASKED)
        other.execute("ROLLBACK")
        other.close()
        provider.bodies = [json.dumps(SEARCHES).encode()]
        after = await client.post(PATH, json=ASKED)

    assert [locked.json()["choices"], after.json()["choices"]] == [REPLY["choices"]] * 2
    assert caplog.text.count("state_unavailable") == 1


async def test_a_locked_file_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_PATIENCE_S", 0.01)
    path = tmp_path / "state.db"
    store = SQLiteExchanges(path, max_exchanges=10, keep_s=60)
    await store.keep("before", "{}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    await store.keep("locked", "{}")
    other.execute("ROLLBACK")
    other.close()
    while_left_alone = await store.load(["before"])
    monkeypatch.setattr(state, "_PAUSE_S", 0.0)
    after = await store.load(["before", "locked"])
    store.close()

    assert (dict(while_left_alone), dict(after)) == ({}, {"before": "{}"})


def erase(folder: Path) -> None:
    """Remove all files of a folder."""
    for file in folder.iterdir():
        file.unlink()


async def test_an_erased_file_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SQLiteExchanges(path, max_exchanges=10, keep_s=60)
    await store.keep("before", "{}")
    erase(tmp_path)
    erased = await store.load(["before"])
    await store.keep("after", "{}")
    store.close()

    assert dict(erased) == {}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_websocket_is_refused_by_name() -> None:
    app = ToolSearchProxy(proxy_config("https://api.openai.com/v1")).asgi()
    with (
        TestClient(app) as client,
        client.websocket_connect("/v1/responses") as socket,
        pytest.raises(WebSocketDisconnect) as caught,
    ):
        socket.receive_text()
    assert caught.value.reason == "WebSocket is not supported; use HTTP"
