"""Tokens, headers and OAuth of servers on the network, and what is kept of them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp.shared.auth import OAuthToken

from tests.loopback import listening
from tests.mcp.helpers import call, free_port, names, over_http, plain, until
from tool_search.adapters.mcp import MCPSource
from tool_search.adapters.mcp.oauth import TokenFile
from tool_search.errors import SourceError


@pytest.mark.parametrize("token", ["T", "Bearer T", "${TOKEN}"])
async def test_a_token_and_headers_are_sent(token: str) -> None:
    async with over_http("token", free_port()) as entry:
        given = {**entry, "authorizationToken": token, "headers": {"X-Team": "${TEAM:-core}"}}
        async with MCPSource({"web": given}, environment={"TOKEN": "T"}, start_s=60) as source:
            assert (await call(source, "add", a=1, b=2)).content == "3"


async def test_a_refused_token_is_an_error_without_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with over_http("token", free_port()) as entry:
        given = {**entry, "authorizationToken": "very-secret-token"}
        async with MCPSource({"web": given, "b": plain("find")}, start_s=60) as source:
            status = source.status[0]
            assert (status.state, status.tools) == ("failed", 0)
            assert "403" in str(status.error)
            assert len(source.tools) == 1
    assert "very-secret-token" not in caplog.text
    assert "very-secret-token" not in repr(source.status)


async def person(caplog: pytest.LogCaptureFixture) -> None:
    """Permit the bot in a browser: open the address, come back with a code."""
    await until(lambda: "mcp_permission" in caplog.text)
    (address,) = re.findall(r"open (http\S+)", caplog.text)
    asked = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
    port = urlsplit(asked["redirect_uri"]).port
    await listen(port)
    # A page that the person has open sends what it likes, and ends nothing.
    for foreign in ("error=denied", "code=E", "code=E&state=x", "error=denied&state="):
        assert b"404" in await _get(port, foreign)
    assert b"200 OK" in await _get(port, f"code=C&state={asked['state']}")


async def _get(port: int | None, query: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /callback?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


async def listen(port: int | None) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
            continue
        writer.close()
        return


async def test_a_person_permits_the_bot_once_and_the_tokens_are_private(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = tmp_path / "kept" / "tokens.json"
    async with over_http("oauth", free_port()) as entry:
        oauth = {"tokens": str(tokens), "callbackPort": free_port()}
        servers = {"web": {**entry, "oauth": oauth}}
        with caplog.at_level(logging.WARNING):
            browser = asyncio.create_task(person(caplog))
            async with MCPSource(servers, start_s=60) as source:
                await browser
                assert (await call(source, "add", a=1, b=2)).content == "3"
        assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
        kept = json.loads(tokens.read_text())[entry["url"]]
        assert (kept["tokens"]["access_token"], kept["client"]["client_id"]) == (
            "A", "registered",
        )  # fmt: skip
        caplog.clear()
        async with MCPSource(servers, start_s=60) as source:
            assert (await call(source, "add", a=1, b=2)).content == "3"
        assert "mcp_permission" not in caplog.text


async def test_a_file_of_tokens_keeps_those_of_other_servers(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for url in ("https://a", "https://b"):
        await TokenFile(path, url).set_tokens(OAuthToken(access_token=url, token_type="Bearer"))
    first = await TokenFile(path, "https://a").get_tokens()
    assert first is not None
    assert first.access_token == "https://a"
    assert sorted(os.listdir(tmp_path)) == [".tokens.json.lock", "tokens.json"]  # noqa: PTH208
    path.write_text("not JSON")
    with pytest.raises(SourceError, match="mend or delete it"):
        await TokenFile(path, "https://a").get_tokens()


async def test_servers_that_refresh_at_once_lose_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for _ in range(10):
        async with asyncio.TaskGroup() as group:
            for number in range(6):
                token = OAuthToken(access_token=f"{number}", token_type="Bearer")
                group.create_task(TokenFile(path, f"https://s{number}").set_tokens(token))
        kept = json.loads(path.read_text())
        assert [kept[f"https://s{number}"]["tokens"]["access_token"] for number in range(6)] == [
            "0", "1", "2", "3", "4", "5",
        ]  # fmt: skip
        path.unlink()


async def test_file_of_tokens_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    tokens = TokenFile(tmp_path / "a file" / "tokens.json", "https://a")
    with pytest.raises(SourceError, match="cannot be written"):
        await tokens.set_tokens(OAuthToken(access_token="A", token_type="Bearer"))


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28"])
async def test_a_version_of_another_era_fails_its_server_alone(version: str) -> None:
    servers = {"old": plain("find", protocol=version), "b": plain("other")}
    async with MCPSource(servers) as source:
        assert [tool.name for tool in source.tools] == ["other"]
        assert version in str(source.status[0].error)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_of_100_mb_over_http_costs_one_call(kind: str) -> None:
    """The server is a few lines: no framework would write such an answer."""
    sent = [0]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
                await _answer(writer, json.loads(await reader.readexactly(size) or b"{}"))
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call":
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
            writer.write(b"data: " if kind == "text/event-stream" else b"")
            writer.write(b'{"jsonrpc": "2.0", "x": "')
            for _ in range(100):
                writer.write(b"y" * 1_000_000)
                await writer.drain()
                sent[0] += 1
        body, status = b"", "202 Accepted"
        if "id" in message:
            result: dict[str, Any] = {"tools": [{"name": "flood", "inputSchema": {}}]}
            if message["method"] == "initialize":
                info = {"name": "x", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                          "serverInfo": info}  # fmt: skip
            elif message["method"] != "tools/list":
                status = "405 Method Not Allowed"
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            status = "200 OK" if status.startswith("202") else status
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\n\r\n".encode() + body)

    async with listening(serve) as port:
        web = {"url": f"http://127.0.0.1:{port}/mcp", "timeout": 20}
        async with MCPSource({"mcpServers": {"web": web, "b": plain("find")}}) as source:
            assert names(source) == ["flood", "find"]
            flooded = await call(source, "flood")
            assert flooded.is_error
            assert sent[0] < 60
            assert not (await call(source, "find")).is_error
