"""Thinking that is bound to requests which a proxy has forgotten."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.proxy.clients import ANTHROPIC
from tests.proxy.test_hard_cases import Server, play, proxy, search
from tool_search.testing import ModelCall, ModelReply

pytestmark = pytest.mark.clients
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
QUESTION: dict[str, Any] = {"role": "user", "content": "Count the words."}


def call(strategy: str) -> ModelCall:
    """Return a call of a tool of the client, as a strategy has it."""
    arguments: dict[str, Any] = {"text": "a b"}
    if strategy == "bridge":
        return ModelCall(
            name="call_tool", arguments={"name": "count_words", "arguments": arguments}
        )
    return ModelCall(name="count_words", arguments=arguments)


async def ask(
    server: Server, strategy: str, messages: list[dict[str, Any]], **more: Any
) -> httpx2.Response:
    """Return the reply of a proxy that knows of no earlier request."""
    served = proxy(server, strategy)
    transport = httpx2.ASGITransport(app=served.asgi())
    headers = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
    body = {
        "model": "claude-opus-5-5", "max_tokens": 3000, "tools": ANTHROPIC, "messages": messages,
        **more,
    }  # fmt: skip
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        reply = await client.post("/v1/messages", json=body, headers=headers)
    await served.close()
    return reply


@STREAMS
@pytest.mark.parametrize("strategy", ["claude", "bridge"])
@pytest.mark.parametrize(
    "thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}]
)
async def test_thinking_that_does_not_fit_any_more_is_left_out(
    strategy: str, thinking: dict[str, Any], *, stream: bool
) -> None:
    with Server() as server:
        play(
            server,
            ModelReply(thinking="I need a tool.", calls=search("count words")),
            ModelReply(thinking="Now I call.", calls=(call(strategy),)),
            ModelReply(text="two"),
        )
        first = (await ask(server, strategy, [QUESTION], thinking=thinking)).json()
        (use,) = (block for block in first["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "2"}
        history = [
            QUESTION,
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        reply = await ask(server, strategy, history, thinking=thinking, stream=stream)

    assert reply.status_code == 200
    assert "two" in reply.text
    # Refused once, for the thinking alone.
    assert len(server.requests) == 4
    assert len(server.violations) == 1


async def test_thinking_that_was_changed_is_the_providers_to_refuse() -> None:
    with Server() as server:
        play(server, ModelReply(thinking="Hm.", text="two"), ModelReply(text="again"))
        first = (await ask(server, "claude", [QUESTION], thinking={"type": "adaptive"})).json()
        first["content"][0]["thinking"] = "Another."
        history = [QUESTION, {"role": "assistant", "content": first["content"]}, QUESTION]
        reply = await ask(server, "claude", history, thinking={"type": "adaptive"})

    assert reply.status_code == 400
    assert len(server.requests) == 2
