"""The inspector of a proxy: its records as JSON, and who may read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.proxy.raw import RawProvider, raw_provider
from tool_search.serving.door import TOKEN_HEADER
from tool_search.serving.inspector.log import read_log
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import (
    ClientRule,
    InspectorSettings,
    ListenSettings,
    ProxyConfig,
    UpstreamSettings,
)

KEY = "sk-secret-of-a-client-123456"
PLAIN_KEY = "plain-key-of-no-known-form"
API = "/inspector/api"


def tool(name: str, description: str = "Does a thing.") -> dict[str, Any]:
    """Return a definition of Chat Completions."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    tool("count_words", "Count the words of a text."),
    tool("read_file", "Read a file."),
    *(tool(f"tool_{number}") for number in range(40)),
]


def reply(*calls: tuple[str, str, dict[str, Any]], text: str | None = None) -> bytes:
    """Return a reply of Chat Completions with calls: id, name, arguments."""
    wishes = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, n, a in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": wishes} if wishes else {})}
    choice = {
        "index": 0, "finish_reason": "tool_calls" if wishes else "stop", "message": message,
    }  # fmt: skip
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode()


SEARCH = reply(("s1", "tool_search", {"queries": ["count words", "xyzzy"]}))
CALL = reply(("k1", "count_words", {"text": "a b"}))
ANSWER = reply(text="two words")


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    """A raw provider."""
    with raw_provider() as running:
        running.body = ANSWER
        yield running


@dataclass
class Open:
    """A proxy in this process, and a client of it."""

    proxy: ToolSearchProxy
    client: httpx2.AsyncClient
    provider: RawProvider

    async def ask(self, messages: list[Any], *bodies: bytes, **more: Any) -> httpx2.Response:
        """Send a request; the provider gives the bodies, one for each of its requests."""
        self.provider.bodies = list(bodies)
        body = {"model": "m", "messages": messages, "tools": TOOLS, **more}
        answered = await self.client.post("/v1/chat/completions", json=body)
        assert self.proxy.inspection is not None
        await asyncio.to_thread(self.proxy.inspection.settle)
        return answered

    async def records(self) -> list[dict[str, Any]]:
        """Return every request in full."""
        rows = (await self.client.get(f"{API}/requests")).json()["requests"]
        return [(await self.client.get(f"{API}/requests/{row['id']}")).json() for row in rows]


@asynccontextmanager
async def opened(provider: RawProvider, **settings: Any) -> AsyncIterator[Open]:
    """Give a proxy before a provider."""
    entry = UpstreamSettings(base_url=f"{provider.address}/v1", dialects=("openai_chat",))
    rule = ClientRule(name="mine", core=("read_*",))
    config = ProxyConfig(**{"upstreams": (entry,), "clients": (rule,), **settings})
    proxy = ToolSearchProxy(config)
    transport = httpx2.ASGITransport(app=proxy.asgi())
    async with httpx2.AsyncClient(
        transport=transport,
        base_url="http://127.0.0.1:8787",
        headers={"authorization": f"Bearer {KEY}", "x-api-key": PLAIN_KEY},
    ) as client:
        yield Open(proxy, client, provider)
    await proxy.close()


USER = {"role": "user", "content": "how many words?"}


async def test_a_request_says_what_was_declared_and_why(provider: RawProvider) -> None:
    async with opened(provider) as at:
        await at.ask([USER], SEARCH, CALL)
        (found,) = await at.records()

    declared = {each["name"]: (each["why"], each["by"]) for each in found["declared_tools"]}
    assert declared["read_file"] == ("core", "mine: core read_*")
    assert declared["tool_search"] == ("search_tool", "")
    assert declared["count_words"] == ("found", "count words")
    assert found["declared"] == len(declared)
    assert (found["tools"], found["deferred"]) == (42, 42 - len(declared) + 1)
    assert (found["client"], found["strategy"], found["status"]) == ("mine", "generic", 200)
    assert found["tokens"] < found["full_tokens"]


async def test_a_search_shows_its_hits_and_why_they_rank(provider: RawProvider) -> None:
    async with opened(provider) as at:
        await at.ask([USER], SEARCH, CALL)
        (found,) = await at.records()

    (search,) = found["searched"]
    first, empty = search["queries"]
    best = first["hits"][0]
    assert (first["query"], best["name"]) == ("count words", "count_words")
    assert best["reasons"]["fields"]["name"] == ["count", "words"]
    words = {word["word"] for word in best["reasons"]["explanation"]["words"]}
    assert words == {"count", "words"}
    assert (empty["query"], empty["hits"], empty["unmatched"]) == ("xyzzy", [], ["xyzzy"])


