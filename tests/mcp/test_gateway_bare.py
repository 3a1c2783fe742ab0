"""Requests to a gateway without a handshake before them, as `curl` sends them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import httpx2
import pytest

from tests.gateway.helpers import SERVERS, FakeSource, tools_of
from tests.mcp.gateways import SEARCH, call, gateway_over, post, serving
from tool_search.errors import ConfigurationError, SourceError
from tool_search.serving.gateway.passing import PassedRequests

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
EVENTS = {"Accept": "text/event-stream"}


def events(response: httpx2.Response) -> list[Any]:
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def request(method: str, params: object = None, **more: object) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, **more}
    return body if params is None else {**body, "params": params}


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_curl_gets_an_answer_with_nothing_before_it() -> None:
    import asyncio  # noqa: PLC0415

    body = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        '{"name":"search_available_tools","arguments":{"query":"github"}}}'
    )
    async with serving(gateway_over()) as address:
        done = await asyncio.to_thread(
            subprocess.run,
            ["curl", "-s", "-X", "POST", address, "-H", "Content-Type: application/json",
             "-d", body],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    answer = json.loads(done.stdout)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    lines = answer["result"]["content"][0]["text"].splitlines()
    assert lines[0] == "Found 2 matching tools:"
    assert lines[1] == "1. github___create_issue - Create issue at github."
    assert lines[2].startswith("2. github___")
    assert len(lines) == 3
    assert '"properties"' in answer["result"]["content"][1]["text"]


async def test_a_fault_of_the_gateway_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: PassedRequests) -> Any:
        raise RuntimeError("a secret")

    monkeypatch.setattr(PassedRequests, "list_prompts", fail)
    async with serving(gateway_over()) as address:
        (answer,) = events(await post(address, request("prompts/list"), **EVENTS))
    assert answer["error"] == {"code": -32603, "message": "Internal error"}


async def test_a_search_is_an_event_stream_of_the_notification_and_the_result() -> None:
    async with serving(gateway_over()) as address:
        found = events(await post(address, call(SEARCH, {"query": "inbox"}), **EVENTS))
        assert found[0] == CHANGED
        assert found[1]["result"]["content"][0]["text"].startswith("Found 1 matching tools:")
        assert len(found) == 2
        (nothing,) = events(await post(address, call(SEARCH, {"query": "qqqzzz"}), **EVENTS))
        assert nothing["result"]["content"][0]["text"] == (
            "No tools found matching 'qqqzzz'. Try a different search term."
        )
        (empty,) = events(await post(address, call(SEARCH, {"query": ""}), **EVENTS))
        assert "No tools found" in empty["result"]["content"][0]["text"]
        (error,) = events(await post(address, call(SEARCH, {}), **EVENTS))
        assert error["error"]["code"] == -32602
        assert "'query'" in error["error"]["message"]


@pytest.mark.parametrize(("body", "code", "said"), [
    (b"{", -32700, "not JSON"),
    (b"\xff\xfe", -32700, "not JSON"),
    (b"[" * 100_000, -32700, "not JSON"),
    ([], -32600, "one JSON object"),
    ({"id": 1, "method": "ping"}, -32600, "jsonrpc must be '2.0'"),
    (request("ping", jsonrpc="1.0"), -32600, "jsonrpc must be '2.0', not '1.0'"),
    ({"jsonrpc": "2.0", "id": 1}, -32600, "method is missing"),
    ({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}, -32600, "id must be text or a number"),
    ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, "id must be text or a number"),
    (request("tools/nope"), -32601, "Method not found: tools/nope"),
    (request("tools/call"), -32602, "Missing params"),
    (request("tools/call", [1]), -32602, "params must be an object"),
    (request("tools/call", {}), -32602, "params.name must be text"),
    (call(SEARCH, [1]), -32602, "params.arguments must be an object"),
    (call(SEARCH, {"Query": "x"}), -32602, "'query' is missing"),
    (call("nope___x", {}), -32001, "no server 'nope'"),
    (call("mail___nope", {}), -32001, "no tool 'mail___nope' at server 'mail'"),
    (call("plain", {}), -32001, "server___tool"),
    (request("prompts/get", {"name": "nope___x"}), -32001, "no prompt"),
    (request("prompts/get", {}), -32602, "'name' is missing"),
    (request("resources/read", {"uri": "x://y"}), -32001, "x://y"),
])  # fmt: skip
async def test_a_wrong_request_is_an_error_with_its_code(body: Any, code: int, said: str) -> None:
    async with serving(gateway_over()) as address:
        answer = (await post(address, body)).json()
        assert answer["error"]["code"] == code
        assert said in answer["error"]["message"]
        assert answer["id"] == (1 if isinstance(body, dict) and type(body["id"]) is int else None)


async def test_a_server_that_fails_is_an_error_of_its_own() -> None:
    failure = SourceError("is not connected: gone", server="mail")
    source = FakeSource(tools_of(SERVERS), {"send_mail": failure, "read_inbox": RuntimeError("x")})
    async with serving(gateway_over(source)) as address:
        answer = (await post(address, call("mail___send_mail", {}))).json()
        assert answer["error"] == {
            "code": -32002,
            "message": "server 'mail': is not connected: gone",
        }
        failed = (await post(address, call("mail___read_inbox", {}))).json()
        assert failed["result"]["isError"] is True


async def test_the_other_methods_are_answered() -> None:
    async with serving(gateway_over()) as address:
        begun = (
            await post(address, request("initialize", {"protocolVersion": "2025-06-18"}))
        ).json()
        assert begun["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert begun["result"]["protocolVersion"] == "2025-06-18"
        assert begun["result"]["serverInfo"]["name"] == "tool-search-gateway"
        ping = (await post(address, {"jsonrpc": "2.0", "method": "ping"})).json()
        assert ping == {"jsonrpc": "2.0", "id": None, "result": {}}
        told = await post(address, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (told.status_code, told.content) == (202, b"")
        listed = (await post(address, request("tools/list"))).json()["result"]["tools"]
        assert [tool["name"] for tool in listed][-2:] == [SEARCH, "call_tool"]
        assert (await post(address, request("prompts/list"))).json()["result"] == {"prompts": []}
        for method in ("resources/list", "resources/templates/list"):
            assert "result" in (await post(address, request(method))).json()
        called = (await post(address, call("mail___send_mail", {"text": "a"}, "id"))).json()
        assert called["id"] == "id"
        assert called["result"]["content"][0]["text"] == "mail send_mail {'text': 'a'}"


async def test_what_is_not_a_request_is_refused() -> None:
    async with serving(gateway_over()) as address, httpx2.AsyncClient() as client:
        assert (await client.get(address)).status_code == 405
        assert (await client.delete(address)).status_code == 405
        assert (
            await client.get(address, headers={"Accept": "text/event-stream"})
        ).status_code == 405
        page = {"Origin": "http://evil.example"}
        assert (await post(address, request("ping"), **page)).status_code == 403
        assert (await post(address, request("ping"), Host="evil.example")).status_code == 421
        plain = await client.post(address, content=b"{}", headers={"Content-Type": "text/plain"})
        assert plain.status_code == 400
        assert (await post(address, b" " * 5_000_000)).status_code == 413


async def test_health_says_the_state_of_each_server() -> None:
    async with serving(gateway_over()) as address, httpx2.AsyncClient() as client:
        health = (await client.get(address.replace("/mcp", "/health"))).json()
        for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            refused = await client.get(address.replace("/mcp", "/health"), headers=foreign)
            assert refused.status_code in (403, 421)
            assert "transport." in refused.json()["error"]["message"]
    assert health["status"] == "healthy"
    assert health["servers"]["mail"]["state"] == "connected"
    assert health["tools"] == 7


async def test_pages_of_allowed_origins_may_ask() -> None:
    transport = {"type": "http", "cors": ["https://app.example"]}
    async with serving(gateway_over(transport=transport)) as address:
        allowed = await post(address, request("ping"), Origin="https://app.example")
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert allowed.status_code == 200
        other = await post(address, request("ping"), Origin="https://other.example")
        assert other.status_code == 403


def test_other_machines_need_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = {"type": "http", "host": "0.0.0.0"}  # noqa: S104  # what is refused
    with pytest.raises(ConfigurationError, match="set transport"):
        gateway_over(transport=open_to_all).asgi()
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", " , ")
    with pytest.raises(ConfigurationError, match="'GATEWAY_TEST_TOKENS' is empty"):
        gateway_over(transport={**open_to_all, "tokens_env": "GATEWAY_TEST_TOKENS"}).asgi()
