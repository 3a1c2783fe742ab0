"""A registry's front at a gateway."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
from mcp import Client

from tests.gateway.helpers import SERVERS, FakeSource, tools_of
from tests.mcp.gateways import Heard, call, gateway_over, names, post, serving, text_of
from tests.mcp.helpers import until
from tool_search import ExecutableTool, Tool
from tool_search.runner.execution import FunctionExecutor
from tool_search.sources.registry import Backend, ToolRegistry

FRONT = ["describe_tool", "list_namespaces", "list_tool_examples", "run_tool", "search_tools"]


async def test_the_front_lists_searches_describes_and_runs_the_tools_of_servers() -> None:
    source = FakeSource(tools_of(SERVERS))
    async with (
        serving(gateway_over(source, registry=True)) as address,
        Client(address, mode="legacy") as client,
    ):
        assert await names(client) == FRONT
        found = json.loads(await text_of(client, "search_tools", query="send mail", limit=1))
        assert [tool["id"] for tool in found["tools"]] == ["mail:send_mail"]
        assert "inputSchema" not in str(found)
        spaces = json.loads(await text_of(client, "list_namespaces"))
        assert spaces == {"namespaces": ["chat", "github", "mail"]}
        told = await text_of(client, "describe_tool", id="mail:send_mail", level="schema")
        assert json.loads(told)["tool"]["inputSchema"]["properties"]
        ran = await text_of(client, "run_tool", id="mail:send_mail", arguments={"text": "a"})
        assert "send_mail" in ran
        failed = await client.call_tool("run_tool", {"id": "nope"})
        assert failed.is_error


async def test_the_front_answers_single_requests_with_their_codes() -> None:
    events = {"Accept": "text/event-stream"}
    async with serving(gateway_over(registry=True)) as address, httpx2.AsyncClient() as http:
        begun = await post(address, {"jsonrpc": "2.0", "id": 1, "method": "initialize"})
        assert begun.json()["result"]["capabilities"]["tools"] == {"listChanged": True}
        listed = await post(address, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert [tool["name"] for tool in listed.json()["result"]["tools"]] == FRONT
        found = await post(address, call("search_tools", {"query": "send mail"}), **events)
        assert found.headers["content-type"].startswith("text/event-stream")
        assert "mail:send_mail" in found.text
        missing = (await post(address, call("run_tool", {"id": "nope"}))).json()
        assert missing["result"]["isError"] is True
        for body, code in (
            (b"{", -32700),
            ({"jsonrpc": "2.0", "id": 1, "method": "nope"}, -32601),
            ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, -32602),
            (call("nope", {}), -32001),
        ):
            assert (await post(address, body)).json()["error"]["code"] == code
        assert (await http.get(address)).status_code == 405


async def test_rules_and_filters_hold_behind_the_front() -> None:
    steps = [{"type": "tool_filter", "config": {"disallow": "^list_"}}]
    async with (
        serving(
            gateway_over(
                registry=True,
                permissions={"deny": ["mcp__mail__*"]},
                middleware={"client": {"default": steps}},
            )
        ) as address,
        Client(address, mode="legacy") as client,
    ):
        assert await names(client) == FRONT
        denied = await client.call_tool("run_tool", {"id": "mail:send_mail"})
        assert denied.is_error
        gone = await client.call_tool("run_tool", {"id": "chat:list_channels"})
        assert gone.is_error
        assert not (await client.call_tool("run_tool", {"id": "chat:send_message"})).is_error


async def test_changes_of_a_registry_are_told_once_in_a_while() -> None:
    registry, heard = ToolRegistry(), Heard()

    async def run() -> str:
        return "ran"

    def add(number: int) -> None:
        tool = Tool(name=f"tool_{number}", description="A tool.")
        backend = Backend.local(FunctionExecutor([ExecutableTool(tool=tool, function=run)]))
        registry.register(tool, backend)

    add(0)
    async with (
        serving(gateway_over(registry, servers=(), registry=True)) as address,
        Client(address, mode="legacy", message_handler=heard) as client,
    ):
        await names(client)
        ran: Any = await text_of(client, "run_tool", id="tool_0")
        assert ran == "ran"
        for number in range(1, 20):
            add(number)
        await until(lambda: bool(heard.methods))
        await asyncio.sleep(0.3)
        assert heard.methods == ["notifications/tools/list_changed"]
