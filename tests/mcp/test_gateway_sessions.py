"""Clients of a gateway in every version of the protocol: whose list it is, and who hears what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.gateway.helpers import SERVERS, FakeSource, tools_of
from tests.mcp.gateways import (
    SEARCH,
    TWO_TOKENS,
    Heard,
    call,
    gateway_over,
    names,
    over_stdio,
    post,
    serving,
    text_of,
)
from tests.mcp.helpers import plain, until
from tool_search.serving.gateway.http import app

FIRST = ["github___create_issue", "github___list_commits", "github___merge_pull_request"]
CHANGED = "notifications/tools/list_changed"


async def test_a_session_searches_and_its_list_changes() -> None:
    heard = Heard()
    async with (
        serving(gateway_over()) as address,
        Client(address, mode="legacy", message_handler=heard) as client,
    ):
        assert client.server_capabilities.tools.list_changed
        assert await names(client) == [*FIRST, SEARCH]
        assert await text_of(client, SEARCH, query="read the inbox") == (
            "Found 1 matching tools:\n1. mail___read_inbox - Read inbox at mail."
        )
        assert heard.methods == [CHANGED]
        assert await names(client) == ["mail___read_inbox", SEARCH]
        assert (
            await text_of(client, "mail___read_inbox", text="x") == "mail read_inbox {'text': 'x'}"
        )
        assert "send_message" in await text_of(client, "chat___send_message")  # hidden
        await text_of(client, SEARCH, query="read the inbox")
        await text_of(client, SEARCH, query="qqqzzz")
        assert heard.methods == [CHANGED]


async def test_two_sessions_never_see_each_other() -> None:
    ears = Heard(), Heard()
    async with (
        serving(gateway_over()) as address,
        Client(address, mode="legacy", message_handler=ears[0]) as one,
        Client(address, mode="legacy", message_handler=ears[1]) as other,
    ):
        await names(other)
        await text_of(one, SEARCH, query="inbox")
        assert await names(other) == [*FIRST, SEARCH]
        await text_of(other, SEARCH, query="channels")
        assert await names(one) == ["mail___read_inbox", SEARCH]
        assert await names(other) == ["chat___list_channels", SEARCH]
        assert [each.methods for each in ears] == [[CHANGED], [CHANGED]]


async def test_without_sessions_the_list_is_fixed_and_answers_carry_schemas() -> None:
    async with (
        serving(gateway_over()) as address,
        Client(address, mode="auto") as one,
        Client(address, mode="auto") as other,
        listening_to(other) as events,
    ):
        assert one.protocol_version == "2026-07-28"
        fixed = [*FIRST, SEARCH, "call_tool"]
        assert await names(one) == fixed
        answer = await text_of(one, SEARCH, query="inbox")
        assert '"properties":{"text":{"type":"string"}}' in answer
        assert await names(one) == await names(other) == fixed
        called = await text_of(one, "call_tool", name="mail___read_inbox", arguments={"text": "a"})
        assert called == "mail read_inbox {'text': 'a'}"
        assert events == []


@asynccontextmanager
async def listening_to(client: Client) -> AsyncGenerator[list[str]]:
    """What a client hears on a version without sessions."""
    events, ready = list[str](), asyncio.Event()

    async def listen() -> None:
        async with client.listen(tools_list_changed=True) as stream:
            ready.set()
            async for event in stream:
                events.append(type(event).__name__)

    task = asyncio.create_task(listen())
    await ready.wait()
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def with_token(address: str, token: str, mode: str) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def test_an_authenticated_client_has_a_list_of_its_own_without_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", "first-token, second-token")
    async with (
        serving(gateway_over(transport=TWO_TOKENS)) as address,
        with_token(address, "first-token", "auto") as one,
        with_token(address, "second-token", "auto") as other,
        listening_to(one) as own,
        listening_to(other) as others,
    ):
        assert await names(one) == [*FIRST, SEARCH]
        await text_of(one, SEARCH, query="inbox")
        assert await names(one) == ["mail___read_inbox", SEARCH]
        assert await names(other) == [*FIRST, SEARCH]
        await until(lambda: own == ["ToolsListChanged"])
        assert others == []


async def test_tokens_are_asked_for_and_a_session_belongs_to_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", "first-token,second-token")
    async with serving(gateway_over(transport=TWO_TOKENS)) as address:
        for headers in ({}, {"Authorization": "Bearer nope"}, {"Authorization": "first-token"}):
            refused = await post(address, call(SEARCH, {"query": "x"}), **headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        own = {"Authorization": "Bearer first-token"}
        assert (await post(address, call(SEARCH, {"query": "x"}), **own)).status_code == 200
        begun = await post(address, INITIALIZE, **own, **BOTH)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], **BOTH}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await post(address, ping, **own, **session)).status_code == 200
        other = {"Authorization": "Bearer second-token"}
        assert (await post(address, ping, **other, **session)).status_code == 404
        assert (
            await post(address, ping, **own, **BOTH, **{"Mcp-Session-Id": "x"})
        ).status_code == 404


BOTH = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}  # fmt: skip


async def test_2000_sessions_are_opened_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = gateway_over()
    async with (
        serving(gateway) as address,
        Client(address, mode="legacy") as client,
        httpx2.AsyncClient(headers=BOTH) as http,
    ):
        await text_of(client, SEARCH, query="inbox")
        opened = [await http.post(address, json=INITIALIZE) for _ in range(2_000)]
        assert {each.status_code for each in opened} == {200}
        assert gateway.health()["sessions"] <= 1_000
        assert await names(client) == ["mail___read_inbox", SEARCH]
        async with Client(address, mode="legacy") as late:
            assert await names(late) == [*FIRST, SEARCH]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        first, last = (
            {"Mcp-Session-Id": opened[place].headers["mcp-session-id"]} for place in (0, -1)
        )
        assert (await http.post(address, json=ping, headers=first)).status_code == 404
        assert (await http.post(address, json=ping, headers=last)).status_code == 200
    told = [record.message for record in caplog.records if "gateway_sessions" in record.message]
    assert len(told) == 1
    assert "1000 sessions are open" in told[0]


async def test_sessions_in_use_are_not_ended_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_MAX_SESSIONS", 2)
    async with (
        serving(gateway_over()) as address,
        Client(address, mode="legacy") as one,
        Client(address, mode="legacy") as other,
    ):
        await names(one)
        await names(other)
        assert (await post(address, INITIALIZE, **BOTH)).status_code == 503
        assert await names(one) == await names(other) == [*FIRST, SEARCH]


async def test_the_sessions_of_the_client_with_the_most_are_ended_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", "first-token,second-token")
    monkeypatch.setattr(app, "_MAX_SESSIONS", 4)
    few, many = ({"Authorization": f"Bearer {name}-token"} for name in ("first", "second"))
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with serving(gateway_over(transport=TWO_TOKENS)) as address:
        begun = await post(address, INITIALIZE, **BOTH, **few)
        for _ in range(10):
            assert (await post(address, INITIALIZE, **BOTH, **many)).status_code == 200
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        assert (await post(address, ping, **BOTH, **few, **session)).status_code == 200


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_servers_that_come_are_told_to_every_client(mode: str) -> None:
    source, heard = FakeSource(tools_of(SERVERS)), Heard()
    async with (
        serving(gateway_over(source)) as address,
        Client(address, mode=mode, message_handler=heard) as client,
    ):
        await names(client)
        if mode == "legacy":
            await text_of(client, "mail___read_inbox")
            source.replace([*source.tools, *tools_of({"news": ["read_news"]})])
            await until(lambda: heard.methods == [CHANGED])
        else:
            async with listening_to(client) as events:
                source.replace([*source.tools, *tools_of({"news": ["read_news"]})])
                await until(lambda: events == ["ToolsListChanged"])
        assert "news___read_news" in await text_of(client, SEARCH, query="news")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_stdio_the_process_is_the_client(mode: str, tmp_path: Path) -> None:
    config = {
        "mcpServers": {"one": plain("get_weather", "send_mail"), "two": plain("play_music")},
        "tool_search": {"maxToolsLimit": 1},
    }
    heard = Heard()
    target = over_stdio(tmp_path, config)
    async with Client(target, mode=mode, message_handler=heard) as client:
        assert await names(client) == ["one___get_weather", SEARCH]
        await text_of(client, SEARCH, query="play music")
        assert await names(client) == ["two___play_music", SEARCH]
        assert heard.methods == ([CHANGED] if mode == "legacy" else [])
        with pytest.raises(MCPError, match="no tool 'one___nope' at server 'one'"):
            await client.call_tool("one___nope", {})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_progress_and_input_pass_where_the_protocol_has_them(mode: str) -> None:
    asked = {
        "inputRequests": {
            "name": {
                "method": "elicitation/create",
                "params": {
                    "message": "Your name?",
                    "requestedSchema": {
                        "type": "object", "properties": {"name": {"type": "string"}},
                    },
                },
            }
        },
        "requestState": "state",
        "resultType": "input_required",
    }  # fmt: skip
    source, seen = FakeSource(tools_of(SERVERS), {"send_mail": asked}), list[Any]()

    async def elicit(_: Any, params: Any) -> Any:
        from mcp import types  # noqa: PLC0415

        source.answers["send_mail"] = {"content": [{"type": "text", "text": params.message}]}
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async def progress(*facts: Any) -> None:
        seen.append(facts)

    async with (
        serving(gateway_over(source)) as address,
        Client(address, mode=mode, elicitation_callback=elicit) as client,
    ):
        await client.call_tool("mail___read_inbox", {}, progress_callback=progress)
        assert seen == [(1.0, 2.0, "half")]
        answer = await client.call_tool("mail___send_mail", {})
        if mode == "legacy":
            assert answer.is_error
            assert answer.content[0].text.startswith("mail___send_mail asks for more input")
        else:
            assert answer.content[0].text == "Your name?"
            given = source.requests[-1][2]
            assert given["requestState"] == "state"
            assert given["inputResponses"]["name"]["content"] == {"name": "Ann"}


async def test_a_client_that_goes_away_cancels_its_call_and_no_other() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    class Slow(FakeSource):
        async def request(self, server: str, method: str, params: Any = None, **more: Any) -> Any:
            if (params or {}).get("name") != "send_mail":
                return await super().request(server, method, params, **more)
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

    async with serving(gateway_over(Slow(tools_of(SERVERS)))) as address:
        task = asyncio.create_task(post(address, call("mail___send_mail", {})))
        await begun.wait()
        other = await post(address, call("chat___list_channels", {}))
        assert "list_channels" in other.text
        task.cancel()
        await cancelled.wait()
        for mode in ("legacy", "auto"):
            begun.clear()
            cancelled.clear()
            async with Client(address, mode=mode) as client:
                task = asyncio.create_task(client.call_tool("mail___send_mail", {}))
                await begun.wait()
                assert "list_channels" in await text_of(client, "chat___list_channels")
                task.cancel()
                await cancelled.wait()


async def test_a_session_goes_on_after_a_connection_that_broke_in_a_call() -> None:
    begun = asyncio.Event()

    class Slow(FakeSource):
        async def request(self, server: str, method: str, params: Any = None, **more: Any) -> Any:
            if (params or {}).get("name") == "send_mail":
                begun.set()
                await asyncio.Event().wait()
            return await super().request(server, method, params, **more)

    async with (
        serving(gateway_over(Slow(tools_of(SERVERS)))) as address,
        Client(address, mode="legacy") as other,
        httpx2.AsyncClient(headers=BOTH) as again,
    ):
        async with httpx2.AsyncClient(headers=BOTH) as broken:
            opened = await broken.post(address, json=INITIALIZE)
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await broken.post(address, json=told, headers=session)
            slow = broken.post(address, json=call("mail___send_mail", {}), headers=session)
            task = asyncio.create_task(slow)
            await begun.wait()
            task.cancel()
        assert "list_channels" in await text_of(other, "chat___list_channels")
        quick = call("chat___list_channels", {}, number=2)
        answer = await again.post(address, json=quick, headers=session)
        assert "list_channels" in answer.text
