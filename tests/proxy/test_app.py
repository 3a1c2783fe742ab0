"""Requests that the proxy passes on, refuses, or cannot read; and the keys that it keeps secret."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.proxy.raw import RawProvider, raw_provider
from tool_search.config.limits import LimitSettings
from tool_search.errors import ConfigurationError
from tool_search.serving.proxy.addresses import known_dialects, upstream_url
from tool_search.serving.proxy.app import TOKEN_HEADER, ToolSearchProxy
from tool_search.serving.proxy.settings import (
    ListenSettings,
    ProxyConfig,
    StateSettings,
    UpstreamSettings,
    load_proxy_config,
    proxy_config,
)
from tool_search.serving.proxy.upstreams import Upstreams

KEY = "sk-secret-of-a-client-123456"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": f"Does thing {number}.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    for number in range(40)
]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
REPLY = {
    "id": "c1",
    "object": "chat.completion",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    ],
}


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    """A raw provider."""
    with raw_provider() as running:
        running.body = json.dumps(REPLY).encode()
        yield running


@asynccontextmanager
async def client_of(
    provider: RawProvider, *, upstream: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of a proxy before a provider."""
    entry = UpstreamSettings(
        base_url=f"{provider.address}/v1",
        dialects=("openai_chat", "openai_responses", "anthropic"),
        **(upstream or {}),
    )
    proxy = ToolSearchProxy(ProxyConfig(upstreams=(entry,), **settings))
    transport = httpx2.ASGITransport(app=proxy.asgi())
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=headers
    ) as client:
        yield client
    await proxy.service.close()


