"""Changes of the prompts and resources of servers, as the clients of a gateway hear of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from tests.mcp.gateways import Heard, serving, text_of
from tests.mcp.helpers import SERVERS, plain, until, with_sdk
from tool_search.serving.gateway import Gateway

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

OLD_PYTHON = os.environ.get("MCP_OLD_PYTHON", "")
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
LISTENER = str(SERVERS / "listener.py")
PYTHONS = [
    sys.executable,
    pytest.param(
        OLD_PYTHON,
        marks=pytest.mark.skipif(not OLD_PYTHON, reason="make test-mcp names SDK 1.26"),
    ),
]


@asynccontextmanager
async def gateway_before(**entries: dict[str, Any]) -> AsyncGenerator[tuple[str, Gateway]]:
    gateway = Gateway({"mcpServers": entries, "tool_search": {"enabled": False}})
    async with serving(gateway) as address:
        await until(lambda: gateway.health()["tools"] > 0)
        yield address, gateway


@asynccontextmanager
async def listening(client: Client) -> AsyncGenerator[list[object]]:
    heard, ready = list[object](), asyncio.Event()

    async def listen() -> None:
        async with client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as events:
            ready.set()
            async for event in events:
                heard.append(event)

    task = asyncio.create_task(listen())
    await ready.wait()
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.wait([task])


def heard_both(ear: Heard) -> bool:
    return {PROMPTS, RESOURCES} <= {*ear.methods}


@pytest.mark.parametrize("python", PYTHONS, ids=["this SDK", "SDK 1.26"])
async def test_each_client_hears_that_prompts_and_resources_changed(python: str) -> None:
    ears = Heard(), Heard()
    async with (
        gateway_before(memos=with_sdk(python)) as (address, _),
        Client(address, mode="legacy", message_handler=ears[0]) as one,
        Client(address, mode="legacy", message_handler=ears[1]) as other,
        Client(address, mode="auto") as modern,
        listening(modern) as heard,
    ):
        assert one.server_capabilities.prompts.list_changed
        assert one.server_capabilities.resources.list_changed
        for client in (one, other):
            assert (await client.list_prompts()).prompts == []
        await text_of(one, "memos___write_memo", name="first")
        await until(lambda: {PromptsListChanged(), ResourcesListChanged()} <= {*heard})
        for ear in ears:
            await until(partial(heard_both, ear))
            assert not any("tools" in method for method in ear.methods)
        assert ToolsListChanged() not in heard
        for client in (one, modern):
            found = await client.list_prompts(cache_mode="refresh")
            assert [each.name for each in found.prompts] == ["memos___first"]


@pytest.mark.skipif(not OLD_PYTHON, reason="make test-mcp names SDK 1.26")
async def test_a_client_of_the_first_sdk_hears_it() -> None:
    async with gateway_before(memos=with_sdk()) as (address, _):
        client = await asyncio.create_subprocess_exec(
            OLD_PYTHON, LISTENER, address, stdout=asyncio.subprocess.PIPE
        )
        written, _ = await client.communicate()
    assert {PROMPTS, RESOURCES} <= set(written.decode().split())


async def test_a_flood_of_changes_reaches_a_client_once_in_two_seconds() -> None:
    ear = Heard()
    async with (
        gateway_before(memos=with_sdk()) as (address, _),
        Client(address, mode="legacy", message_handler=ear) as client,
    ):
        await client.list_prompts()
        began = asyncio.get_running_loop().time()
        await text_of(client, "memos___write_memo", name="first", times=400)
        await until(partial(heard_both, ear))
        await asyncio.sleep(0.5)
        most = 1 + (asyncio.get_running_loop().time() - began) / 2
        assert ear.methods.count(PROMPTS) <= most
        assert ear.methods.count(RESOURCES) <= most


async def test_a_server_that_went_takes_its_prompts_and_resources_along() -> None:
    ear = Heard()
    async with (
        gateway_before(memos=with_sdk(), other=plain("x")) as (address, gateway),
        Client(address, mode="legacy", message_handler=ear) as client,
    ):
        await text_of(client, "memos___write_memo", name="first")
        assert len((await client.list_resources()).resources) == 1
        await until(lambda: RESOURCES in ear.methods)
        ear.methods.clear()
        gateway._source._connections["memos"]._process._process.kill()
        await until(partial(heard_both, ear))
        await until(lambda: gateway.health()["servers"]["memos"]["state"] == "connected")
        assert (await client.list_resources(cache_mode="refresh")).resources == []


async def test_a_prompt_of_a_server_whose_name_has_the_joint_is_found() -> None:
    name = "my___memos"
    async with (
        gateway_before(**{name: with_sdk()}) as (address, _),
        Client(address, mode="legacy") as client,
    ):
        await text_of(client, f"{name}___write_memo", name="first")
        (prompt,) = (await client.list_prompts()).prompts
        found = await client.get_prompt(prompt.name)
        assert (prompt.name, found.messages[0].content.text) == ("my___memos___first", "first")
        for unknown in ("my___memos___", "my___other", "my", ""):
            with pytest.raises(MCPError, match="there is no prompt"):
                await client.get_prompt(unknown)


async def _lists(client: Client) -> int:
    return int(await text_of(client, "counted___resource_lists"))


async def test_many_unknown_addresses_make_a_server_that_reports_list_no_more() -> None:
    entry = plain("resource_lists", "add_resource", resources=["note://one"], reports=True)
    async with (
        gateway_before(counted=entry) as (address, _),
        Client(address, mode="legacy") as client,
        Client(address, mode="auto") as modern,
    ):
        with pytest.raises(MCPError, match="note://nobody"):
            await client.subscribe_resource("note://nobody")
        before = await _lists(client)
        for number in range(100):
            with pytest.raises(MCPError, match=f"note://nobody/{number}"):
                await client.subscribe_resource(f"note://nobody/{number}")
        many = [f"note://nothing/{number}" for number in range(900)]
        async with modern.listen(resource_subscriptions=[*many, "note://one"]) as events:
            assert events.honored.resource_subscriptions == ["note://one"]
        assert await _lists(client) == before

        await text_of(client, "counted___add_resource", uri="note://nobody")
        await client.subscribe_resource("note://nobody")


async def test_a_server_that_reports_nothing_lists_once_a_second_for_unknown_addresses() -> None:
    entry = plain("resource_lists", "add_resource", resources=["note://one"])
    async with (
        gateway_before(counted=entry) as (address, _),
        Client(address, mode="legacy") as client,
    ):
        before = await _lists(client)
        refusals = await asyncio.gather(
            *(client.read_resource(f"note://nobody/{number}") for number in range(50)),
            return_exceptions=True,
        )
        assert all(isinstance(each, MCPError) for each in refusals)
        assert await _lists(client) - before <= 3
        await text_of(client, "counted___add_resource", uri="note://new")
        assert (await client.read_resource("note://new")).contents[0].text == "note://new"