async def test_what_the_client_saw_is_beside_what_the_provider_saw(provider: RawProvider) -> None:
    async with opened(provider) as at:
        await at.ask([USER], SEARCH, CALL)
        (found,) = await at.records()

    hidden, shown = found["steps"]
    assert [(c["name"], c["seen"], c["is_search"]) for c in hidden["calls"]] == [
        ("tool_search", "", True)
    ]
    assert [(c["name"], c["seen"]) for c in shown["calls"]] == [("count_words", "count_words")]
    assert (hidden["messages"], shown["messages"]) == (2, 4)  # the instructions are a message
    assert found["client_side"]["calls"] == ["count_words"]
    assert (found["client_side"]["tools"], found["client_side"]["messages"]) == (42, 1)
    assert found["client_side"]["request"] is None
    assert hidden["request"] is None


async def test_the_difference_to_the_request_before_has_its_place_and_cause(
    provider: RawProvider,
) -> None:
    call = {"id": "k1", "type": "function", "function": {"name": "count_words", "arguments": "{}"}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "k1", "content": "2"}
    async with opened(provider) as at:
        await at.ask([USER], SEARCH, CALL)
        await at.ask([USER, called, result], ANSWER)
        await at.ask([{**USER, "content": "no, letters"}], ANSWER)
        first, second, third = await at.records()

    grown = first["steps"][1]["prefix"]
    assert (first["steps"][0]["prefix"], grown["before"]) == (None, first["id"])
    assert (grown["cause"], grown["in_prompt"]) == ("tool_added", True)
    assert grown["path"].startswith("tools[")
    assert 0 < grown["kept_bytes"] < grown["total_bytes"]
    goes_on = second["steps"][0]["prefix"]
    assert (goes_on["before"], goes_on["cause"]) == (first["id"], "")
    assert goes_on["kept_bytes"] == goes_on["total_bytes"]
    assert first["conversation"] == second["conversation"] != third["conversation"]
    assert third["steps"][0]["prefix"] is None


async def test_a_request_that_is_passed_on_says_why(provider: RawProvider) -> None:
    async with opened(provider) as at:
        await at.ask([USER], ANSWER, tools=TOOLS[:3])
        await at.ask([USER], ANSWER, tools=[])
        provider.status = 429
        await at.ask([USER], b'{"error": {"message": "slow down"}}')
        rows = (await at.client.get(f"{API}/requests")).json()["requests"]

    assert [row["passed"] for row in rows] == ["few_tools", "no_tools", ""]
    assert [row["status"] for row in rows] == [200, 200, 429]


