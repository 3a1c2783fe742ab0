r"""Halves of characters in JSON, as `JSON.stringify(text.slice(0, n))` writes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.loopback import listening
from tests.mcp.helpers import call, names, plain, until
from tool_search.adapters.mcp import MCPSource
from tool_search.adapters.mcp.half_characters import HalfCharacters

PARTS = ["a", '"', "\\", "u", "d83d", "\n", "\ud83d", "\ude00", "😀", "é"]
TEXTS = st.lists(st.sampled_from(PARTS)).map("".join)


def whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_halves(data: bytes, sizes: list[int]) -> bytes:
    halves, found = HalfCharacters(), b""
    for size in sizes:
        found += halves.feed(data[:size])
        data = data[size:]
    return found + halves.feed(data) + halves.end()


@given(st.lists(TEXTS), st.lists(st.integers(0, 9)))
def test_halves_alone_are_replaced_in_pieces_of_any_size(
    texts: list[str], sizes: list[int]
) -> None:
    found = json.loads(without_halves(json.dumps(texts).encode(), sizes))
    assert found == [whole(text) for text in texts]


def test_a_file_without_halves_is_the_same_bytes() -> None:
    data = json.dumps({"😀": ["\\ud83d", "\\\\", '"']}).encode() + b"\\"
    assert without_halves(data, [1] * len(data)) == data


HALF = {"name": "half", "description": "cut \ud83d", "inputSchema": {"type": "object"}}


async def test_a_server_that_cuts_an_emoji_keeps_its_tools_and_its_results() -> None:
    entry = plain(HALF, "raw")
    async with MCPSource({"a": entry}, start_s=60) as source:
        assert names(source) == ["half", "raw"]
        assert source.tools[0].description == "cut \ufffd"
        answer = json.dumps({"content": [{"type": "text", "text": "\ud83d and \U0001f600"}]})
        assert (await call(source, "raw", value=answer)).content == "\ufffd and \U0001f600"


@pytest.mark.parametrize("result", ["[]", "5", "null", '"text"'])
async def test_an_answer_without_an_object_is_an_error_at_once(result: str) -> None:
    async with MCPSource({"a": plain("raw", timeout=60)}, start_s=60) as source:
        found = await asyncio.wait_for(call(source, "raw", value=result), 30)
        assert found.is_error
        assert "the result of its answer is not an object" in str(found.content)


async def test_a_schema_of_too_many_levels_hides_its_tool_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": schema}}
    deep = {"name": "deep", "description": "Deep.", "inputSchema": schema}
    async with MCPSource({"a": plain("good", deep)}, start_s=60) as source:
        assert names(source) == ["good"]
    assert "more than 100 levels, of the tool 'deep'" in caplog.text


@asynccontextmanager
async def cutting_over_http() -> AsyncGenerator[str]:
    """A server over HTTP whose every answer is cut, in JSON or, for a call, as an event."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = next(
                (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                 if line.startswith(b"content-length")), 0,
            )  # fmt: skip
            message = json.loads(await reader.readexactly(size) or b"{}")
            method = message.get("method", "")
            results: dict[str, Any] = {
                "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "cuts", "version": "1"}},
                "tools/list": {"tools": [HALF]},
                "tools/call": {"content": [{"type": "text", "text": "cut \ud83d"}]},
            }  # fmt: skip
            if method not in results:
                status = b"404 Not Found" if "id" in message else b"202 Accepted"
                writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
                continue
            content = {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
            kind, body = b"application/json", json.dumps(content).encode()
            if method == "tools/call":
                kind, body = b"text/event-stream", b"event: message\ndata: " + body + b"\n\n"
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
                % (kind, len(body))
            )
            for place in range(0, len(body), 7):
                writer.write(body[place : place + 7])
                await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}/mcp"


async def test_a_server_over_http_may_cut_an_emoji_too() -> None:
    async with (
        cutting_over_http() as url,
        MCPSource({"a": {"url": url, "timeout": 20}}, start_s=60) as source,
    ):
        await until(lambda: names(source) == ["half"])
        assert (await call(source, "half")).content == "cut \ufffd"