def files_of(folder: Path) -> bytes:
    """Return the content of every file in a folder."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_request_without_tools_goes_on_byte_for_byte(provider: RawProvider) -> None:
    raw = b'{ "model": "m",  "messages": [{"role":"user","content":"\\u00e9"}] , "new": 1.0 }'
    async with client_of(provider) as client:
        reply = await client.post("/v1/chat/completions", content=raw)

    assert provider.requests[0].body == raw
    assert reply.content == provider.body


async def test_few_tools_go_on_byte_for_byte(provider: RawProvider) -> None:
    raw = json.dumps({**CHAT, "tools": TOOLS[:25]}, indent=1).encode()
    async with client_of(provider) as client:
        await client.post("/v1/chat/completions", content=raw)

    assert provider.requests[0].body == raw


async def test_other_fields_and_headers_go_on_beside_a_changed_list(provider: RawProvider) -> None:
    body = {**CHAT, "tools": TOOLS, "temperature": 0.1, "unknown": {"a": [1, None]}}
    async with client_of(provider) as client:
        reply = await client.post(
            "/v1/chat/completions?trace=1", json=body, headers={"x-own": "yes"}
        )

    (asked,) = provider.requests
    sent = json.loads(asked.body)
    assert asked.path == "/v1/chat/completions?trace=1"
    assert asked.headers["x-own"] == "yes"
    assert (sent["temperature"], sent["unknown"]) == (0.1, {"a": [1, None]})
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["tool_search"]
    assert reply.headers["x-tool-search"].startswith("declared=1 deferred=40 searches=0")


@pytest.mark.parametrize("raw", [b"{", b"[]", b'"text"', b"\xff\xfe", b"", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_the_providers_to_refuse(
    provider: RawProvider, raw: bytes
) -> None:
    provider.status = 400
    provider.body = b'{"error": {"message": "not JSON"}}'
    async with client_of(provider) as client:
        reply = await client.post("/v1/chat/completions", content=raw)

    assert (reply.status_code, reply.content) == (400, provider.body)
    assert provider.requests[0].body == raw


@pytest.mark.parametrize(
    "change",
    [
        {"tools": "none"},
        {"tools": [1, 2]},
        {"tools": TOOLS, "messages": "hi"},
        {"tools": TOOLS, "messages": [1]},
        {"tools": TOOLS, "messages": []},
        {"tools": TOOLS, "n": 2},
    ],
)
async def test_a_request_of_another_form_goes_on_as_it_came(
    provider: RawProvider, change: dict[str, Any]
) -> None:
    raw = json.dumps({**CHAT, **change}).encode()
    async with client_of(provider) as client:
        await client.post("/v1/chat/completions", content=raw)

    assert provider.requests[0].body == raw


async def test_definitions_that_no_catalog_takes_stay_declared(provider: RawProvider) -> None:
    odd = [
        {"type": "function", "function": {"name": "tool_1", "description": "A second one."}},
        {"type": "function", "function": {"name": "bad", "parameters": {"type": 3}}},
        {"type": "function", "function": {"description": "nameless"}},
        {"type": "web_search"},
    ]
    async with client_of(provider) as client:
        await client.post("/v1/chat/completions", json={**CHAT, "tools": [*TOOLS, *odd]})

    sent = json.loads(provider.requests[0].body)["tools"]
    assert [entry for entry in odd if entry in sent][2:] == odd[2:]
    assert odd[0] in sent


async def test_a_body_that_is_too_long_is_refused(provider: RawProvider) -> None:
    listen = ListenSettings(max_body_bytes=1_000)
    async with client_of(provider, listen=listen) as client:
        reply = await client.post("/v1/messages", content=b"x" * 2_000)

    assert reply.status_code == 413
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert provider.requests == []


async def test_other_paths_pass_in_both_directions(provider: RawProvider) -> None:
    provider.body = b"\x00\x01 bytes"
    provider.headers = {"content-type": "application/octet-stream", "x-theirs": "1"}
    async with client_of(provider) as client:
        reply = await client.get("/v1/files/f1/content?x=1")

    assert provider.requests[0].path == "/v1/files/f1/content?x=1"
    assert (reply.content, reply.headers["x-theirs"]) == (provider.body, "1")


async def test_a_body_of_another_path_keeps_its_length(provider: RawProvider) -> None:
    async with client_of(provider) as client:
        await client.post("/v1/embeddings", content=b'{"input": "x"}')

    (asked,) = provider.requests
    assert asked.body == b'{"input": "x"}'
    assert "transfer-encoding" not in asked.headers


async def test_a_redirect_is_not_followed(provider: RawProvider) -> None:
    provider.status = 307
    provider.headers = {"location": "http://127.0.0.1:1/elsewhere"}
    async with client_of(provider) as client:
        reply = await client.post("/v1/chat/completions", json={**CHAT, "tools": TOOLS})

    assert reply.status_code == 307
    assert len(provider.requests) == 1


async def test_an_error_page_of_a_gateway_is_passed_on(provider: RawProvider) -> None:
    provider.status, provider.body = 502, b"<html>bad gateway</html>"
    provider.headers = {"content-type": "text/html"}
    async with client_of(provider) as client:
        body = {**CHAT, "tools": TOOLS, "stream": True}
        reply = await client.post("/v1/chat/completions", json=body)

    assert (reply.status_code, reply.content) == (502, provider.body)


async def test_a_provider_that_is_not_there_is_a_typed_error() -> None:
    gone = RawProvider(address="http://127.0.0.1:9")
    async with client_of(gone) as client:
        reply = await client.post("/v1/messages", json={**CHAT, "max_tokens": 1})

    assert reply.status_code == 502
    assert reply.json()["error"]["type"] == "api_error"


async def test_a_model_that_no_upstream_has_is_named(provider: RawProvider) -> None:
    async with client_of(provider, upstream={"models": ("gpt-*",)}) as client:
        reply = await client.post("/v1/chat/completions", json=CHAT)

    assert reply.status_code == 404
    assert "'m'" in reply.json()["error"]["message"]


async def test_a_key_of_the_environment_takes_the_place_of_the_clients(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-own")
    monkeypatch.setenv("CLIENT_TOKENS", "t1, t2")
    listen = ListenSettings(tokens_env="CLIENT_TOKENS")
    upstream = {"api_key_env": "UPSTREAM_KEY"}
    async with client_of(provider, upstream=upstream, listen=listen) as client:
        refused = await client.post("/v1/chat/completions", json=CHAT)
        by_key = await client.post(
            "/v1/chat/completions", json=CHAT, headers={"authorization": "Bearer t2"}
        )
        by_header = await client.post(
            "/v1/chat/completions", json=CHAT, headers={TOKEN_HEADER: "t1"}
        )

    assert [r.status_code for r in (refused, by_key, by_header)] == [401, 200, 200]
    assert {request.headers["authorization"] for request in provider.requests} == {"Bearer sk-own"}
    assert all(TOKEN_HEADER not in request.headers for request in provider.requests)


async def test_a_clients_key_is_in_no_file_and_no_log(
    provider: RawProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tool_search")
    state = StateSettings(path=str(tmp_path / "state.db"))
    call = {"id": "1", "type": "function", "function": {"name": "tool_search", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    provider.body = json.dumps(
        {"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    ).encode()
    async with client_of(provider, state=state) as client:
        await client.post("/v1/chat/completions", json={**CHAT, "tools": TOOLS})
        provider.status = 401
        await client.post("/v1/chat/completions", json={**CHAT, "tools": TOOLS})

    assert len(provider.requests) > 2
    assert KEY not in caplog.text
    assert KEY.encode() not in files_of(tmp_path)


async def test_state_that_cannot_be_written_costs_no_answer(
    provider: RawProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = StateSettings(path=str(tmp_path))
    async with client_of(provider, state=state) as client:
        reply = await client.post("/v1/chat/completions", json={**CHAT, "tools": TOOLS})

    assert reply.json() == REPLY
    assert caplog.text.count("state_unavailable") == 1


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("http://h:1/v1", "/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "/chat/completions", "http://h:1/v1/chat/completions"),
        ("https://h/api/paas/v4", "/v1/models", "https://h/api/paas/v4/models"),
        ("https://h/v1beta/openai", "/v1/models", "https://h/v1beta/openai/models"),
        ("https://h", "/v1", "https://h/v1"),
    ],
)
def test_the_version_of_an_address_replaces_that_of_a_path(base: str, path: str, url: str) -> None:
    assert upstream_url(base, path) == url


async def test_a_key_is_in_the_header_that_its_provider_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "sk-of-the-provider")
    keys = {"api-key": "of-the-client", "x-goog-api-key": "of-the-client"}
    given = httpx2.Headers({"authorization": "Bearer of-the-client", **keys})
    seen: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(200)

    for base in ("https://api.anthropic.com", "https://gateway.example/anthropic"):
        upstream = UpstreamSettings(base_url=base, api_key_env="PROVIDER_KEY")
        upstreams = Upstreams((upstream,), LimitSettings())
        upstreams._client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        async with upstreams.send(upstream, "GET", "/v1/models", headers=given):
            pass
        await upstreams.close()

    assert seen[0]["x-api-key"] == "sk-of-the-provider"
    assert {"authorization", "api-key"}.isdisjoint(seen[0])
    assert seen[1]["authorization"] == "Bearer sk-of-the-provider"
    assert not any("of-the-client" in value for sent in seen for value in sent.values())


def test_formats_of_known_addresses() -> None:
    assert known_dialects("https://api.anthropic.com") == ("anthropic",)
    assert known_dialects("https://api.deepseek.com/anthropic") == ("anthropic",)
    assert known_dialects("http://localhost:11434/v1")[0] == "openai_chat"
    assert known_dialects("https://example.com") == ()


def test_wrong_settings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="set dialects to one or more of"):
        proxy_config("https://example.com")
    file = tmp_path / "proxy.yaml"
    file.write_text("upstreams: [{base_url: 'https://api.openai.com/v1'}]\nlisten: {host: 0.0.0.0}")
    with pytest.raises(ConfigurationError, match=r"listen\.tokens_env"):
        load_proxy_config(file)
    file.write_text("upstreams: [{base_url: 'https://api.openai.com/v1'}]\nmodes: auto")
    with pytest.raises(ConfigurationError, match=r"line 2.*modes.*known here"):
        load_proxy_config(file)


def test_settings_of_searches_are_as_in_a_bot(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(
        "upstreams: [{base_url: 'https://api.openai.com/v1'}]\n"
        "tool_schema_mode: auto\n"
        "tool_search: {threshold: 3, language: zh-CN}\n"
    )

    config = load_proxy_config(file)

    assert (config.tool_search.threshold, config.tool_search.language) == (3, "zh-CN")


def test_settings_may_be_a_mapping_or_a_file(tmp_path: Path) -> None:
    """As those of a gateway."""
    content = {"upstreams": [{"base_url": "https://api.openai.com/v1"}], "mode": "inject"}
    file = tmp_path / "proxy.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    for given in (content, file, str(file)):
        assert ToolSearchProxy(given).config.mode == "inject"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"upstreams": [{"base_url": "https://api.openai.com"}], "mod": 1}, "mod"),
        ({"upstreams": [{"base_url": "https://llm.example.org"}]}, "set dialects"),
        (7, "config must be a ProxyConfig"),
    ],
)
def test_wrong_settings_are_named(given: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        ToolSearchProxy(given)
