"""The output of the stand-in server, checked by the vendors' published types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib import request

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tool_search.testing import ModelCall, ModelReply, ModelView, StandInServer

TYPES: dict[str, tuple[Any, Any]] = {
    "/v1/messages": (Message, RawMessageStreamEvent),
    "/v1/chat/completions": (ChatCompletion, ChatCompletionChunk),
    "/v1/responses": (Response, ResponseStreamEvent),
}
HEADERS = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
CHAT = {"type": "function", "function": {"name": "tool_search", "parameters": SCHEMA}}
HOSTED = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": SCHEMA,
    "strict": False,
    "defer_loading": True,
}
USER = [{"role": "user", "content": "Hi."}]
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": (
        "/v1/messages",
        {
            "model": "claude-sonnet-4-6",
            "max_tokens": 10,
            "messages": USER,
            "tools": [{"name": "tool_search", "input_schema": SCHEMA}],
        },
    ),
    "chat": (
        "/v1/chat/completions",
        {
            "model": "gpt-5.4",
            "messages": USER,
            "tools": [CHAT],
            "stream_options": {"include_usage": True},
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "model": "gpt-5.4",
            "input": USER,
            "tools": [{"type": "tool_search", "execution": "client", "description": "Finds."}],
        },
    ),
    "responses, searching itself": (
        "/v1/responses",
        {"model": "gpt-5.4", "input": USER, "tools": [{"type": "tool_search"}, HOSTED]},
    ),
}
SEARCH = ModelReply(
    text="Let me look.",
    calls=(ModelCall(name="tool_search", arguments={"query": "weather"}),),
    thinking="What is there?",
)
REFUSED = ModelReply(text="No.", stop_reason="refusal")


class Says:
    """A model that always says one thing, and is done once a search was answered."""

    def __init__(self, reply: ModelReply) -> None:
        self._reply = reply

    def reply(self, view: ModelView) -> ModelReply:
        """Return the one thing."""
        return ModelReply(text="Done.") if view.results else self._reply


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Read a type strictly; the union of all events takes seconds to prepare."""
    return TypeAdapter(kind)


def asked(server: StandInServer, path: str, body: dict[str, Any]) -> str:
    """Return the bytes of an answer, as text."""
    sent = json.dumps(body).encode()
    post = request.Request(server.url + path, data=sent, headers=HEADERS)  # noqa: S310 - the server's
    with request.urlopen(post) as answer:  # noqa: S310 - the server's own address
        return str(answer.read(), "utf-8")


def events(text: str) -> Iterator[Any]:
    """Yield the data of a stream's events."""
    for line in text.splitlines():
        if line.startswith("data: ") and "[DONE]" not in line:
            yield json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("reply", [SEARCH, ModelReply(text="Hello.")], ids=["calls", "text"])
def test_reply_is_as_the_vendors_types_say(
    server: StandInServer, path: str, body: dict[str, Any], reply: ModelReply
) -> None:
    whole, event = TYPES[path]
    server.reset(model=Says(reply))
    adapter_of(whole).validate_json(asked(server, path, body))
    streamed = list(events(asked(server, path, {**body, "stream": True})))
    assert len(streamed) > 3
    for each in streamed:
        # Claude's stream has pings, for which the SDK has no type.
        if each.get("type") != "ping":
            adapter_of(event).validate_python(each)


def test_refusal_is_as_openais_types_say(server: StandInServer) -> None:
    path, body = BODIES["responses"]
    server.reset(model=Says(REFUSED))
    adapter_of(Response).validate_json(asked(server, path, body))
    kinds = []
    for each in events(asked(server, path, {**body, "stream": True})):
        adapter_of(ResponseStreamEvent).validate_python(each)
        kinds.append(each["type"])
    assert "response.refusal.delta" in kinds
