"""Resources at a gateway, and what servers ask of its clients, with servers of both eras."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, types
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from tests.mcp.gateways import Heard, serving, text_of
from tests.mcp.helpers import SERVERS, free_port, listening, until
from tool_search.adapters.mcp import MCPSource
from tool_search.adapters.mcp.protocol import HEADER_MISMATCH, RefusedError, Session
from tool_search.errors import SourceError
from tool_search.serving.gateway import Gateway

# Subscriptions of the handshake versions are deprecated, and what many clients have.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

NODE_BIN = os.environ.get("MCP_NODE_BIN", "")
UPDATED = "notifications/resources/updated"
MODERN = str(SERVERS / "modern.py")


@asynccontextmanager
async def modern_over_http() -> AsyncGenerator[dict[str, Any]]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, MODERN, "http", str(port))
    try:
        await listening(port)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def modern_over_stdio() -> AsyncGenerator[dict[str, Any]]:
    yield {"command": sys.executable, "args": [MODERN, "stdio"]}


WAYS = {"stdio": modern_over_stdio, "http": modern_over_http}


@asynccontextmanager
async def gateway_before(entry: dict[str, Any]) -> AsyncGenerator[str]:
    config = {"mcpServers": {"notes": entry}, "tool_search": {"enabled": False}}
    gateway = Gateway(config)
    async with serving(gateway) as address:
        await until(lambda: gateway.health()["tools"] > 0)
        yield address


class Updates(Heard):
    """The addresses of the resources that a client has heard of."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    async def __call__(self, message: Any) -> None:
        await super().__call__(message)
        if getattr(message, "method", "") == UPDATED:
            self.addresses.append(message.params.uri)


@asynccontextmanager
async def listening_to(client: Client, *addresses: str) -> AsyncGenerator[list[str]]:
    heard, ready = list[str](), asyncio.Event()

    async def listen() -> None:
        async with client.listen(resource_subscriptions=addresses) as events:
            heard.append(",".join(events.honored.resource_subscriptions or ()))
            ready.set()
            async for event in events:
                assert isinstance(event, ResourceUpdated)
                heard.append(event.uri)

    task = asyncio.create_task(listen())
    await ready.wait()
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("way", WAYS)
async def test_a_change_of_a_resource_reaches_those_who_subscribed(way: str) -> None:
    ears = Updates(), Updates()
    async with (
        WAYS[way]() as entry,
        gateway_before(entry) as address,
        Client(address, mode="legacy", message_handler=ears[0]) as one,
        Client(address, mode="legacy", message_handler=ears[1]) as other,
        Client(address, mode="auto") as modern,
        listening_to(modern, "note://two", "note://nobody") as heard,
    ):
        assert one.server_capabilities.resources.subscribe
        assert heard == ["note://two"]
        await one.subscribe_resource("note://one")
        await other.subscribe_resource("note://two")
        await text_of(one, "notes___touch", uri="note://one")
        await until(lambda: ears[0].addresses == ["note://one"])
        await text_of(one, "notes___touch", uri="note://two")
        await until(lambda: ears[1].addresses == ["note://two"])
        await until(lambda: heard == ["note://two", "note://two"])
        await other.unsubscribe_resource("note://two")
        await text_of(one, "notes___touch", uri="note://two")
        await until(lambda: heard == ["note://two"] * 3)
        assert [each.addresses for each in ears] == [["note://one"], ["note://two"]]
        with pytest.raises(MCPError, match="note://nobody"):
            await one.subscribe_resource("note://nobody")


async def test_a_flood_of_changes_of_a_resource_is_reported_a_few_times() -> None:
    heard: list[str] = []
    async with (
        modern_over_stdio() as entry,
        MCPSource({"notes": entry}, start_s=60) as source,
    ):
        await source.watch("notes", "note://one", heard.append)
        params = {"name": "touch", "arguments": {"uri": "note://one", "times": 500}}
        await source.request("notes", "tools/call", params)
        await until(lambda: len(heard) >= 2)
        assert len(heard) < 20


