"""Replies that a provider keeps, asked for by the id that the client knows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.proxy.raw import RawProvider, raw_provider
from tests.proxy.test_app import TOOLS, client_of
from tool_search.serving.proxy.app import TOKEN_HEADER

FUNCTIONS = [{"type": "function", **tool["function"]} for tool in TOOLS]  # type: ignore[dict-item]
SEARCH = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "tool_search",
    "arguments": '{"query": "thing 3"}',
}  # fmt: skip
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
ASKED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}


def said(text: str) -> dict[str, Any]:
    """Return a message of the model."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": [part]}


FIRST = {"id": "resp_1", "object": "response", "status": "completed", "output": [SEARCH]}
SECOND = {"id": "resp_2", "object": "response", "status": "completed", "output": [said("ok")]}


@asynccontextmanager
async def searched(provider: RawProvider) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client that has had a reply of two steps, `resp_1` to it."""
    provider.bodies = [json.dumps(FIRST).encode(), json.dumps(SECOND).encode()]
    async with client_of(provider) as client:
        body = {"model": "m", "input": "hi", "tools": FUNCTIONS}
        reply = await client.post("/v1/responses", json=body)
        assert reply.json()["id"] == "resp_1"
        provider.requests.clear()
        yield client


def paths(provider: RawProvider) -> list[str]:
    """Return the methods and paths of the requests since the reply."""
    return [f"{request.method} {request.path}" for request in provider.requests]


async def test_a_reply_is_given_back_as_the_client_saw_it() -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            provider.bodies = [json.dumps(FIRST).encode(), json.dumps(SECOND).encode()]
            reply = (await client.get("/v1/responses/resp_1?include=x")).json()

    assert (reply["id"], reply["output"]) == ("resp_1", [said("ok")])
    assert paths(provider) == [f"GET /v1/responses/{i}?include=x" for i in ("resp_1", "resp_2")]


@pytest.mark.parametrize("tools", [[], FUNCTIONS[:3]], ids=["no tools", "few tools"])
async def test_a_request_that_is_passed_on_goes_on_from_the_providers_last_reply(
    tools: list[Any],
) -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            body = {"model": "m", "input": "more", "previous_response_id": "resp_1"}
            await client.post("/v1/responses", json={**body, "tools": tools})

    sent = json.loads(provider.requests[0].body)
    assert sent == {**body, "previous_response_id": "resp_2", "tools": tools}


async def test_a_conversation_without_tools_gets_the_result_of_a_search_once() -> None:
    call = {
        "type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "tool_3",
        "arguments": "{}",
    }  # fmt: skip
    beside = {**FIRST, "output": [SEARCH, call]}
    result = {"type": "function_call_output", "call_id": "call_2", "output": "x"}
    with raw_provider() as provider:
        async with client_of(provider) as client:
            provider.bodies = [json.dumps(beside).encode()]
            body = {"model": "m", "input": "hi", "conversation": "conv_1"}
            await client.post("/v1/responses", json={**body, "tools": FUNCTIONS})
            for given in ([result], [ASKED]):
                await client.post("/v1/responses", json={**body, "input": given})

    first, second = (json.loads(each.body)["input"] for each in provider.requests[1:])
    assert [each["call_id"] for each in first] == ["call_1", "call_2"]
    assert second == [ASKED]


async def test_a_response_in_the_background_is_not_searched() -> None:
    body = {"model": "m", "input": "hi", "tools": FUNCTIONS, "background": True}
    with raw_provider() as provider:
        async with client_of(provider) as client:
            await client.post("/v1/responses", json=body)

    assert json.loads(provider.requests[0].body) == body


async def test_the_input_of_a_reply_has_no_search() -> None:
    listed = {"object": "list", "data": [RESULT, SEARCH, ASKED], "has_more": False}
    with raw_provider() as provider:
        async with searched(provider) as client:
            provider.bodies = [json.dumps(listed).encode()]
            reply = (await client.get("/v1/responses/resp_1/input_items")).json()

    assert reply == {**listed, "data": [ASKED]}
    assert paths(provider) == ["GET /v1/responses/resp_2/input_items"]


async def test_every_step_of_a_reply_is_deleted() -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            gone = {"object": "response", "deleted": True}
            provider.bodies = [json.dumps({"id": i, **gone}).encode() for i in ("resp_1", "resp_2")]
            reply = (await client.delete("/v1/responses/resp_1")).json()

    assert (reply["id"], reply["deleted"]) == ("resp_1", True)
    assert paths(provider) == [f"DELETE /v1/responses/{i}" for i in ("resp_1", "resp_2")]


@pytest.mark.parametrize(
    ("statuses", "expected"), [((404, 200), 200), ((200, 404), 200), ((404, 404), 404)]
)
async def test_a_deletion_that_broke_off_is_finished_by_the_next(
    statuses: tuple[int, int], expected: int
) -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            provider.statuses = [*statuses]
            provider.body = b'{"id": "resp_1", "deleted": true}'
            reply = await client.delete("/v1/responses/resp_1")

    assert reply.status_code == expected
    assert paths(provider) == [f"DELETE /v1/responses/{i}" for i in ("resp_1", "resp_2")]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_search_whose_result_is_lost_is_a_warning(
    caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    refusal = b'{"error": {"message": "No tool output found for function call call_1."}}'
    body = {"model": "m", "input": "go on", "tools": FUNCTIONS, "stream": stream}
    with raw_provider() as provider:
        provider.status, provider.body = 400, refusal
        async with client_of(provider) as client:
            whole = await client.post("/v1/responses", json=body)
            silent = "lost its state" not in caplog.text
            reply = await client.post(
                "/v1/responses", json={**body, "previous_response_id": "resp_1"}
            )

    assert (whole.status_code, silent) == (400, True)
    assert (reply.status_code, reply.content) == (400, refusal)
    assert "lost its state" in caplog.text


async def test_a_reply_is_cancelled_by_the_providers_id() -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            provider.bodies = [json.dumps({**SECOND, "status": "cancelled"}).encode()]
            reply = (await client.post("/v1/responses/resp_1/cancel")).json()

    assert (reply["id"], reply["status"]) == ("resp_1", "cancelled")
    assert paths(provider) == ["POST /v1/responses/resp_2/cancel"]


@pytest.mark.parametrize("path", ["/v1/responses/resp_9", "/v1/responses/resp_9/input_items"])
async def test_an_error_of_the_provider_and_other_replies_pass_as_they_came(path: str) -> None:
    with raw_provider() as provider:
        async with searched(provider) as client:
            other = await client.get(path)
            provider.status, provider.body = 404, b'{"error": {"message": "no"}}'
            refused = await client.get("/v1/responses/resp_1")

    assert other.content == b"{}"
    assert (refused.status_code, refused.content) == (404, provider.body)
    assert paths(provider) == [f"GET {path}", "GET /v1/responses/resp_1"]


@pytest.mark.parametrize(
    "header", ["authorization", "x-api-key", "api-key", "x-goog-api-key", TOKEN_HEADER]
)
async def test_another_client_does_not_get_the_hidden_steps(header: str) -> None:
    with raw_provider() as provider:
        async with client_of(provider) as client:
            del client.headers["authorization"]
            provider.bodies = [json.dumps(FIRST).encode(), json.dumps(SECOND).encode()]
            body = {"model": "m", "input": "hi", "tools": FUNCTIONS}
            await client.post("/v1/responses", json=body, headers={header: "of Alice"})
            provider.requests.clear()
            await client.get("/v1/responses/resp_1", headers={header: "of Bob"})

    assert paths(provider) == ["GET /v1/responses/resp_1"]


async def test_a_long_history_has_every_search_in_its_place() -> None:
    history: list[dict[str, Any]] = []
    body = {"model": "m", "tools": FUNCTIONS, "store": False}
    with raw_provider() as provider:
        async with client_of(provider) as client:
            for number in range(3):
                history += [
                    {"role": "user", "content": f"{number} {place}"} for place in range(300)
                ]
                search = {**SEARCH, "call_id": f"call_{number}"}
                steps = [{**FIRST, "output": [search]}, SECOND]
                provider.bodies = [json.dumps(step).encode() for step in steps]
                reply = await client.post("/v1/responses", json={**body, "input": history})
                history += reply.json()["output"]

    sent = json.loads(provider.requests[-1].body)["input"]
    calls = [place for place, item in enumerate(sent) if item.get("type") == "function_call"]
    assert calls == [300, 603, 906]
    assert len(history) == 903
