"""Answers over HTTP that are none: errors of a proxy, pages for people, and halves of JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.mcp.helpers import free_port, names
from tool_search.adapters.mcp import MCPSource
from tool_search.errors import SourceError

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "web", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "find", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "found"}]},
}


def http(status: str, kind: str, body: bytes, *, more: int = 0) -> bytes:
    """An answer; `more` bytes are promised and never come."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body) + more}"
    return f"{head}\r\n\r\n".encode() + body


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncGenerator[dict[str, Any]]:
    """A server whose calls have these answers in turn, and then good ones; gives its entry."""
    left = list(answers)

    def answer(method: str, number: object) -> bytes:
        if method == "tools/call" and left:
            return left.pop(0)
        if method not in RESULTS:
            return http("202 Accepted" if number is None else "404 Not Found", "text/plain", b"")
        content = {"jsonrpc": "2.0", "id": number, "result": RESULTS[method]}
        return http("200 OK", "application/json", json.dumps(content).encode())

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
                message = json.loads(await reader.readexactly(size) or b"{}")
                written = answer(message.get("method", ""), message.get("id"))
                writer.write(written)
                if written in answers:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield {"url": f"http://127.0.0.1:{port}/mcp", "timeout": 60}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (http("500 Internal Server Error", "text/plain", b"x"), "HTTP 500 Internal Server Error"),
        (http("502 Bad Gateway", "text/html", b"<html>"), "HTTP 502 Bad Gateway"),
        (http("401 Unauthorized", "text/plain", b""), "HTTP 401 Unauthorized"),
        (http("200 OK", "text/html", b"<html>Sign in"), "has the content type 'text/html'"),
        (http("200 OK", "application/json", b'{"jsonrpc": "2.0"', more=9), "may have run: Remote"),
        (http("200 OK", "application/json", b'{"jsonrpc": "2.0"'), "is cut off, or not JSON"),
        (http("200 OK", "application/json", b""), "is cut off, or not JSON"),
    ],
)
async def test_a_call_that_got_no_answer_fails_at_once_and_the_next_one_runs(
    answer: bytes, problem: str
) -> None:
    async with answering(answer) as entry, MCPSource({"web": entry}, start_s=60) as source:
        assert names(source) == ["find"]
        params = {"name": "find", "arguments": {}}
        with pytest.raises(SourceError, match=problem):
            await asyncio.wait_for(source.request("web", "tools/call", params), 30)
        result = await source.request("web", "tools/call", params)
        assert result["content"][0]["text"] == "found"


async def test_a_source_closes_whatever_answer_is_on_its_way() -> None:
    """For an answer that finds its stream closed the SDK raises, in place of being cancelled."""
    params = {"name": "find", "arguments": {}}
    async with answering() as entry:
        for rounds in range(12):
            async with asyncio.timeout(30), MCPSource({"web": entry}, start_s=60) as source:
                calling = asyncio.ensure_future(source.request("web", "tools/call", params))
                for _ in range(rounds):
                    await asyncio.sleep(0)
            await asyncio.gather(calling, return_exceptions=True)
