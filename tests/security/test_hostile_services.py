"""A hostile service or page costs an error within bounds: to a provider, a proxy and a tool."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import httpx2
import pytest

from tests.adapters.contract import ADAPTERS, plan_of, reply_of
from tests.proxy.raw import raw_provider
from tool_search import profile_for
from tool_search.errors import ProviderError, ToolSearchError
from tool_search.serving.proxy import ToolSearchProxy
from tool_search.sources.workspace.fetching import Line, fetch_page
from tool_search.testing.hostile import ATTACKS, Bounds, HostileServer

TOOLS = [
    {"type": "function", "function": {"name": f"tool_{n}", "parameters": {"type": "object"}}}
    for n in range(40)
]


async def provider(server: HostileServer, attack: str) -> None:
    adapter = next(each for each in ADAPTERS if each.dialect == "openai_chat")
    url = server.service(attack)
    profile = profile_for("openai_chat", adapter.model, base_url=url)
    made = adapter.provider(profile=profile, api_key="k", id="p", base_url=url)
    with pytest.raises(ProviderError):
        await reply_of(made, plan_of())


async def proxy(server: HostileServer, attack: str) -> None:
    upstream = {"base_url": server.service(attack), "dialects": ["openai_chat"]}
    app = ToolSearchProxy({"upstreams": [upstream], "mode": "inject"}).asgi()
    transport = httpx2.ASGITransport(app=app)
    body: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": TOOLS,
    }
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for stream in (False, True):
            body["stream"] = stream
            reply = await client.post("/v1/chat/completions", json=body)
            assert reply.status_code == 502 or b"error" in reply.content, reply.content[:300]


async def page(server: HostileServer, attack: str) -> None:
    def read() -> int:
        found = fetch_page(
            server.page(attack), most=2_000_000, timeout_s=30.0, line=Line(),
            resolve=lambda host, _port: [host], may_connect=lambda _address: True,
        )  # fmt: skip
        return len(found.body)

    try:
        assert await asyncio.to_thread(read) <= 2_000_000
    except ToolSearchError:
        assert attack == "encoding"


async def attacked(who: str, attack: str) -> None:
    attempt = {"provider": provider, "proxy": proxy, "page": page}[who]
    with HostileServer() as server:
        # What is imported and read once, such as certificates, is no part of an attack.
        await attempt(server, "encoding")
        with Bounds() as bounds:
            await attempt(server, attack)
    bounds.check()


async def accepted() -> None:
    """Pass a reply of 480,000 values on, which is within the bounds."""
    parts = [{"type": "text", "text": "x"}] * 160_000
    whole = {"choices": [{"message": {"role": "assistant", "content": "Hi", "parts": parts}}]}
    piece = {"index": 0, "delta": {"content": "Hi", "parts": parts}, "finish_reason": "stop"}
    sent = f"data: {json.dumps({'choices': [piece]})}\n\ndata: [DONE]\n\n"
    with raw_provider() as upstream:
        settings = {"base_url": f"{upstream.address}/v1", "dialects": ["openai_chat"]}
        app = ToolSearchProxy({"upstreams": [settings], "mode": "inject"}).asgi()
        transport = httpx2.ASGITransport(app=app)
        body: dict[str, object] = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": TOOLS,
        }
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.post("/v1/chat/completions", json=body)
            for stream in (False, True):
                kind = "text/event-stream" if stream else "application/json"
                upstream.headers = {"content-type": kind}
                upstream.body = (sent if stream else json.dumps(whole)).encode()
                request = client.build_request(
                    "POST", "/v1/chat/completions", json=body | {"stream": stream}
                )
                with Bounds(memory_mb=1_000) as bounds:
                    reply = await client.send(request, stream=True)
                    pieces = [piece async for piece in reply.aiter_raw()]
                assert len(b"".join(pieces)) > 4_000_000
                bounds.check()


def main(who: str, attack: str) -> None:
    asyncio.run(accepted() if attack == "accepted" else attacked(who, attack))


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """A new process for each attack, whose peak of memory is its own; all import once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        yield pool


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("who", ["provider", "proxy", "page"])
def test_an_attack_is_an_error_within_bounds(
    processes: ProcessPoolExecutor, who: str, attack: str
) -> None:
    processes.submit(main, who, attack).result()


def test_a_large_reply_is_passed_on_off_the_event_loop(processes: ProcessPoolExecutor) -> None:
    processes.submit(main, "proxy", "accepted").result()
