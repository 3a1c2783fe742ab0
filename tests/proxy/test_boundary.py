"""The proxy as a boundary: web pages, odd requests, and clients who share the proxy's own key."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.proxy.conftest import serve
from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import CHAT, TOOLS
from tests.proxy.test_streams import Streaming, chunk
from tool_search.serving.proxy.app import TOKEN_HEADER, ToolSearchProxy

ALICE, BOB = {TOKEN_HEADER: "alice"}, {TOKEN_HEADER: "bob"}
FUNCTIONS = [{"type": "function", **tool["function"]} for tool in TOOLS]  # type: ignore[dict-item]
ASKED = {"model": "m", "input": "hi"}


def reply(reply_id: str) -> dict[str, Any]:
    """Return a reply of Responses with one message."""
    part = {"type": "output_text", "text": "ok", "annotations": []}
    said = {"type": "message", "id": f"msg_{reply_id}", "role": "assistant", "content": [part]}
    return {"id": reply_id, "object": "response", "status": "completed", "output": [said]}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[RawProvider]:
    """A raw provider, whose key is the proxy's own."""
    monkeypatch.setenv("TEST_TOKENS", "alice,bob")
    monkeypatch.setenv("TEST_KEY", "sk-of-the-operator")
    with raw_provider() as running:
        running.body = json.dumps(reply("resp_1")).encode()
        yield running


def settings_of(provider: RawProvider | Streaming, **settings: Any) -> dict[str, Any]:
    """Return the settings of a proxy with a key of its own."""
    more = {"api_key_env": "TEST_KEY", **settings.pop("upstream", {})}
    dialects = ["openai_chat", "openai_responses", "anthropic"]
    entry = {"base_url": f"{provider.address}/v1", "dialects": dialects, **more}
    return {"upstreams": [entry], **settings}


def tokens_of(provider: RawProvider, **settings: Any) -> dict[str, Any]:
    """Return the settings of a proxy whose clients have tokens."""
    return settings_of(provider, listen={"tokens_env": "TEST_TOKENS"}, **settings)