async def test_bodies_are_kept_if_asked_for_and_never_a_key(
    provider: RawProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log.jsonl"
    inspector = InspectorSettings(bodies=True, path=str(log))
    said = [{**USER, "content": f"my key is {PLAIN_KEY}, or {KEY}"}]
    echo = reply(("s1", "tool_search", {"queries": [f"count words {PLAIN_KEY}"]}))
    async with opened(provider, inspector=inspector) as at:
        await at.ask(said, echo, CALL)
        provider.status = 401
        await at.ask(said, json.dumps({"error": {"message": f"wrong key {PLAIN_KEY}"}}).encode())
        found = await at.records()
        everything = json.dumps([found, (await at.client.get(f"{API}/figures")).json()])

    assert "my key is ***" in found[0]["client_side"]["request"]
    assert "two words" not in found[0]["client_side"]["reply"]
    assert "count_words" in found[0]["client_side"]["reply"]
    assert "tool_search" not in found[0]["client_side"]["reply"]
    assert "tool_search" in found[0]["steps"][0]["reply"]
    assert "wrong key ***" in found[1]["steps"][0]["reply"]
    for secret in (KEY, PLAIN_KEY):
        assert secret not in everything
        assert secret not in log.read_text()
        assert secret not in caplog.text
    assert len(read_log(log, 10).requests) == 2


async def test_a_log_has_the_reasons_of_rankings(provider: RawProvider, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with opened(provider, inspector=InspectorSettings(path=str(log))) as at:
        await at.ask([USER], SEARCH, CALL)
        found = await at.records()

    (kept,) = read_log(log, 10).requests
    assert json.loads(kept.model_dump_json()) == found[0]


async def test_a_client_that_leaves_is_in_the_list(provider: RawProvider) -> None:
    body = json.dumps({"model": "m", "messages": [USER], "tools": TOOLS}).encode()
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": body},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if len(messages) > 1 else messages[0]

    async def send(_message: Any) -> None:
        """Nobody reads."""

    async with opened(provider) as at:
        scope = {
            "type": "http", "method": "POST", "path": "/v1/chat/completions", "root_path": "",
            "query_string": b"", "headers": [(b"host", b"127.0.0.1:8787")],
        }  # fmt: skip
        await at.proxy.asgi()(scope, receive, send)
        assert at.proxy.inspection is not None
        await asyncio.to_thread(at.proxy.inspection.settle)
        (row,) = (await at.client.get(f"{API}/requests")).json()["requests"]

    assert row["status"] == 499


async def test_a_name_that_utf8_cannot_carry_breaks_no_request(provider: RawProvider) -> None:
    body = json.dumps({"model": "m\ud800", "messages": [USER], "tools": TOOLS})
    async with opened(provider) as at:
        answered = await at.client.post("/v1/chat/completions", content=body)
        assert at.proxy.inspection is not None
        await asyncio.to_thread(at.proxy.inspection.settle)
        (record,) = await at.records()

    assert (answered.status_code, record["model"]) == (200, "m?")


async def test_a_request_that_fails_here_is_not_under_way(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("tool_search.serving.proxy.turn.Turn.keep", fail)
    async with opened(provider) as at:
        with pytest.raises(ZeroDivisionError):
            await at.ask([USER])
        assert at.proxy.inspection is not None
        await asyncio.to_thread(at.proxy.inspection.settle)
        listed = (await at.client.get(f"{API}/requests")).json()

    assert [row["status"] for row in listed["requests"]] == [500]
    assert listed["running"] == []


async def test_rows_come_as_events(provider: RawProvider) -> None:
    async with opened(provider) as at:
        await at.ask([USER], ANSWER)
        events = await first_events(at.proxy, "after=0", 1)
        assert events[0].startswith("id: 1\nevent: request\ndata: {")
        row = json.loads(events[0].partition("data: ")[2])
        rows = (await at.client.get(f"{API}/requests")).json()
        assert (rows["last"], rows["requests"]) == (1, [row])

        waiting = asyncio.create_task(first_events(at.proxy, "after=1", 2))
        while at.proxy.inspection and not at.proxy.inspection.recorder.followers:  # noqa: ASYNC110  # for the stream
            await asyncio.sleep(0.001)
        await at.ask([USER], ANSWER)
        begun, ended = await waiting
        assert ended.startswith("id: 2\nevent: request\n")
        assert begun.startswith("event: running\ndata: {")
        ids = [json.loads(each.partition("data: ")[2])["id"] for each in (begun, ended)]
        assert ids[0] == ids[1]
        assert (await at.client.get(f"{API}/requests")).json()["running"] == []
        assert at.proxy.inspection is not None
        assert at.proxy.inspection.recorder.followers == 0


async def first_events(proxy: ToolSearchProxy, query: str, count: int) -> list[str]:
    """Return the first events of a stream, then leave it."""
    text, gone = "", asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal text
        text += message.get("body", b"").decode()
        if text.count("event: ") >= count:
            gone.set()

    scope = {
        "type": "http", "method": "GET", "path": f"{API}/events", "root_path": "",
        "query_string": query.encode(), "headers": [(b"host", b"127.0.0.1:8787")],
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await proxy.asgi()(scope, receive, send)
    return [each for each in text.split("\n\n") if "event: " in each]


@pytest.mark.parametrize("path", ["/", "/api/requests", "/api/figures", "/api/events"])
async def test_another_origin_reads_nothing(provider: RawProvider, path: str) -> None:
    async with opened(provider) as at:
        for headers in (
            {"host": "rebound.example"},
            {"origin": "http://rebound.example"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        ):
            refused = await at.client.get(f"/inspector{path}", headers=headers)
            assert refused.status_code == 403
            assert "access-control-allow-origin" not in refused.headers
    assert provider.requests == []


async def test_beyond_this_machine_the_token_reads(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENS", "t1")
    listen = ListenSettings(host="0.0.0.0", tokens_env="TOKENS")  # noqa: S104  # as an operator sets it
    async with opened(provider, listen=listen) as at:
        host = {"host": "proxy.example"}
        refused = await at.client.get(f"{API}/requests", headers=host)
        read = await at.client.get(f"{API}/requests", headers={**host, TOKEN_HEADER: "t1"})

    assert (refused.status_code, read.status_code) == (401, 200)


async def test_without_an_inspector_its_path_is_the_providers(provider: RawProvider) -> None:
    async with opened(provider, inspector=InspectorSettings(enabled=False)) as at:
        await at.client.get(f"{API}/requests")

    assert [request.path for request in provider.requests] == [f"/v1{API}/requests"]


async def test_a_request_that_is_not_kept_is_named(provider: RawProvider) -> None:
    async with opened(provider) as at:
        missing = await at.client.get(f"{API}/requests/none")
        changed = await at.client.post(f"{API}/requests")

    assert (missing.status_code, changed.status_code) == (404, 405)
