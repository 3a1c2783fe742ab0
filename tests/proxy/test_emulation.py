"""Clients that defer tools by themselves, before providers that do not know it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.proxy.clients import ANTHROPIC
from tests.proxy.conftest import serve
from tool_search.proxy.app import ToolSearchProxy
from tool_search.proxy.settings import ProxyConfig, UpstreamSettings
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

NAMES = [tool["name"] for tool in ANTHROPIC]
DEFERRED = [{**tool, "defer_loading": True} for tool in ANTHROPIC]
OWN_SEARCH = {
    "name": "ToolSearch",
    "description": "Loads tools by their names.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
}
REFERENCES = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": [{"type": "tool_reference", "tool_name": "count_words"}],
}
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Count the words."},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "count"}}
        ],
    },
    {"role": "user", "content": [REFERENCES]},
]


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider; a test ends without a violation."""
    replies = [
        ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "count words"}),)),
        ModelReply(text="done"),
    ]
    with StandInServer(model=ScriptedModel(replies)) as running:
        yield running
        assert running.violations == ()


def post(server: StandInServer, body: dict[str, Any], *, strategy: str = "generic") -> Any:
    """Send a request through a proxy, and return the reply's body."""
    upstream = UpstreamSettings(
        base_url=server.anthropic_base_url.removesuffix("/v1"),
        dialects=("anthropic",),
        strategy=strategy,
    )
    headers = {
        "x-api-key": "x",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "advanced-tool-use-2025-11-20,context-1m-2025-08-07",
    }
    whole = {"model": "claude-sonnet-4-6", "max_tokens": 500, **body}
    with serve(ToolSearchProxy(ProxyConfig(upstreams=(upstream,)))) as address:
        return httpx2.post(f"{address}/v1/messages", json=whole, headers=headers).json()


def test_deferred_tools_that_a_client_found_are_declared_plainly(server: StandInServer) -> None:
    post(server, {"tools": [OWN_SEARCH, *DEFERRED], "messages": HISTORY})

    (request,) = server.requests
    body: Any = request.body

    assert request.tool_names == ("ToolSearch", "count_words")
    assert "defer_loading" not in json.dumps(body["tools"])
    assert body["messages"][2]["content"][0]["content"] == [
        {"type": "text", "text": '["count_words"]'}
    ]
    assert request.headers["anthropic-beta"] == "context-1m-2025-08-07"


def test_a_search_of_the_service_is_answered_here(server: StandInServer) -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    question = [{"role": "user", "content": "Count the words."}]
    core = {**DEFERRED[0], "defer_loading": False}
    reply = post(server, {"tools": [search, core, *DEFERRED[1:]], "messages": question})

    first, second = server.requests

    assert first.tool_names == (NAMES[0], "tool_search")
    assert "count_words" in second.tool_names
    assert reply["content"] == [{"type": "text", "text": "done"}]


def test_a_provider_that_defers_itself_gets_the_request_as_it_came(server: StandInServer) -> None:
    tools = [OWN_SEARCH, *DEFERRED]
    post(server, {"tools": tools, "messages": HISTORY}, strategy="claude")

    body: Any = server.requests[0].body

    assert body["tools"] == tools
    assert body["messages"] == HISTORY