@pytest.mark.parametrize(
    ("given", "status", "setting"),
    [
        ({"origin": "https://evil.example"}, 403, 'listen.cors: ["https://evil.example"]'),
        ({"origin": "null"}, 403, "listen.cors"),
        ({"sec-fetch-site": "cross-site"}, 403, "listen.cors"),
        ({"sec-fetch-site": "same-site"}, 403, "listen.cors"),
        ({"host": "rebound.example:8787"}, 421, 'listen.hosts: ["rebound.example"]'),
        ({"host": "127.0.0.1.rebound.example"}, 421, "listen.hosts"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_a_page_of_the_web_does_not_use_the_operators_key(
    provider: RawProvider, path: str, given: dict[str, str], status: int, setting: str
) -> None:
    with serve(ToolSearchProxy(settings_of(provider))) as address:
        refused = httpx2.post(f"{address}{path}", json=CHAT, headers=given)

    assert refused.status_code == status
    assert setting in refused.json()["error"]["message"]
    assert provider.requests == []


def test_the_names_and_the_pages_that_the_operator_names_may_ask(provider: RawProvider) -> None:
    page = {"origin": "https://app.example", "sec-fetch-site": "cross-site"}
    listen = {"hosts": ["*.example"], "cors": ["https://app.example"]}
    provider.header_lines = (("access-control-allow-origin", "*"),)
    with serve(ToolSearchProxy(settings_of(provider, listen=listen))) as address:
        at = f"{address}/v1/chat/completions"
        asked = {"access-control-request-method": "POST", **page}
        preflight = httpx2.options(at, headers=asked)
        allowed = httpx2.post(at, json=CHAT, headers={**page, "host": "llm.example"})
        plain = httpx2.post(at, json=CHAT)

    origins = [
        each.headers.get_list("access-control-allow-origin") for each in (preflight, allowed)
    ]
    assert origins == [["https://app.example"], ["https://app.example"]]
    assert [preflight.status_code, allowed.status_code, plain.status_code] == [200] * 3
    # The provider's own header would let any page read the reply.
    assert "access-control-allow-origin" not in plain.headers


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../admin", "/v1/%2e%2e/admin", "/v1/./models", "/v1//models", "//evil.example/v1",
        "/v1/files/a%2Fb", "/v1/files/a%2f..%2fb", "/v1/files/a%5cb", "/v1/files/a%252fb", "/..;/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("own_key", [True, False])
def test_a_path_that_servers_read_differently_is_refused(
    provider: RawProvider, path: str, *, own_key: bool
) -> None:
    upstream = {} if own_key else {"api_key_env": None}
    with serve(ToolSearchProxy(settings_of(provider, upstream=upstream))) as address:
        client = http.client.HTTPConnection(address.removeprefix("http://"))
        client.request("GET", path)
        status = client.getresponse().status
        client.close()

    assert status == 400
    assert provider.requests == []


def exchanged(address: str, sent: bytes) -> bytes:
    """Return what comes back for bytes on a connection of their own."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(sent)
        connection.settimeout(20)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"


def test_a_request_of_two_lengths_is_refused(provider: RawProvider) -> None:
    lengths = b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    with serve(ToolSearchProxy(settings_of(provider))) as address:
        answered = exchanged(address, HEAD + lengths)

    assert answered.startswith(b"HTTP/1.1 400")
    assert provider.requests == []


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
def test_a_body_that_never_ends_has_a_time(
    provider: RawProvider, path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    head = HEAD.replace(b"/v1/chat/completions", path)
    with serve(ToolSearchProxy(settings_of(provider, listen={"body_timeout_s": 0.2}))) as address:
        answered = exchanged(address, head + b"content-length: 20\r\n\r\n{")

    assert answered.startswith(b"HTTP/1.1 408")
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["searched", "passed on"])
def test_a_client_that_leaves_writes_no_traceback(
    tools: list[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("TEST_KEY", "k")
    source = Streaming([chunk({"content": "I"})], repeats=True)
    with serve(ToolSearchProxy(settings_of(source))) as address:
        body = {**CHAT, "tools": tools, "stream": True}
        with httpx2.stream("POST", f"{address}/v1/chat/completions", json=body) as stream:
            next(stream.iter_lines())
        assert source.gone.wait(20)
        host, _, port = address.removeprefix("http://").partition(":")
        for path in (b"/v1/files", b"/v1/chat/completions"):
            head = HEAD.replace(b"/v1/chat/completions", path)
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(head + b"content-length: 200\r\n\r\n{")
    source.close()

    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"), ("GET", "/v1/models/m"), ("POST", "/v1/embeddings"),
        ("POST", "/v1/responses/input_tokens"), ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1/conversations"), ("POST", "/v1/messages/batches"),
        ("POST", "/v1/audio/speech"), ("GET", "/v1/files"),
    ],
)  # fmt: skip
def test_the_proxys_key_is_for_listed_paths(provider: RawProvider, method: str, path: str) -> None:
    listen = {"routes": ["POST /v1/audio/*"]}
    with serve(ToolSearchProxy(settings_of(provider, listen=listen))) as address:
        content = json.dumps({"model": "m"}).encode() if method == "POST" else None
        answered = httpx2.request(method, f"{address}{path}", content=content)

    assert answered.status_code == 200
    assert provider.requests[0].headers["authorization"] == "Bearer sk-of-the-operator"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/organization/api_keys"), ("POST", "/v1/completions"),
        ("DELETE", "/v1/models/m"),
        ("POST", "/v1/audio/speech"), ("POST", "/v1/chat/completions/"), ("POST", "/V1/responses"),
    ],
)  # fmt: skip
def test_the_proxys_key_is_for_no_other_path(provider: RawProvider, method: str, path: str) -> None:
    with serve(ToolSearchProxy(settings_of(provider))) as address:
        refused = httpx2.request(method, f"{address}{path}", headers={"authorization": "Bearer x"})

    assert refused.status_code == 403
    assert f'listen.routes: ["{method} {path}"]' in refused.json()["error"]["message"]
    assert provider.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", '{"model": "dear", "messages": []}'),
        ("/chat/completions", '{"model": "dear", "messages": []}'),
        ("/v1/chat/completion%73", '{"model": "dear", "messages": []}'),
        ("/v1/responses", '{"input": "hi"}'),
        ("/v1/responses", '{"model": "dear", "model": "cheap", "input": "hi"}'),
        ("/v1/responses", '{"model": "cheap", "input": "hi"'),
        ("/v1/embeddings", '{"model": "dear", "input": "hi"}'),
        ("/v1/responses/compact", '{"model": "dear", "input": "hi"}'),
        ("/v1/completions", '{"model": "dear", "prompt": "hi"}'),
        ("/v1/messages/batches", '{"requests": [{"params": {"model": "dear"}}]}'),
        ("/v1/batches", '{"input_file_id": "file_1"}'),
    ],
)
def test_models_hold_for_every_spelling_of_a_path(
    provider: RawProvider, path: str, body: str
) -> None:
    listen = {"routes": ["/v1/completions"]}
    settings = settings_of(provider, listen=listen, upstream={"models": ["cheap"]})
    with serve(ToolSearchProxy(settings)) as address:
        refused = httpx2.post(f"{address}{path}", content=body)

    assert refused.status_code in (400, 404)
    assert provider.requests == []


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("tools", [FUNCTIONS, []], ids=["searched", "passed on"])
def test_a_kept_reply_belongs_to_the_token_that_made_it(
    provider: RawProvider, tools: list[Any], *, stream: bool
) -> None:
    made = json.dumps(reply("resp_1"))
    if stream:
        provider.headers["content-type"] = "text/event-stream"
        (said,) = reply("resp_1")["output"]
        events = [
            {"type": "response.created", "response": {**reply("resp_1"), "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": said},
            {"type": "response.completed", "response": reply("resp_1")},
        ]  # fmt: skip
        made = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    provider.bodies = [made.encode()]
    with serve(ToolSearchProxy(tokens_of(provider))) as address:
        asked = {**ASKED, "tools": tools, "stream": stream}
        first = httpx2.post(f"{address}/v1/responses", json=asked, headers=ALICE)
        provider.headers["content-type"] = "application/json"
        assert "resp_1" in first.text
        seen = len(provider.requests)
        by_bob = [
            httpx2.get(f"{address}/v1/responses/resp_1", headers=BOB),
            httpx2.delete(f"{address}/responses/resp%5F1", headers=BOB),
            *(
                httpx2.post(f"{address}/v1/responses", json={**ASKED, **more}, headers=BOB)
                for more in (
                    {"previous_response_id": "resp_1"},
                    {"input": [{"type": "item_reference", "id": "msg_resp_1"}]},
                    {"input": [{"id": "msg_resp_1"}]},
                )
            ),
        ]
        assert len(provider.requests) == seen
        read = httpx2.get(f"{address}/v1/responses/resp_1", headers=ALICE)
        more = {**ASKED, "previous_response_id": "resp_1", "input": [{"id": "msg_resp_1"}]}
        goes_on = httpx2.post(f"{address}/v1/responses", json=more, headers=ALICE)

    assert [each.status_code for each in by_bob] == [403] * 5
    assert "shared_account" in by_bob[0].json()["error"]["message"]
    assert [read.status_code, goes_on.status_code] == [200, 200]


@pytest.mark.parametrize("kind", ["files", "batches", "conversations", "messages/batches"])
def test_files_batches_and_conversations_belong_to_their_makers(
    provider: RawProvider, kind: str
) -> None:
    with serve(ToolSearchProxy(tokens_of(provider))) as address:
        at = f"{address}/v1/{kind}"
        provider.body = b'{"id": "x_1", "output_file_id": "file_9"}'
        assert httpx2.post(at, json={}, headers=ALICE).status_code == 200
        seen = len(provider.requests)
        uses = {"conversation": {"id": "x_1"}, "tools": [{"container": {"file_ids": ["file_9"]}}]}
        refused = [
            httpx2.delete(f"{at}/x_1", headers=BOB),
            httpx2.get(f"{at}/x_1/content", headers=BOB),
            httpx2.post(f"{address}/v1/batches", json={"input_file_id": "x_1"}, headers=BOB),
            httpx2.post(f"{address}/v1/responses", json={**ASKED, **uses}, headers=BOB),
        ]
        assert len(provider.requests) == seen
        own = httpx2.get(f"{at}/x_1", headers=ALICE)
        result = httpx2.get(f"{address}/v1/files/file_9/content", headers=ALICE)
        listed = {"data": [{"id": "x_0"}, {"id": "x_1"}], "last_id": "x_1", "has_more": False}
        provider.bodies = [
            json.dumps({"data": [{"id": "x_0"}], "has_more": True}).encode(),
            *[json.dumps(listed).encode()] * 2,
        ]
        alices, bobs = (httpx2.get(at, headers=token).json() for token in (ALICE, BOB))

    assert [each.status_code for each in refused] == [403] * 4
    assert [own.status_code, result.status_code] == [200, 200]
    assert (alices["data"], alices["last_id"]) == ([{"id": "x_1"}], "x_1")
    assert (bobs["data"], bobs["last_id"]) == ([], None)


@pytest.mark.parametrize(
    ("kept", "shared", "statuses"),
    [(True, False, [200, 403]), (False, False, [403, 403]), (False, True, [200, 200])],
)
def test_owners_outlive_a_restart_with_state(
    provider: RawProvider, tmp_path: Path, *, kept: bool, shared: bool, statuses: list[int]
) -> None:
    state = {"path": str(tmp_path / "state.db")} if kept else {}
    settings = tokens_of(provider, state=state, shared_account=shared)
    with serve(ToolSearchProxy(settings)) as address:
        assert httpx2.post(f"{address}/v1/responses", json=ASKED, headers=ALICE).status_code == 200
    with serve(ToolSearchProxy(settings)) as address:
        read = [httpx2.get(f"{address}/v1/responses/resp_1", headers=who) for who in (ALICE, BOB)]

    assert [each.status_code for each in read] == statuses
    assert b"alice" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_file_id_that_a_model_wrote_is_no_file_of_the_provider(provider: RawProvider) -> None:
    used = {"type": "tool_use", "id": "t", "name": "open", "input": {"file_id": "file_0"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    messages = [
        {"role": "user", "content": "open it"},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    with serve(ToolSearchProxy(tokens_of(provider))) as address:
        body = {"model": "m", "max_tokens": 9, "messages": messages}
        answered = httpx2.post(f"{address}/v1/messages", json=body, headers=ALICE)

    assert answered.status_code == 200


def test_the_inspector_shows_a_token_its_own_requests(provider: RawProvider) -> None:
    proxy = ToolSearchProxy(tokens_of(provider))
    with serve(proxy) as address:
        api = f"{address}/inspector/api"
        for token in (ALICE, BOB, ALICE):
            httpx2.post(f"{address}/v1/chat/completions", json=CHAT, headers=token)
        assert proxy.inspection is not None
        proxy.inspection.settle()
        alices, bobs = (
            httpx2.get(f"{api}/requests", headers=token).json()["requests"]
            for token in (ALICE, BOB)
        )
        record = f"{api}/requests/{bobs[0]['id']}"
        read = [httpx2.get(record, headers=token).status_code for token in (ALICE, BOB)]
        figures = httpx2.get(f"{api}/figures", headers=BOB).json()

    assert [len(alices), len(bobs), read] == [2, 1, [404, 200]]
    assert figures["requests"] == 1
