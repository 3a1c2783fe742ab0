"""Clients that defer tools by themselves, before providers that do not know it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.proxy.clients import ANTHROPIC, RESPONSES, http_client
from tests.proxy.conftest import serve, upstreams
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings
from tool_search.testing import Endpoint, ModelCall, ModelReply, ScriptedModel, StandInServer

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


CLIENT_SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


class SearchingClient:
    """A client of Responses that answers searches by itself, as Codex can."""

    def __init__(self, address: str, *, stream: bool) -> None:
        self._client = OpenAI(
            base_url=f"{address}/v1", api_key="x", max_retries=0, http_client=http_client()
        )
        self._stream = stream
        self.seen: list[str] = []

    def ask(self, text: str) -> str:
        """Return the answer to a message, after all searches and calls."""
        history: list[Any] = [{"role": "user", "content": text}]
        while True:
            wish: Any = {"model": "gpt-5.4", "input": history, "store": False}
            wish["tools"] = [CLIENT_SEARCH]
            if self._stream:
                with self._client.responses.stream(**wish) as events:
                    reply: Any = events.get_final_response()
            else:
                reply = self._client.responses.create(**wish)
            items = [item.model_dump(exclude_none=True) for item in reply.output]
            history += [{k: v for k, v in i.items() if not k.startswith("parsed")} for i in items]
            self.seen += [item["type"] for item in items]
            results = [self._result(item) for item in items if item["type"].endswith("_call")]
            if not results:
                return str(reply.output_text)
            history += results

    def _result(self, item: dict[str, Any]) -> dict[str, Any]:
        called = {"call_id": item["call_id"]}
        if item["type"] == "tool_search_call":
            assert item["arguments"] == {"query": "count"}
            tool = {**next(t for t in RESPONSES if t["name"] == "count_words")}
            tool["defer_loading"] = True
            found = {"type": "tool_search_output", "execution": "client", "tools": [tool]}
            return {**found, **called, "status": "completed"}
        return {"type": "function_call_output", **called, "output": "2"}


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


def test_found_tools_are_declared_in_the_order_of_the_history(server: StandInServer) -> None:
    def searched(place: int) -> list[dict[str, Any]]:
        call_id, name = f"toolu_{place}", NAMES[place]
        call = {"type": "tool_use", "id": call_id, "name": "ToolSearch", "input": {}}
        content = [{"type": "tool_reference", "tool_name": name}]
        result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    history = [HISTORY[0], *searched(9), *searched(3)]
    choice = {"type": "tool", "name": NAMES[1]}
    tools = [DEFERRED[0], OWN_SEARCH, *DEFERRED[1:]]
    post(server, {"tools": tools, "messages": history, "tool_choice": choice})

    (request,) = server.requests
    assert request.tool_names == ("ToolSearch", NAMES[9], NAMES[3], NAMES[1])


def test_a_search_of_the_service_is_answered_here(server: StandInServer) -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    question = [{"role": "user", "content": "Count the words."}]
    core = {**DEFERRED[0], "defer_loading": False}
    reply = post(server, {"tools": [search, core, *DEFERRED[1:]], "messages": question})

    first, second = server.requests

    assert first.tool_names == (NAMES[0], "tool_search")
    assert "count_words" in second.tool_names
    assert reply["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_search_that_the_client_answers_is_a_function_to_the_provider(*, stream: bool) -> None:
    model = ScriptedModel(
        [
            ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "count"}),)),
            ModelReply(calls=(ModelCall(name="count_words", arguments={"text": "a b"}),)),
            ModelReply(text="two"),
        ]
    )
    with (
        StandInServer(model=model, endpoint=Endpoint(supports_tool_search=False)) as server,
        serve(ToolSearchProxy(ProxyConfig(upstreams=upstreams(server)))) as address,
    ):
        client = SearchingClient(address, stream=stream)

        assert client.ask("Count the words.") == "two"
        assert server.violations == ()
        listed = [request.tool_names for request in server.requests]

    assert client.seen == ["tool_search_call", "function_call", "message"]
    assert listed == [("tool_search",), *[("tool_search", "count_words")] * 2]


def test_a_search_that_the_client_answers_goes_on_to_a_provider_that_knows_it() -> None:
    model = ScriptedModel([ModelReply(text="ok")])
    with StandInServer(model=model) as server:
        config = ProxyConfig(upstreams=upstreams(server, strategy="openai_responses"))
        with serve(ToolSearchProxy(config)) as address:
            SearchingClient(address, stream=False).ask("Hello")

        body: Any = server.requests[0].body

    assert body["tools"] == [CLIENT_SEARCH]


def test_a_provider_that_defers_itself_gets_the_request_as_it_came(server: StandInServer) -> None:
    tools = [OWN_SEARCH, *DEFERRED]
    post(server, {"tools": tools, "messages": HISTORY}, strategy="claude")

    body: Any = server.requests[0].body

    assert body["tools"] == tools
    assert body["messages"] == HISTORY
