"""Servers that misbehave before a gateway: the others go on, and the operator sees why."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from typer.testing import CliRunner

from tests.mcp.gateways import (
    ROOT,
    TWO_TOKENS,
    call,
    command,
    names,
    over_stdio,
    post,
    serving,
    text_of,
    written,
)
from tests.mcp.helpers import free_port, listening, plain, until
from tool_search.cli.application import app
from tool_search.serving.gateway import Gateway


async def test_one_server_fails_alone_and_health_says_why(caplog: pytest.LogCaptureFixture) -> None:
    gateway = Gateway({
        "mcpServers": {
            "good": plain("get_weather"),
            "bad": {"command": "no-such-program-anywhere"},
            "off": {**plain("x"), "disabled": True},
        }
    })  # fmt: skip
    async with serving(gateway) as address, Client(address, mode="legacy") as client:
        assert await names(client) == ["good___get_weather"]
        answer = await client.call_tool("bad___anything", {})
        assert answer.is_error
        assert "no-such-program-anywhere" in answer.content[0].text
        async with httpx2.AsyncClient() as http:
            health = (await http.get(address.replace("/mcp", "/health"))).json()
        assert health["servers"]["bad"]["state"] == "failed"
        assert "no-such-program-anywhere" in health["servers"]["bad"]["error"]
        assert health["servers"]["off"]["state"] == "disabled"
        with caplog.at_level("WARNING"):
            assert (await client.list_prompts()).prompts == []
        assert "prompts/list of server 'bad'" not in caplog.text  # it is not asked, nor waited for


async def test_a_server_that_dies_in_a_call_is_an_error_and_comes_back(tmp_path: Path) -> None:
    config = {"mcpServers": {"one": plain("die", "pid"), "two": plain("get_weather")}}
    async with Client(over_stdio(tmp_path, config), mode="legacy") as client:
        first = await text_of(client, "one___pid")
        died = await client.call_tool("one___die", {})
        assert died.is_error
        assert "server 'one'" in died.content[0].text
        assert not (await client.call_tool("two___get_weather", {})).is_error
        again = await client.call_tool("one___pid", {})
        assert not again.is_error
        assert again.content[0].text != first


@pytest.mark.parametrize("tokens", ["alices", "alices,bobs"])
async def test_what_a_server_wrote_of_one_client_reaches_no_other(
    tokens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in a call nor in `/health`; who has the only token is the operator."""
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", tokens)
    gateway = Gateway({"mcpServers": {"one": plain("die", "pid")}, "transport": TWO_TOKENS})
    async with serving(gateway) as address, httpx2.AsyncClient() as http:
        *_, last = [{"Authorization": f"Bearer {token}"} for token in tokens.split(",")]
        alice = {"Authorization": "Bearer alices"}
        died = await post(address, call("one___die", {"value": "alice-card-5"}), **alice)
        assert "server 'one'" in died.text
        assert "alice-card-5" not in died.text
        health = address.replace("/mcp", "/health")
        await until(lambda: gateway.health(last_lines=True)["servers"]["one"].get("last_lines"))
        assert "alice-card-5" not in (await post(address, call("one___pid"), **last)).text
        assert "alice-card-5" not in (await http.get(health)).text
        is_alone = "," not in tokens
        assert ("alice-card-5" in (await http.get(health, headers=last)).text) is is_alone
        foreign = await http.get(health, headers={**last, "Host": "evil.example"})
        assert (foreign.status_code, "card" in foreign.text) == (421, False)


async def test_a_signal_ends_the_gateway_and_its_servers(tmp_path: Path) -> None:
    config = {"mcpServers": {"one": plain("pid")}, "transport": {"type": "http"}}
    port = free_port()
    async with command(tmp_path, config, "--http", str(port)) as process:
        await listening(port)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one___pid"}}
        async with httpx2.AsyncClient() as http:
            answer = (await http.post(f"http://127.0.0.1:{port}/mcp", json=body)).json()
        child = int(answer["result"]["content"][0]["text"])
        process.terminate()
        await asyncio.wait_for(process.wait(), 30)
        await until(lambda: not Path(f"/proc/{child}").exists())


async def test_a_server_that_does_not_answer_is_named_to_the_client_and_the_operator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = Gateway({"mcpServers": {"quiet": plain("silent", timeout=0.5)}})
    async with serving(gateway) as address, Client(address, mode="legacy") as client:
        answer = await client.call_tool("quiet___silent", {})
        assert answer.is_error
        assert answer.content[0].text == "server 'quiet' did not answer the call in time"
    assert "mcp_call_failed: tool 'silent': server 'quiet' did not answer" in caplog.text


async def test_a_server_without_templates_is_not_complained_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = plain("x", resources=["note://one"], no_templates=True)
    async with (
        serving(Gateway({"mcpServers": {"a": entry}})) as address,
        Client(address, mode="legacy") as client,
    ):
        assert (await client.list_resource_templates()).resource_templates == []
        assert len((await client.list_resources()).resources) == 1
    assert "mcp_list" not in caplog.text


def test_settings_about_servers_that_are_not_there_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lists = {"client": {"servers": {"gihub": [{"type": "logging"}]}}}
    Gateway({"mcpServers": {"github": {"command": "never"}}, "middleware": lists})
    assert "a list for 'gihub', which is not a server of mcpServers; there are: 'github'" in (
        caplog.text
    )
    assert "gateway_servers" not in caplog.text
    Gateway({"registry": True})
    assert "mcpServers is empty" in caplog.text


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_command_reads_the_catalog_of_a_gateway_with_what_it_hides(
    tmp_path: Path, way: str
) -> None:
    ten = plain(many=1_000)
    config = {
        "mcpServers": {"ten": ten, "b": plain("secret", "open")},
        "tool_search": {"fill": False},
        "permissions": {"deny": ["mcp__b__secret"]},
    }
    async with AsyncExitStack() as stack:
        if way == "http":
            place = await stack.enter_async_context(serving(Gateway(config)))
        else:
            started = over_stdio(tmp_path, config)
            entry = {
                "command": started.command,
                "args": started.args,
                "env": {"PYTHONPATH": str(ROOT)},
            }
            (tmp_path / "servers").mkdir()
            place = written(tmp_path / "servers", {"mcpServers": {"gateway": entry}})
        words = ["search", "--mcp", place, "--query", "tool 777", "--json"]
        found = await asyncio.to_thread(CliRunner().invoke, app, words)
        assert json.loads(found.stdout)["matches"][0]["name"] == "ten___tool_777", found.stderr
        words = ["inspect", "--mcp", place]
        listed = json.loads((await asyncio.to_thread(CliRunner().invoke, app, words)).stdout)
        names_found = {tool["name"] for tool in listed["tools"]}
        assert len(names_found) == 1_001
        assert "b___open" in names_found
        assert not names_found & {"b___secret", "search_available_tools", "call_tool"}