async def test_a_resource_is_watched_over_a_lost_connection(tmp_path: Path) -> None:
    heard: list[str] = []
    async with (
        modern_over_stdio() as entry,
        MCPSource({"notes": entry}, start_s=60) as source,
    ):
        end = await source.watch("notes", "note://one", heard.append)
        source._connections["notes"]._process._process.kill()  # type: ignore[union-attr]
        await until(lambda: heard == ["note://one"])  # it may have changed meanwhile
        touch = {"name": "touch", "arguments": {"uri": "note://one"}}
        await source.request("notes", "tools/call", touch)
        await until(lambda: heard == ["note://one"] * 2)
        end()
        end()
        await source.request("notes", "tools/call", touch)
        await asyncio.sleep(0.4)
        assert heard == ["note://one"] * 2


@pytest.mark.skipif(not NODE_BIN, reason="make test-mcp names the Node servers")
async def test_the_reference_server_reports_to_the_session_that_subscribed() -> None:
    entry = {"command": f"{NODE_BIN}/mcp-server-everything", "args": ["stdio"]}
    ears = Updates(), Updates()
    async with (
        gateway_before(entry) as address,
        Client(address, mode="legacy", message_handler=ears[0]) as one,
        Client(address, mode="legacy", message_handler=ears[1]) as other,
        Client(address, mode="auto") as modern,
    ):
        first, second = [item.uri for item in (await one.list_resources()).resources][:2]
        await one.subscribe_resource(first)
        async with listening_to(modern, second) as heard:
            await text_of(other, "notes___toggle-subscriber-updates")
            await until(lambda: ears[0].addresses == [first])
            await until(lambda: heard == [second, second])
            assert ears[1].addresses == []


async def elicit(_: Any, params: Any) -> types.ElicitResult:
    assert params.message == "Your name?"
    return types.ElicitResult(action="accept", content={"name": "Ann"})


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_asks_those_clients_that_can_answer(way: str) -> None:
    async with WAYS[way]() as entry, gateway_before(entry) as address:
        async with Client(address, mode="auto", elicitation_callback=elicit) as client:
            assert await text_of(client, "notes___greet") == "Hello, Ann"
        for more in ({"mode": "auto"}, {"mode": "legacy", "elicitation_callback": elicit}):
            async with Client(address, **more) as client:
                answer = await client.call_tool("notes___greet", {})
                assert answer.is_error
                assert answer.content[0].text.startswith("notes___greet asks for more input")


async def test_a_schema_that_changed_is_read_before_its_tool_is_called_again() -> None:
    async with modern_over_http() as entry, MCPSource({"notes": entry}, start_s=60) as source:
        call = {"name": "weather", "arguments": {"region": "Paris"}}
        before = await source.request("notes", "tools/call", call)
        assert before["content"][0]["text"] == "sunny in Paris"
        await source.request("notes", "tools/call", {"name": "rewrite", "arguments": {}})
        after = await source.request("notes", "tools/call", call)
        assert after["content"][0]["text"] == "sunny in Paris, by its header"
        await until(lambda: "x-mcp-header" in source.find("weather").parameters_json)  # type: ignore[union-attr]


async def test_a_list_that_cannot_be_read_again_leaves_the_refusal_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(_: Session, **__: object) -> None:
        raise RefusedError("not now", code=-32_603, data=None)

    async with modern_over_http() as entry, MCPSource({"notes": entry}, start_s=60) as source:
        await source.request("notes", "tools/call", {"name": "rewrite", "arguments": {}})
        monkeypatch.setattr(Session, "list_tools", refuse)
        call = {"name": "weather", "arguments": {"region": "Paris"}}
        with pytest.raises(SourceError) as refused:
            await source.request("notes", "tools/call", call)

    assert refused.value.code == HEADER_MISMATCH
