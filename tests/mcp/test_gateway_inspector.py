"""The inspector of a gateway over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.mcp.gateways import SEARCH, TWO_TOKENS, call, gateway_over, post, serving


async def test_the_page_and_the_requests_are_next_to_the_endpoint() -> None:
    async with serving(gateway_over(transport={"type": "http"})) as endpoint:
        async with Client(endpoint) as client:
            await client.call_tool(SEARCH, {"query": "send mail"})
        address = endpoint.removesuffix("/mcp")
        async with httpx2.AsyncClient(base_url=address, follow_redirects=True) as browser:
            page = await browser.get("/inspector")
            rows: list[Any] = []
            while not rows:
                rows = (await browser.get("/inspector/api/requests")).json()["requests"]
                await asyncio.sleep(0.01)
            foreign = {"origin": "http://rebound.example"}
            refused = await browser.get("/inspector/api/requests", headers=foreign)

    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    assert [(row["dialect"], row["searches"], row["found"] > 0) for row in rows] == [
        ("mcp", 1, True)
    ]
    assert refused.status_code == 403


async def test_with_tokens_the_requests_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_TEST_TOKENS", "one,two")
    async with serving(gateway_over(transport=TWO_TOKENS)) as endpoint:
        address = endpoint.replace("/mcp", "/inspector/api/requests")
        async with httpx2.AsyncClient() as browser:
            without = await browser.get(address)
            with_token = await browser.get(address, headers={"authorization": "Bearer two"})
            for token in ("one", "two", "one"):
                whose = {"Authorization": f"Bearer {token}"}
                await post(endpoint, call(SEARCH, {"query": "mail"}), **whose)
            rows: dict[str, list[Any]] = {"one": [], "two": []}
            while not rows["two"] or len(rows["one"]) < 2:
                for token in rows:
                    whose = {"authorization": f"Bearer {token}"}
                    rows[token] = (await browser.get(address, headers=whose)).json()["requests"]
                await asyncio.sleep(0.01)

    assert (without.status_code, with_token.status_code) == (401, 200)
    assert [len(rows["one"]), len(rows["two"])] == [2, 1]


async def test_without_an_inspector_there_is_no_page() -> None:
    gateway = gateway_over(transport={"type": "http"}, inspector={"enabled": False})
    async with serving(gateway) as endpoint, httpx2.AsyncClient() as browser:
        missing = await browser.get(endpoint.replace("/mcp", "/inspector/"))

    assert missing.status_code == 404
