"""Requests and replies that pass: paths, headers, cookies, lengths, and compressed bodies."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.loopback import listening
from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import CHAT, REPLY, TOOLS, client_of
from tool_search.serving.proxy.app import ToolSearchProxy

SEARCHED = json.dumps({**CHAT, "tools": TOOLS}).encode()
PASSED = json.dumps(CHAT).encode()


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    """A raw provider."""
    with raw_provider() as running:
        running.body = json.dumps(REPLY).encode()
        yield running


async def test_a_path_and_a_query_keep_their_escapes(provider: RawProvider) -> None:
    path = "/v1/files/a%20b%20c?x=%20y&x=2&z=%E4%B8%AD&e="
    async with client_of(provider) as client:
        await client.get(path)

    assert provider.requests[0].path == path


async def test_repeated_headers_pass_in_both_directions(provider: RawProvider) -> None:
    provider.header_lines = (("set-cookie", "a=1"), ("set-cookie", "b=2"))
    async with client_of(provider) as client:
        sent = [("x-tag", "1"), ("x-tag", "2"), ("connection", "x-own"), ("x-own", "3")]
        reply = await client.get("/v1/models", headers=sent)

    assert reply.headers.get_list("set-cookie") == ["a=1", "b=2"]
    lines = provider.requests[0].header_lines
    assert [value for name, value in lines if name == "x-tag"] == ["1", "2"]
    assert "x-own" not in dict(lines)


@pytest.mark.parametrize("content", [SEARCHED, PASSED], ids=["searched", "passed on"])
async def test_a_cookie_of_a_client_is_not_sent_for_another(
    provider: RawProvider, content: bytes
) -> None:
    provider.header_lines = (("set-cookie", "session=of-alice"),)
    async with client_of(provider) as alice:
        for _ in range(2):
            reply = await alice.post("/v1/chat/completions", content=content)
            assert reply.headers["set-cookie"] == "session=of-alice"
            alice.cookies.clear()  # as another client

    assert [dict(each.header_lines).get("cookie") for each in provider.requests] == [None, None]


async def test_nothing_is_added_to_what_a_client_says_of_itself(provider: RawProvider) -> None:
    async with client_of(provider) as client:
        client.headers = httpx2.Headers()
        for name in ("accept", "user-agent", "accept-encoding"):
            client.headers.pop(name, None)
        await client.get("/v1/models")

    assert {"accept", "user-agent"}.isdisjoint(provider.requests[0].headers)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT"])
async def test_other_methods_pass_with_the_length_of_their_reply(
    provider: RawProvider, method: str
) -> None:
    async with client_of(provider) as client:
        reply = await client.request(method, "/v1/files/1")

    assert provider.requests[0].method == method
    assert int(reply.headers["content-length"]) == len(provider.body)
    assert reply.content == (b"" if method == "HEAD" else provider.body)


@pytest.mark.parametrize(
    ("encoding", "compressed"),
    [("gzip", gzip.compress), ("deflate", zlib.compress)],
    ids=["gzip", "deflate"],
)
async def test_a_compressed_body_is_searched_or_passes_as_it_came(
    provider: RawProvider, encoding: str, compressed: Callable[[bytes], bytes]
) -> None:
    headers = {"content-encoding": encoding}
    async with client_of(provider) as client:
        # Once each: gzip writes the time.
        contents = [compressed(body) for body in (SEARCHED, PASSED)]
        for content in contents:
            reply = await client.post("/v1/chat/completions", content=content, headers=headers)
            assert reply.status_code == 200

    searched, passed = provider.requests
    assert len(json.loads(searched.body)["tools"]) == 1
    assert "content-encoding" not in searched.headers
    assert (passed.body, passed.headers["content-encoding"]) == (contents[1], encoding)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"no gzip", "gzip"),
        (gzip.compress(SEARCHED)[:-9], "gzip"),
        (gzip.compress(b" " * 50_000 + SEARCHED), "gzip"),
        (b"?", "zstd"),
    ],
    ids=["another form", "cut", "too long", "unknown"],
)
async def test_a_compressed_body_that_cannot_be_read_is_the_providers_to_refuse(
    provider: RawProvider, content: bytes, encoding: str
) -> None:
    headers = {"content-encoding": encoding}
    async with client_of(provider, listen={"max_body_bytes": 20_000}) as client:
        await client.post("/v1/chat/completions", content=content, headers=headers)

    (passed,) = provider.requests
    assert (passed.body, passed.headers["content-encoding"]) == (content, encoding)


async def test_a_reply_of_an_unknown_form_is_as_it_came(provider: RawProvider) -> None:
    provider.body = b'{"ok": 1}'
    async with client_of(provider) as client:
        reply = await client.post("/v1/chat/completions", content=SEARCHED)

    assert reply.json() == {"ok": 1}


async def test_a_provider_that_does_not_stream_is_searched_too(provider: RawProvider) -> None:
    function = {"name": "tool_search", "arguments": '{"query": "thing"}'}
    call = {"id": "s", "type": "function", "function": function}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": [call]}}
    provider.bodies = [json.dumps({**REPLY, "choices": [choice]}).encode(), provider.body]
    async with client_of(provider) as client:
        body = {**CHAT, "tools": TOOLS, "stream": True}
        reply = await client.post("/v1/chat/completions", json=body)

    assert reply.json() == REPLY
    assert len(provider.requests) == 2


async def test_a_proxy_may_be_mounted_in_another_application(provider: RawProvider) -> None:
    upstream = {"base_url": f"{provider.address}/v1", "dialects": ["openai_chat"]}
    proxy = ToolSearchProxy({"upstreams": [upstream]})
    app = Starlette(routes=[Mount("/llm", proxy.asgi())])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1/llm/v1"
    ) as client:
        await client.post("/chat/completions", content=SEARCHED)
        await client.get("/files/a%20b")
    await proxy.close()

    searched, passed = provider.requests
    assert (searched.path, passed.path) == ("/v1/chat/completions", "/v1/files/a%20b")
    assert len(json.loads(searched.body)["tools"]) == 1


@pytest.mark.parametrize("path", ["/v1/files", "/v1/chat/completions"])
async def test_a_client_that_leaves_in_its_own_request_is_no_failure(
    provider: RawProvider, path: str
) -> None:
    proxy = ToolSearchProxy(
        {"upstreams": [{"base_url": f"{provider.address}/v1", "dialects": ["openai_chat"]}]}
    )
    messages: list[dict[str, object]] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"{", "more_body": True},
    ]
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return messages.pop()

    async def send(message: object) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "query_string": b"",
        "headers": [(b"content-length", b"200")],
    }  # fmt: skip
    await proxy.asgi()(scope, receive, send)
    await proxy.close()

    assert sent[0]["status"] == 499


async def test_a_client_that_leaves_ends_a_request_of_another_path() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        begun.set()
        assert await reader.read() == b""
        gone.set()
        writer.close()

    async with listening(waits) as port:
        upstream = {"base_url": f"http://127.0.0.1:{port}/v1", "dialects": ["openai_chat"]}
        proxy = ToolSearchProxy({"upstreams": [upstream]})
        messages = [{"type": "http.request", "body": b"{}", "more_body": False}]

        async def receive() -> dict[str, object]:
            if messages:
                return messages.pop()
            await begun.wait()
            return {"type": "http.disconnect"}

        async def send(_message: object) -> None:
            """Nobody reads the reply."""

        scope = {
            "type": "http", "method": "POST", "path": "/v1/embeddings", "query_string": b"",
            "headers": [(b"content-length", b"2")],
        }  # fmt: skip
        async with asyncio.timeout(20):
            await proxy.asgi()(scope, receive, send)
            await gone.wait()
        await proxy.close()
